"""Storages of both kinds."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.azure_login import identified
from tests.azurite_server import Azurite

from graticule.config import Settings
from graticule.storage.azure import AzureStorage
from graticule.storage.place import StoragePlace
from graticule.storage.protocol import Storage


@pytest.fixture
async def azure(azurite: Azurite) -> AsyncIterator[AzureStorage]:
    """Give a storage in Azure with nothing in it, reached with an identity."""
    with identified(azurite.environment):
        storage = StoragePlace.of(Settings(**azurite.fresh().settings)).opened()
        assert isinstance(storage, AzureStorage)
        yield storage


@pytest.fixture(params=["local", "azure"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Give a storage of either kind with nothing in it."""
    if request.param == "azure":
        found: Storage = request.getfixturevalue("azure")
        return found
    return StoragePlace.of(Settings(storage_root=tmp_path / "storage")).opened()
