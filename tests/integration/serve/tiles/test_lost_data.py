"""Data that are gone, or have become something else: nothing is told of where they were, and nothing else is read."""

import json
import logging
import shutil
from pathlib import Path

import pytest
import rasterio
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import IGNORED, client, cog, fetched, mosaic

from graticule.serve.tiles.app import create_tiles
from graticule.serve.tiles.gdal import GDAL_ENVIRONMENT, open_geotiff
from graticule.storage.local import LocalStorage

pytestmark = [pytest.mark.filterwarnings(rule) for rule in IGNORED]

KIND = "categorical"
POINT = "/point/-62.96,18.08"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lost")


@pytest.fixture(scope="module")
def own(folder: Path) -> FastAPI:
    return create_tiles(LocalStorage(folder))


@pytest.fixture
def root(rasters: Path, folder: Path) -> Path:
    """A storage as it should be, for a test to spoil."""
    shutil.rmtree(folder / "silver", ignore_errors=True)
    shutil.copytree(rasters / "silver" / KIND, folder / "silver" / KIND)
    return folder


def become_virtual(file: Path, other: Path) -> None:
    """Put a virtual raster in the place of a file, which would show another."""
    band = f"<SimpleSource><SourceFilename>{other}</SourceFilename><SourceBand>1</SourceBand></SimpleSource>"
    file.write_text(
        '<VRTDataset rasterXSize="600" rasterYSize="250"><SRS>EPSG:4326</SRS><GeoTransform>-63, 0.0001, 0, 18.1, 0, '
        f'-0.0001</GeoTransform><VRTRasterBand dataType="Byte" band="1">{band}</VRTRasterBand></VRTDataset>'
    )


async def assert_unavailable(app: FastAPI, root: Path, path: str, log: pytest.LogCaptureFixture) -> None:
    log.set_level(logging.DEBUG)
    for address in ("/info", POINT, "/preview.png", "/tiles/WebMercatorQuad/14/5326/7355"):
        answer = await fetched(app, path, address)
        if address != "/info" or answer.status_code != 200:  # of a mosaic, no file is opened for it
            assert answer.status_code == 503, answer.text
        for secret in (str(root), path, Path(path).name, f"{KIND}_tile"):
            assert secret not in answer.text + str(answer.headers)
            assert secret not in log.text


async def test_a_file_that_is_gone(own: FastAPI, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / cog(KIND)).unlink()
    await assert_unavailable(own, root, cog(KIND), caplog)


def test_what_lies_beside_a_file_is_not_read(root: Path) -> None:
    path = root / cog(KIND)
    shutil.copy(path, f"{path}.msk")
    with rasterio.Env(**GDAL_ENVIRONMENT), open_geotiff(str(path)) as dataset:
        assert dataset.files == [str(path)]


async def test_a_file_that_leads_to_another(own: FastAPI, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = shutil.copy(root / cog(KIND), root / "other.tif")
    become_virtual(root / cog(KIND), Path(other))
    await assert_unavailable(own, root, cog(KIND), caplog)


async def test_a_mosaic_without_its_scheme(own: FastAPI, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.rmtree(root / "silver" / KIND / "tiles/schemes")
    await assert_unavailable(own, root, mosaic(KIND), caplog)


async def test_a_mosaic_without_one_of_its_files(own: FastAPI, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert (await fetched(own, mosaic(KIND), POINT)).status_code == 200
    for file in (root / "silver" / KIND / "tiles/cogs").iterdir():
        file.unlink()
    await assert_unavailable(own, root, mosaic(KIND), caplog)


async def test_a_file_of_a_mosaic_that_leads_to_another(
    own: FastAPI, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await fetched(own, mosaic(KIND), POINT)).status_code == 200
    for file in (root / "silver" / KIND / "tiles/cogs").iterdir():
        become_virtual(file, root / cog(KIND))
    await assert_unavailable(own, root, mosaic(KIND), caplog)


@pytest.mark.parametrize(
    "other",
    [
        f"silver/{KIND}/whole/cogs/{KIND}.tif",
        f"silver/{KIND}/tiles/cogs/../../whole/cogs/{KIND}.tif",
        f"external/{KIND}/tiles/cogs/{KIND}_tile_0_0.tif",
        "/etc/passwd",
        "/vsicurl/https://example.org/a.tif",
        "https://example.org/a.tif",
    ],
)
async def test_a_mosaic_that_names_others(
    own: FastAPI, root: Path, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    document = json.loads((root / mosaic(KIND)).read_text())
    document["tiles"][next(iter(document["tiles"]))].append(other)
    (root / mosaic(KIND)).write_text(json.dumps(document))
    await assert_unavailable(own, root, mosaic(KIND), caplog)


async def test_an_asset_without_a_raster(app: FastAPI) -> None:
    async with client(app, None) as caller:
        assert (await caller.get("/info")).status_code == 404
