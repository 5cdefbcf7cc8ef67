"""A desk for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.azure_login import identified
from tests.azurite_server import Azurite
from tests.integration.handlers.raster.desk import Desk, RemoteDesk, opened_desk

from graticule.config import Settings
from graticule.storage.blocking import BlockingStorage
from graticule.storage.place import storage_of


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(tmp_path / "storage") as opened:
        yield opened


@pytest.fixture
def azure_desk(azurite: Azurite, tmp_path: Path) -> Iterator[Desk]:
    """Give a desk whose storage is in Azure."""
    with (
        identified(azurite.environment),
        BlockingStorage(storage_of(Settings(**azurite.fresh().settings))) as storage,
    ):
        yield RemoteDesk(tmp_path, storage)


@pytest.fixture(params=["desk", "azure_desk"])
def any_desk(request: pytest.FixtureRequest) -> Desk:
    """Give a desk with a storage of either kind."""
    found: Desk = request.getfixturevalue(request.param)
    return found
