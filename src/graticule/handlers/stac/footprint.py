"""Where on the earth a grid lies, as GeoJSON: cut in two at the antimeridian, with a bbox whose west is then east."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pyproj import Transformer
from shapely import MultiPolygon, Polygon, affinity, box, normalize, set_precision
from shapely.geometry import mapping
from shapely.geometry.base import BaseGeometry
from shapely.geometry.polygon import orient

from graticule.handlers.stac.inputs import Grid

EDGE_POINTS: Final = 16  # on each side of a grid whose sides bend
NEAR: Final = 1e-6  # degrees: a side that bends less than this is straight
DIGITS: Final = 9  # of degrees: less than a millimetre
LONLAT: Final = ("EPSG:4326", "OGC:CRS84")
HALF_TURN: Final = 180.0
TURN: Final = 360.0
Ring = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Footprint:
    """A GeoJSON geometry, and its bbox."""

    geometry: dict[str, Any]
    bbox: list[float]


def footprint(grid: Grid | None, bbox: Sequence[float] | None) -> Footprint:
    """Give where a grid lies; its `bbox` is enough when there is no grid, or the grid contains a pole."""
    if grid is not None and grid.crs in LONLAT:
        return _of_box(grid.bounds())
    ring = None if grid is None else _outline(grid)
    if ring is not None:
        return _footprint(Polygon(ring).simplify(NEAR))
    if bbox is None:
        raise ValueError("A grid around a pole needs a bbox.")
    west, south, east, north = bbox
    return _of_box([west, south, east if east >= west else east + TURN, north])


def box_footprint(bbox: Sequence[float]) -> Footprint:
    """Give the footprint of features by their bbox, whose west may be greater than its east.

    One point has a bbox without an area, and so have points in a row: then it is no polygon.
    """
    west, south, east, north = (round(each, DIGITS) for each in bbox)
    spans = [(west, east)] if west <= east else [(west, HALF_TURN), (-HALF_TURN, east)]
    wide = [span for span in spans if span[0] < span[1]] or spans[:1]
    parts = [_box_coordinates(begin, south, end, north) for begin, end in wide]
    kind = parts[0][0]
    if len(parts) == 1:
        return Footprint({"type": kind, "coordinates": parts[0][1]}, [west, south, east, north])
    return Footprint({"type": f"Multi{kind}", "coordinates": [part for _, part in parts]}, [west, south, east, north])


def _box_coordinates(west: float, south: float, east: float, north: float) -> tuple[str, list[Any]]:
    if west < east and south < north:
        return "Polygon", [[[west, south], [east, south], [east, north], [west, north], [west, south]]]
    if west < east or south < north:
        return "LineString", [[west, south], [east, north]]
    return "Point", [west, south]


def _of_box(bounds: Sequence[float]) -> Footprint:
    """Give the footprint of a rectangle; one that needs no cut is made at once, for tiles are many."""
    west, south, east, north = (round(each, DIGITS) for each in bounds)
    if west < -HALF_TURN or east > HALF_TURN or south < -90 or north > 90:
        return _footprint(box(west, south, east, north))
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return Footprint({"type": "Polygon", "coordinates": [ring]}, [west, south, east, north])


def _outline(grid: Grid) -> Ring | None:
    """Walk around a grid in degrees, without a jump at the antimeridian; None when that leads around a pole."""
    to_lonlat = Transformer.from_crs(grid.crs, "OGC:CRS84", always_xy=True)
    walked = _walk(grid)
    xs, ys = to_lonlat.transform([x for x, _ in walked], [y for _, y in walked])
    if not all(map(math.isfinite, (*xs, *ys))):
        return None
    longitudes = _unwrapped(xs)
    closes = abs(longitudes[-1] - longitudes[0]) < HALF_TURN
    return list(zip(longitudes, ys, strict=True)) if closes else None


def _walk(grid: Grid) -> Ring:
    corners = [(0, 0), (0, grid.height), (grid.width, grid.height), (grid.width, 0), (0, 0)]
    steps = [place / EDGE_POINTS for place in range(EDGE_POINTS)]
    return [
        grid.point(column + (next_column - column) * step, row + (next_row - row) * step)
        for (column, row), (next_column, next_row) in pairwise(corners)
        for step in steps
    ] + [grid.point(0, 0)]


def _unwrapped(longitudes: Sequence[float]) -> list[float]:
    """Let longitudes go on beyond 180 instead of jumping to -180."""
    found = [longitudes[0]]
    for longitude in longitudes[1:]:
        found.append(longitude + TURN * round((found[-1] - longitude) / TURN))
    return found


def _footprint(outline: BaseGeometry) -> Footprint:
    west, _, east, _ = outline.bounds
    shape = affinity.translate(outline, -TURN * math.floor((west + HALF_TURN) / TURN))
    shape = set_precision(shape.intersection(box(-HALF_TURN, -90, HALF_TURN + TURN, 90)), 10**-DIGITS)
    if east - west >= TURN:
        return _whole(box(-HALF_TURN, shape.bounds[1], HALF_TURN, shape.bounds[3]))
    before = _polygons(shape.intersection(box(-HALF_TURN, -90, HALF_TURN, 90)))
    beyond = _polygons(affinity.translate(shape.intersection(box(HALF_TURN, -90, HALF_TURN + TURN, 90)), -TURN))
    if not before or not beyond:
        parts = before or beyond
        return _whole(parts[0] if len(parts) == 1 else MultiPolygon(parts))
    west, south, east, north = shape.bounds
    return Footprint(_geojson(MultiPolygon([*before, *beyond])), [west, south, round(east - TURN, DIGITS), north])


def _polygons(shape: BaseGeometry) -> list[Polygon]:
    """Give the areas of a shape: what touches a line only is no area."""
    return [part for part in getattr(shape, "geoms", [shape]) if isinstance(part, Polygon) and not part.is_empty]


def _whole(shape: Polygon | MultiPolygon) -> Footprint:
    return Footprint(_geojson(shape), list(shape.bounds))


def _geojson(shape: Polygon | MultiPolygon) -> dict[str, Any]:
    """Give GeoJSON as its standard wants it: the outer ring runs against the clock."""
    ordered = normalize(shape)
    if isinstance(ordered, Polygon):
        return _plain(mapping(orient(ordered)))
    return _plain(mapping(MultiPolygon([orient(part) for part in ordered.geoms])))


def _plain(geometry: Any) -> dict[str, Any]:
    def lists(value: Any) -> Any:
        return [lists(each) for each in value] if isinstance(value, tuple | list) else value

    return {"type": geometry["type"], "coordinates": lists(geometry["coordinates"])}
