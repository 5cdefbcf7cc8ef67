"""Rasters that lie in Azure are served as those in a folder, and no signature leaves the process."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs
from tests.azure_login import identified
from tests.azurite_server import Azurite
from tests.integration.serve.tiles.served_rasters import IGNORED, cog, fetched, mosaic, pixels

from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.serve.tiles.app import create_tiles
from graticule.serve.zone import Zone
from graticule.storage.place import storage_of
from graticule.storage.protocol import Storage

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

KIND = "categorical"
PREVIEW = "/preview.npy?max_size=600"


@pytest.fixture
async def settings(azurite: Azurite) -> AsyncIterator[Settings]:
    with identified(azurite.environment):
        yield Settings(**azurite.fresh().settings)


@pytest.fixture
async def storage(settings: Settings, rasters: Path) -> Storage:
    """Give a storage in Azure with one raster, as a COG and as a mosaic."""
    storage = storage_of(settings)
    for file in sorted((rasters / "silver" / KIND).rglob("*.*")):
        await storage.put(str(file.relative_to(rasters)), file.read_bytes())
    return storage


async def test_they_look_the_same(storage: Storage, settings: Settings, app: FastAPI) -> None:
    in_azure = create_tiles(Zone.of(settings, Audience.INTERNAL))
    for path in (cog(KIND), mosaic(KIND)):
        for address in (PREVIEW, "/preview.npy?max_size=100"):  # of the pixels themselves, and of overviews
            np.testing.assert_array_equal(await pixels(in_azure, path, address), await pixels(app, path, address))


async def test_what_cannot_be_read_is_told_without_the_signature(
    storage: Storage, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    in_azure = create_tiles(Zone.of(settings, Audience.INTERNAL))
    await storage.put(cog(KIND), b"no raster")
    await storage.delete_below(mosaic(KIND).replace("mosaics", "cogs").removesuffix(f"/{KIND}.json"))
    with caplog.at_level(logging.DEBUG), capture_logs() as logged:
        answers = [await fetched(in_azure, path, PREVIEW) for path in (cog(KIND), mosaic(KIND), cog("rgb"))]
    assert [answer.status_code for answer in answers] == [503] * 3
    for text in (str(logged), caplog.text, *(answer.text for answer in answers)):
        assert "sig=" not in text
        assert "vsicurl" not in text
