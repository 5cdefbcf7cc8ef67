"""Extents in degrees: every projection, and world layers whose bounds are off by a rounding error."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS, Transformer

from graticule.handlers.vector.extent import Box, extent_in_degrees, wrapped

FULL_DISK = "+proj=geos +h=35785831 +lon_0=0 +a=6378169 +b=6356583.8 +type=crs"
WORLD = (-180.0, -90.0, 180.0, 90.0)


def extent(crs: str, bounds: Box) -> Box:
    found = extent_in_degrees(CRS(crs), bounds)
    assert found is not None
    return wrapped(found)


@pytest.mark.parametrize(
    "crs",
    [
        *("EPSG:2154", "EPSG:9794", "EPSG:3034", "EPSG:3347", "EPSG:3978", "EPSG:3111", "EPSG:2263", "EPSG:2230"),
        *("EPSG:2278", "EPSG:26986", "EPSG:32119", "EPSG:31370", "EPSG:27700", "EPSG:5070", "EPSG:28992", "EPSG:2056"),
        *("EPSG:3031", "EPSG:3413", "EPSG:2065", "EPSG:3078", "EPSG:2193", "EPSG:2046", "EPSG:27561", "EPSG:4807"),
    ],
)
def test_a_box_in_the_middle_of_each_crs(crs: str) -> None:
    """Conic, polar and oblique projections, feet, west-oriented axes, grads and another prime meridian."""
    area = CRS(crs).area_of_use
    assert area is not None
    x, y = (area.west + area.east) / 2, (area.south + area.north) / 2
    east, north = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(x, y)
    side = 0.01 if CRS(crs).is_geographic else 1000
    west, south, beyond, above = extent(crs, (east - side, north - side, east + side, north + side))
    assert west < x < beyond
    assert south < y < above
    assert beyond - west < 1


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((-180.0, -90.0, 180.00000000000006, 83.6), (-180.0, -90.0, 180.0, 83.6)),
        ((-180.0, -90.00000000000003, 180.0, 83.6), (-180.0, -90.0, 180.0, 83.6)),
        ((-180.000015, -90.0, 180.0000004, 90.000003), WORLD),
        ((-180.0, 60.0, -150.0, 90.0001), (-180.0, 60.0, -150.0, 90.0)),
        ((-180.0, -89.9, 180.0033, 89.9), (-180.0, -89.9, 180.0, 89.9)),
        ((170.0, -5.0, 180.00000000000006, 5.0), (170.0, -5.0, 180.0, 5.0)),
        ((-180.00000000000006, -5.0, -170.0, 5.0), (-180.0, -5.0, -170.0, 5.0)),
        ((180.0, 0.0, 180.0, 0.0), (180.0, 0.0, 180.0, 0.0)),
        ((0.0, -90.0, 360.0, 90.0), WORLD),
        ((170.0, -5.0, 190.0, 5.0), (170.0, -5.0, -170.0, 5.0)),
        ((-190.0, -5.0, -170.0, 5.0), (170.0, -5.0, -170.0, 5.0)),
        ((181.0, -5.0, 182.0, 5.0), (-179.0, -5.0, -178.0, 5.0)),
        ((179.999999, -5.0, 185.0, 5.0), (-180.0, -5.0, -175.0, 5.0)),
    ],
)
def test_bounds_are_clamped_and_never_wrapped_by_a_rounding_error(bounds: Box, expected: Box) -> None:
    assert extent("EPSG:4326", bounds) == pytest.approx(expected)


@pytest.mark.parametrize("crs", ["EPSG:4267", "EPSG:4272", "EPSG:4258"])
def test_a_world_layer_of_another_datum_is_the_world(crs: str) -> None:
    assert extent(crs, (-180.0, -90.00000000000003, 180.00000000000006, 90.0)) == pytest.approx(WORLD, abs=0.01)


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:8857", "ESRI:54009", "ESRI:54030", "EPSG:6933", "EPSG:4087"])
def test_a_world_map_is_the_world(crs: str) -> None:
    to_map = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    west, south, east, north = extent(crs, to_map.transform_bounds(-180, -85, 180, 85, densify_pts=200))
    assert (west, east) == pytest.approx((-180, 180), abs=1)
    assert (south, north) == pytest.approx((-85, 85), abs=1)


@pytest.mark.parametrize(
    "crs",
    [
        *("ESRI:54009", "ESRI:54052", "ESRI:54008", "ESRI:54029", "ESRI:54042", "ESRI:54043", "ESRI:102016"),
        *("+proj=hammer +type=crs", "+proj=moll +lon_0=150 +type=crs", "+proj=igh +type=crs"),
    ],
)
def test_a_world_map_that_is_no_rectangle_is_the_world(crs: str) -> None:
    to_map = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    longitudes, latitudes = np.meshgrid(np.linspace(-180, 180, 361), np.linspace(-89.9, 89.9, 181))
    x, y = to_map.transform(longitudes.ravel(), latitudes.ravel())
    assert extent(crs, (x.min(), y.min(), x.max(), y.max())) == pytest.approx(WORLD, abs=3)


def test_a_full_disk_is_what_the_satellite_sees() -> None:
    west, south, east, north = extent(FULL_DISK, (-5.5e6, -5.5e6, 5.5e6, 5.5e6))
    assert (west, south, east, north) == pytest.approx((-80, -80, 80, 80), abs=5)


@pytest.mark.parametrize(
    ("crs", "bounds"),
    [
        ("EPSG:4326", (0.0, 0.0, 1.0, 90.01)),
        ("EPSG:4326", (0.0, 0.0, 361.0, 1.0)),
        ("EPSG:4326", (math.nan, 0.0, 1.0, 1.0)),
        ("EPSG:2154", (0.0, 0.0, math.inf, 1.0)),
        ("EPSG:32633", (1e9, 1e9, 2e9, 2e9)),
        (FULL_DISK, (6e6, 6e6, 7e6, 7e6)),
    ],
)
def test_what_lies_outside_the_domain_has_no_extent(crs: str, bounds: Box) -> None:
    assert extent_in_degrees(CRS(crs), bounds) is None


@given(st.floats(-360, 360), st.floats(0, 360), st.floats(-90, 90))
def test_a_wrapped_extent_is_the_same_part_of_the_globe(west: float, width: float, south: float) -> None:
    found_west, _, found_east, _ = wrapped((west, south, west + width, 90.0))
    assert -180 <= found_west <= 180
    assert -180 <= found_east <= 180
    if width < 359.9:
        found = found_east - found_west + (360 if found_east < found_west else 0)
        assert found == pytest.approx(width, abs=1e-4) or width < 1e-4
        assert math.sin(math.radians(found_west - west) / 2) == pytest.approx(0, abs=1e-6)
