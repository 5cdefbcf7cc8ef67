"""The output's grid, and where it lies on the earth."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.crs import CRS
from rasterio.vrt import WarpedVRT
from tests.rasters import KINDS, make_raster

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.grid import OutputGrid, lonlat_bounds, output_grid
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.warp import opened_source

LONLAT = CRS.from_epsg(4326)


@dataclass(frozen=True)
class Place:
    """Where a raster lies."""

    crs: str
    west: float
    north: float
    pixel: float
    width: int
    height: int

    @property
    def bounds(self) -> list[float]:
        place = Affine(self.pixel, 0, self.west, 0, -self.pixel, self.north)
        return lonlat_bounds(CRS.from_user_input(self.crs), place, self.width, self.height)

    def in_pixels(self, width: int, height: int) -> Affine:
        size = self.pixel * self.width / width, self.pixel * self.height / height
        return Affine(size[0], 0, self.west, 0, -size[1], self.north)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"antimeridian"}))
def test_it_is_the_one_that_gdal_would_choose(name: str, tmp_path: Path) -> None:
    with rasterio.open(make_raster(tmp_path / "source.tif", name)) as dataset:
        grid = output_grid(dataset, LONLAT)
        with WarpedVRT(dataset, crs=LONLAT) as warped:
            assert (grid.transform, grid.width, grid.height) == (warped.transform, warped.width, warped.height)


def test_across_the_antimeridian_it_goes_on_beyond_180_degrees(tmp_path: Path) -> None:
    with rasterio.open(make_raster(tmp_path / "source.tif", "antimeridian")) as dataset:
        grid = output_grid(dataset, LONLAT)
    west, _, east, _ = grid.bounds()
    assert 178 < west < 180 < east < 182
    assert grid.width < 1000
    found = grid.bounds_4326()
    assert found[0] == pytest.approx(west)
    assert found[2] == pytest.approx(east - 360)


@pytest.mark.parametrize(
    "place",
    [
        Place("EPSG:6933", -17_367_530.45, 7_314_540.83, 25_025.26, 1388, 584),  # begins a hair west of -180
        Place("EPSG:3857", -20_037_508.35, 20_037_508.35, 100_187.54, 400, 400),
        Place("EPSG:4326", -180.25, 90.25, 0.5, 721, 361),
        Place("EPSG:4326", 0, 90, 1, 360, 180),
        Place("ESRI:54009", -18_040_000, 9_020_000, 20_000, 1804, 902),  # corners that are nowhere on the earth
    ],
)
def test_all_around_the_earth_is_not_across_the_antimeridian(place: Place, tmp_path: Path) -> None:
    west, south, east, north = place.bounds
    assert west == pytest.approx(-180, abs=2)
    assert east == pytest.approx(180, abs=2)
    assert -90 <= south < north <= 90
    path = tmp_path / "source.tif"
    make_raster(path, "dem", width=40, height=30, crs=place.crs, transform=place.in_pixels(40, 30))
    with rasterio.open(path) as dataset:
        assert output_grid(dataset, LONLAT).bounds()[2] < 362


def test_a_pole_inside_is_part_of_it() -> None:
    north, south = (Place(crs, -1_000_000, 1_000_000, 10_000, 200, 200).bounds for crs in ("EPSG:3413", "EPSG:3031"))
    assert (north[0], *north[2:]) == (-180, 180, 90)
    assert south[:3] == [-180, -90, 180]
    assert Place("EPSG:3413", 600_000, -850_000, 100, 300, 260).bounds[3] < 81


def test_what_lies_nowhere_has_no_bounds() -> None:
    assert all(map(math.isnan, Place("+proj=ortho +lat_0=0 +lon_0=0", 7e7, 7e7, 10, 10, 10).bounds))


def test_a_projection_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", "rgb", width=20_000, height=1, transform=Affine.rotation(45))
    with rasterio.open(path) as dataset, pytest.raises(Rejected) as refused:
        output_grid(dataset, LONLAT)
    assert refused.value.findings[0].code == "unusable_grid"


def _small(path: Path, crs: str, transform: Affine, width: int = 1, height: int = 1) -> Path:
    profile = {"crs": crs, "transform": transform, "width": width, "height": height, "count": 1, "dtype": "uint8"}
    with rasterio.open(path, "w", driver="GTiff", nodata=0, **profile) as dataset:
        dataset.write(np.full((1, height, width), 107, "uint8"))
    return path


@pytest.mark.parametrize("shape", [(1, 1), (20, 1)])
@pytest.mark.parametrize(
    ("crs", "corner"),
    [
        ("EPSG:3031", (500_403, 500_997)),  # a degree of latitude has 15 times as many metres as one of longitude
        ("EPSG:3413", (-300_000, -1_000_000)),
        ("EPSG:32733", (500_403, 500_997)),
        ("EPSG:28992", (195_000, 425_000)),
        ("EPSG:2154", (650_000, 6_850_000)),
    ],
)
def test_a_single_pixel_row_or_column_is_kept(
    tmp_path: Path, crs: str, corner: tuple[float, float], shape: tuple[int, int]
) -> None:
    path = _small(tmp_path / "a.tif", crs, Affine(5, 0, corner[0], 0, -5, corner[1]), *shape)
    with rasterio.open(path) as dataset:
        grid = output_grid(dataset, LONLAT)
    with opened_source(str(path), grid) as source:
        found = np.count_nonzero(source.read(grid.box).data)
    assert found >= 1
    assert shape != (1, 1) or (grid.width, grid.height) == (1, 1)


def test_a_grid_without_rows_is_refused(tmp_path: Path) -> None:
    path = _small(tmp_path / "a.tif", "EPSG:32733", Affine(198, 0, 500_403, 0, -198, 500_997), 3, 3)
    with rasterio.open(path) as dataset, pytest.raises(Rejected) as refused:
        output_grid(dataset, LONLAT)
    assert refused.value.findings[0].code == "unusable_grid"


def test_a_crs_that_contradicts_its_code_is_taken_by_its_definition(tmp_path: Path) -> None:
    """GDAL takes it by its definition, PROJ the datum by its code: a hundred metres apart."""
    wkt = CRS.from_epsg(28992).to_wkt().replace("299.1528128", "299.15281310608")
    path = _small(tmp_path / "a.tif", wkt, Affine(5, 0, 195_000, 0, -5, 425_000), 8, 6)
    with rasterio.open(path) as dataset:
        grid = output_grid(dataset, LONLAT)
    with opened_source(str(path), grid) as source:
        assert np.count_nonzero(source.read(grid.box).data) > 30


def test_a_part_lies_where_the_whole_has_it() -> None:
    grid = OutputGrid(LONLAT, Affine(0.5, 0, 10, 0, -0.5, 50), 100, 80)
    part = grid.part(Box(20, 10, 30, 40))
    assert part.bounds() == (20, 25, 35, 45)
    assert OutputGrid.from_json(part.to_json()) == part
