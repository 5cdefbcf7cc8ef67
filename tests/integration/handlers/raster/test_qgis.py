"""Rasters that QGIS exported, raw and as rendered, with options of its dialogue: our COGs have the same pixels."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration.handlers.qgis import needs_qgis, write_by_qgis
from tests.integration.handlers.raster.desk import Desk
from tests.integration.handlers.raster.test_round_trips import PLACE, assert_same, cog_of, noise, sent
from tests.unit.handlers.raster.foreign_files import convert_here
from tests.unit.handlers.raster.validating import write

from graticule.handlers.raster import preparation

ORIGINS: dict[str, dict[str, Any]] = {
    "float32": {"dtype": "float32", "nodata": -9999.0},
    "uint16": {"dtype": "uint16"},
    "uint8x3": {"dtype": "uint8", "count": 3},
}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("float32", {"driver": "GTiff", "options": []}),
    ("float32", {"driver": "GTiff", "options": ["COMPRESS=DEFLATE", "PREDICTOR=3", "ZLEVEL=9"]}),
    ("uint16", {"driver": "GTiff", "options": ["COMPRESS=LZW", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"]}),
    ("uint16", {"driver": "GTiff", "options": ["BIGTIFF=YES", "TFW=YES", "PROFILE=GeoTIFF"]}),
    ("uint8x3", {"driver": "GTiff", "options": ["INTERLEAVE=BAND", "PHOTOMETRIC=RGB"]}),
    ("uint8x3", {"driver": "GTiff", "options": ["COMPRESS=PACKBITS"], "is_rendered": True}),
    ("uint16", {"driver": "GTiff", "options": ["COMPRESS=ZSTD"], "is_rendered": True}),
    ("float32", {"driver": "HFA", "options": []}),
]
pytestmark = needs_qgis


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "convert_in_sandbox", convert_here)


@pytest.fixture(scope="session")
def made_by_qgis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qgis")
    for name, given in ORIGINS.items():
        nodata = {"nodata": given["nodata"]} if "nodata" in given else {}
        write(folder / f"{name}.tif", noise(given["dtype"], given.get("count", 1)), transform=PLACE, **nodata)
    rasters = [(str(folder / f"{name}.tif"), str(folder / f"a{n}.tif"), how) for n, (name, how) in enumerate(CASES)]
    write_by_qgis(folder, rasters=rasters)
    return folder


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: str(CASES[number]))
def test_what_qgis_wrote(desk: Desk, made_by_qgis: Path, tmp_path: Path, number: int) -> None:
    name, how = CASES[number]
    made = tmp_path / "a.tif"
    shutil.copy(made_by_qgis / f"a{number}.tif", made)
    expected = made if how.get("is_rendered") else made_by_qgis / f"{name}.tif"
    assert_same(cog_of(desk, sent(desk, made)), expected)
