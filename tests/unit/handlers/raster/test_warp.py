"""Pixels on the output's grid: those of one exact pass of GDAL's warper, whatever the boxes that are asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyproj import Transformer
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.vrt import WarpedVRT
from tests.rasters import KINDS, make_raster

from graticule.handlers.raster import warp
from graticule.handlers.raster.grid import OutputGrid, applied, output_grid
from graticule.handlers.raster.opening import gdal_environment
from graticule.handlers.raster.pixels import Box, Pixels
from graticule.handlers.raster.warp import Nearest, Plain, Warped, needs_mask, opened_source

LONLAT = CRS.from_epsg(4326)


def grid_of(path: Path, crs: CRS | None = LONLAT) -> OutputGrid:
    with rasterio.open(path) as dataset:
        return output_grid(dataset, crs)


def one_pass(path: Path, grid: OutputGrid, resampling: str = "nearest") -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Give what GDAL's warper makes of the whole, every pixel transformed by itself."""
    with rasterio.open(path) as dataset:
        with_mask = needs_mask(dataset, grid)
        options = {"transform": grid.transform, "width": grid.width, "height": grid.height, "add_alpha": with_mask}
        with WarpedVRT(dataset, crs=grid.crs, resampling=Resampling[resampling], tolerance=1e-9, **options) as warped:
            data = warped.read()
    return (data[:-1], data[-1] != 0) if with_mask else (data, None)


def in_pieces(path: Path, grid: OutputGrid, step: int, resampling: str = "nearest") -> Pixels:
    """Put the whole together from boxes."""
    with opened_source(str(path), grid, resampling=resampling) as source:
        first = source.read(Box(0, 0, 1, 1))
        data = np.zeros((len(first.data), grid.height, grid.width), first.data.dtype)
        valid = None if first.valid is None else np.zeros((grid.height, grid.width), bool)
        for row in range(0, grid.height, step):
            for column in range(0, grid.width, step):
                box = Box(column, row, min(step, grid.width - column), min(step, grid.height - row))
                found = source.read(box)
                here = np.s_[..., row : row + box.height, column : column + box.width]
                data[here] = found.data
                if valid is not None:
                    valid[here] = found.valid
    return Pixels(data, valid)


@pytest.mark.parametrize("step", [97, 4096])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_pieces_equal_one_exact_pass_of_gdal(name: str, step: int, tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", name)
    grid = grid_of(path)
    data, valid = one_pass(path, grid)
    found = in_pieces(path, grid, step)
    np.testing.assert_array_equal(found.data, data)
    if valid is None:
        assert found.valid is None
    else:
        np.testing.assert_array_equal(found.valid, valid)


@pytest.mark.parametrize("target", ["EPSG:3857", "EPSG:3413", "EPSG:32619", "ESRI:54009"])
def test_other_projections(target: str, tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", "multispectral")
    grid = grid_of(path, CRS.from_user_input(target))
    np.testing.assert_array_equal(in_pieces(path, grid, 128).data, one_pass(path, grid)[0])


@pytest.mark.parametrize(
    ("crs", "origin"),
    [
        ("EPSG:26918", (500_000, 4_500_000)),
        ("EPSG:27700", (400_000, 300_000)),
        ("EPSG:3035", (4_321_000, 3_210_000)),
        ("EPSG:28992", (155_000, 463_000)),
        ("EPSG:31467", (3_500_000, 5_400_000)),
        ("EPSG:2263", (1_000_000, 200_000)),
    ],
)
def test_grids_of_nations_whose_datums_have_several_ways(crs: str, origin: tuple[float, float], tmp_path: Path) -> None:
    place = Affine(10, 0, origin[0], 0, -10, origin[1])
    path = make_raster(tmp_path / "source.tif", "multispectral", crs=crs, transform=place)
    grid = grid_of(path)
    with opened_source(str(path), grid) as source:
        assert type(source) is Nearest
    np.testing.assert_array_equal(in_pieces(path, grid, 128).data, one_pass(path, grid)[0])


@pytest.mark.parametrize(
    ("crs", "origin"),
    [
        ("EPSG:5221", (-544_005, -1_144_001)),  # counted from Ferro
        ("EPSG:3396", (3_585_093, 5_647_337)),  # the direct way needs a grid that is not here
        ("EPSG:20824", (499_324, 8_544_219)),  # in the areas of two ways
        ("EPSG:5643", (510_340, 594_734)),
        ("EPSG:26632", (680_927, 128_226)),  # its datum has an apostrophe, which WKT 1 loses
    ],
)
def test_metres_are_where_proj_has_them(crs: str, origin: tuple[float, float], tmp_path: Path) -> None:
    place = Affine(1, 0, origin[0], 0, -1, origin[1])
    path = make_raster(tmp_path / "source.tif", "multispectral", width=8, height=6, crs=crs, transform=place)
    to_degrees = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    with gdal_environment(64):
        grid = grid_of(path)
        made = in_pieces(path, grid, 128)
    west, _, _, north = to_degrees.transform_bounds(origin[0], origin[1] - 6, origin[0] + 8, origin[1])
    assert (grid.transform.c, grid.transform.f) == pytest.approx((west, north), abs=1e-7)
    down, right = ((axis[made.valid] + 0.5).astype(np.float64) for axis in np.indices((grid.height, grid.width)))
    xs, ys = to_degrees.transform(*applied(grid.transform, right, down), direction="INVERSE")
    with rasterio.open(path) as dataset:
        wanted = dataset.read()[:, np.floor(origin[1] - ys).astype(int), np.floor(xs - origin[0]).astype(int)]
    assert made.data[:, made.valid].tolist() == wanted.tolist()
    assert wanted.size


@pytest.mark.parametrize("resampling", ["bilinear", "cubic", "average"])
def test_what_blends_fits_together_within_a_unit(resampling: str, tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", "rgb")
    grid = grid_of(path)
    found, whole = in_pieces(path, grid, 128, resampling), one_pass(path, grid, resampling)[0]
    assert np.abs(found.data.astype(int) - whole.astype(int)).max() <= 1


def test_a_mask_goes_along(tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", "rgb")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as dataset:
        mask = np.full(dataset.shape, 255, "uint8")
        mask[40:90, 100:160] = 0
        dataset.write_mask(mask)
    grid = grid_of(path)
    data, valid = one_pass(path, grid)
    found = in_pieces(path, grid, 77)
    np.testing.assert_array_equal(found.valid, valid)
    np.testing.assert_array_equal(found.data * found.valid, data * valid)
    assert valid is not None
    assert 0 < valid.mean() < 1


def test_pixels_that_are_on_the_border_of_two_fall_where_gdal_lets_them_fall(tmp_path: Path) -> None:
    """Twice the pixels in the same projection: every second centre lies near a border, all edges on one."""
    path = make_raster(tmp_path / "source.tif", "rgb", width=90, height=70)
    with rasterio.open(path) as dataset:
        half = OutputGrid(dataset.crs, dataset.transform @ Affine.scale(0.5), 180, 140)
        shifted = OutputGrid(dataset.crs, dataset.transform @ Affine.translation(-10.5, -3.5), 120, 90)
    for grid in (half, shifted):
        np.testing.assert_array_equal(in_pieces(path, grid, 50).data, one_pass(path, grid)[0])


def test_a_turned_raster_is_set_upright(tmp_path: Path) -> None:
    turned = Affine.translation(500_000, 2_000_000) @ Affine.rotation(30) @ Affine.scale(10, -10)
    path = make_raster(tmp_path / "source.tif", "rgb", transform=turned)
    grid = grid_of(path)
    np.testing.assert_array_equal(in_pieces(path, grid, 100).data, one_pass(path, grid)[0])


def test_projections_that_end_are_transformed_pixel_by_pixel(tmp_path: Path) -> None:
    """A grid far beyond what the source's projection can tell of."""
    path = make_raster(tmp_path / "source.tif", "dem")
    grid = OutputGrid(
        CRS.from_user_input("+proj=ortho +lat_0=10 +lon_0=-60"), Affine(60_000, 0, -7e6, 0, -60_000, 7e6), 230, 230
    )
    found = in_pieces(path, grid, 64)
    np.testing.assert_array_equal(found.data, one_pass(path, grid)[0])


def test_neighbours_that_are_far_apart_are_taken_in_smaller_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_raster(tmp_path / "source.tif", "arctic")
    grid = grid_of(path)
    monkeypatch.setattr(warp, "FARTHEST", 100)
    np.testing.assert_array_equal(in_pieces(path, grid, 4096).data, one_pass(path, grid)[0])


def test_the_shortest_way_is_taken(tmp_path: Path) -> None:
    path = make_raster(tmp_path / "source.tif", "rgb", width=40, height=40)
    own, other = grid_of(path, None), grid_of(path)
    wide = Affine(2, 0, -140, 0, -1, 60)  # beyond the area of any one way between the datums
    shifted_datum = make_raster(tmp_path / "nad27.tif", "rgb", width=40, height=40, crs="EPSG:4267", transform=wide)
    for file, grid, resampling, kind in (
        (path, own, "nearest", Plain),
        (path, other, "nearest", Nearest),
        (path, other, "bilinear", Warped),
        (shifted_datum, grid_of(shifted_datum), "nearest", Warped),
    ):
        with opened_source(str(file), grid, resampling=resampling) as source:
            assert type(source) is kind


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_box_does_not_depend_on_the_boxes_around_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "boxes" / "source.tif"
    if not path.exists():
        make_raster(path, "rgb", width=200, height=180)
    grid = grid_of(path)
    column, row = data.draw(st.integers(0, grid.width - 1)), data.draw(st.integers(0, grid.height - 1))
    box = Box(column, row, data.draw(st.integers(1, grid.width - column)), data.draw(st.integers(1, grid.height - row)))
    with opened_source(str(path), grid) as source:
        part, whole = source.read(box), source.read(grid.box)
    here = np.s_[..., row : row + box.height, column : column + box.width]
    np.testing.assert_array_equal(part.data, whole.data[here])
    assert part.valid is not None
    assert whole.valid is not None
    np.testing.assert_array_equal(part.valid, whole.valid[here])


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857"])
def test_nodata_stands_for_the_mask_of_a_raster_that_has_both(tmp_path: Path, crs: str) -> None:
    path, data = tmp_path / "a.tif", np.full((1, 64, 64), 5, "uint8")
    options = {"width": 64, "height": 64, "count": 1, "dtype": "uint8", "nodata": 255}
    place = {"crs": "EPSG:4326", "transform": Affine(0.01, 0, 10, 0, -0.01, 50)}
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", "GTiff", **options, **place) as dataset:
        dataset.write(data)
        dataset.write_mask(np.arange(64) % 64 >= np.full((64, 1), 32))
    grid = grid_of(path, CRS.from_string(crs))
    pixels = in_pieces(path, grid, 4096)
    assert pixels.valid is None
    assert (pixels.data[0, :, : grid.width // 2 - 1] == 255).all()
    assert (pixels.data[0, 2:-2, grid.width // 2 + 1 : -2] == 5).all()
