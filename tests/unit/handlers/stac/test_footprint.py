"""Where on the earth a grid lies."""

from typing import Any

import pytest
from pyproj import Transformer
from shapely.geometry import Point, shape
from tests.unit.handlers.stac.outputs import ACROSS, LONLAT, UTM

from graticule.handlers.stac.footprint import Footprint, footprint
from graticule.handlers.stac.inputs import Grid

POLAR = {"crs": "EPSG:3413", "transform": [1000.0, 0, -500e3, 0, -1000.0, 500e3], "width": 1000, "height": 1000}
FIJI = {"crs": "EPSG:32760", "transform": [1000.0, 0, 600e3, 0, -1000.0, 8.2e6], "width": 400, "height": 300}


def _shape(found: Footprint) -> Any:
    return shape(found.geometry)


def _of(grid: dict[str, Any], bbox: list[float] | None = None) -> Footprint:
    return footprint(Grid.model_validate(grid), bbox)


def test_a_grid_in_degrees_is_its_rectangle_against_the_clock() -> None:
    found = _of(LONLAT)
    assert found.bbox == [-62.0, 15.0, -58.0, 18.0]
    assert found.geometry["type"] == "Polygon"
    assert _shape(found).exterior.is_ccw
    assert _shape(found).bounds == (-62.0, 15.0, -58.0, 18.0)


def test_the_sides_of_a_projected_grid_bend() -> None:
    found = _of(UTM)
    place = _shape(found)
    corner = Transformer.from_crs("EPSG:32620", "EPSG:4326", always_xy=True).transform(504000, 1997000)
    assert place.distance(Point(corner)) < 1e-6
    assert list(place.bounds) == found.bbox
    assert place.is_valid
    assert len(found.geometry["coordinates"][0]) < 70


@pytest.mark.parametrize("grid", [ACROSS, FIJI])
def test_across_the_antimeridian_there_are_two_parts_and_west_is_greater_than_east(grid: dict[str, Any]) -> None:
    found = _of(grid)
    west, south, east, north = found.bbox
    assert west > 0 > east
    assert found.geometry["type"] == "MultiPolygon"
    parts = sorted(_shape(found).geoms, key=lambda part: part.bounds[0])
    assert [part.bounds[0] for part in parts] == pytest.approx([-180, west])
    assert [part.bounds[2] for part in parts] == pytest.approx([east, 180])
    assert all(part.is_valid and part.exterior.is_ccw for part in parts)
    assert south < north


def test_a_bbox_alone_is_cut_alike() -> None:
    assert footprint(None, [178.0, -18.0, -178.0, -15.0]) == _of(ACROSS)


def test_around_a_pole_the_bbox_is_taken() -> None:
    found = _of(POLAR, [-180.0, 83.0, 180.0, 90.0])
    assert found.bbox == [-180.0, 83.0, 180.0, 90.0]
    with pytest.raises(ValueError, match="pole"):
        _of(POLAR)


def test_all_around_the_earth_and_beyond_the_poles_is_the_whole_earth() -> None:
    grid = {"crs": "EPSG:4326", "transform": [1.0, 0, -180.5, 0, -1.0, 90.5], "width": 361, "height": 181}
    assert _of(grid).bbox == [-180.0, -90.0, 180.0, 90.0]
    assert _of(grid).geometry["type"] == "Polygon"
