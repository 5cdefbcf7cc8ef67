"""The samples of the demonstration: maps that are valid, always the same, and made quickly."""

from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import pytest
import rasterio
import shapely
from rasterio.io import MemoryFile

from graticule.cli.demo_island import CRS, HEIGHT, WIDTH, Island, island_raster
from graticule.cli.demo_parcels import parcels_geopackage


@pytest.fixture(scope="module")
def island() -> Island:
    return Island.make()


def test_the_same_seed_gives_the_same_island(island: Island) -> None:
    assert np.array_equal(Island.make().elevation, island.elevation)


def test_the_island_rises_in_the_middle_of_the_sea(island: Island) -> None:
    land = island.elevation > 0
    assert 0.1 < land.mean() < 0.5
    rim = (land[0], land[-1], land[:, 0], land[:, -1])
    assert not any(side.any() for side in rim)
    assert 300 < island.elevation.max() < 2000


def test_the_picture_is_a_raster_that_has_to_be_reprojected(island: Island) -> None:
    with MemoryFile(island_raster(island)) as file, file.open() as raster:
        assert (raster.driver, raster.crs.to_string(), raster.dtypes) == ("GTiff", CRS, ("uint8",) * 3)
        assert (raster.width, raster.height, raster.res) == (WIDTH, HEIGHT, (20, 20))
        west, south, east, north = rasterio.warp.transform_bounds(raster.crs, "EPSG:4326", *raster.bounds)
        assert (-62 < west < east < -60.5, 14 < south < north < 15.5) == (True, True)
        assert raster.read().std(axis=(1, 2)).min() > 10  # it shows something, in each band


def read(data: bytes, folder: Path) -> Any:
    file = folder / "parcels.gpkg"
    file.write_bytes(data)
    return pyogrio.raw.read(file)


def test_the_parcels_cover_the_land_without_overlaps(island: Island, tmp_path: Path) -> None:
    meta, _, written, fields = read(parcels_geopackage(island), tmp_path)
    parcels = shapely.from_wkb(written)
    assert (meta["crs"], meta["geometry_type"]) == (CRS, "Polygon")
    assert 300 < len(parcels) < 1000
    assert shapely.is_valid(parcels).all()
    covered = shapely.area(shapely.union_all(parcels))
    assert covered == pytest.approx(shapely.area(parcels).sum(), rel=1e-9)
    assert covered == pytest.approx((island.elevation > 0).sum() * 20 * 20, rel=0.05)
    named = dict(zip(meta["fields"], fields, strict=True))
    assert len(set(named["Parcel No."])) == len(parcels)
    assert len(set(named["land_use"])) >= 6


def test_the_same_seed_gives_the_same_file_of_parcels(island: Island) -> None:
    assert parcels_geopackage(island) == parcels_geopackage(island)
