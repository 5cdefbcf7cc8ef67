"""Geometries that a caller gives: checked here, since the database tells of its errors late and in many ways."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from graticule.serve.features.limits import MOST_VERTICES, FilterError
from graticule.serve.served import Box
from graticule.serve.tilesets import CRS84

# How deep the positions lie in the coordinates of each kind.
_LEVELS: Final = {
    "Point": 0,
    "MultiPoint": 1,
    "LineString": 1,
    "MultiLineString": 2,
    "Polygon": 2,
    "MultiPolygon": 3,
}
_FEWEST: Final = {"LineString": 2, "MultiLineString": 2, "Polygon": 4, "MultiPolygon": 4}
_AREAS: Final = frozenset({"Polygon", "MultiPolygon"})
MAX_COORDINATE: Final = 1e9  # in whatever unit a CRS has
DEGREES: Final = 4326
LARGEST_INTEGER: Final = 2**63  # what is larger may be more than a number of PostgreSQL holds


@dataclass(frozen=True, slots=True)
class FeatureCrs:
    """A CRS as clients name it, and as PostGIS does."""

    uri: str
    srid: int
    is_north_first: bool  # its coordinates are latitude or northing first; in PostGIS they never are

    @property
    def content_crs(self) -> dict[str, str]:
        """The header that tells the CRS of an answer."""
        return {"Content-Crs": f"<{self.uri}>"}


DEFAULT_CRS: Final = FeatureCrs(CRS84, DEGREES, is_north_first=False)


def checked_geometry(
    geometry: dict[str, Any], crs: FeatureCrs = DEFAULT_CRS, *, nested: bool = False
) -> tuple[dict[str, Any], int]:
    """Give a geometry of GeoJSON with nothing in it but what belongs there, and the number of its vertices."""
    kind = geometry.get("type")
    if kind == "GeometryCollection" and not nested:
        return _checked_collection(geometry.get("geometries"), crs)
    if kind not in _LEVELS:
        raise FilterError("A geometry is a Point, LineString, Polygon, or a Multi… or a GeometryCollection of them.")
    coordinates = geometry.get("coordinates")
    lines = list(_lines(coordinates, _LEVELS[kind]))
    vertices = sum(map(len, lines))
    if vertices > MOST_VERTICES:
        raise FilterError(f"The geometries of a filter have at most {MOST_VERTICES} vertices.")
    for line in lines:
        _check_line(line, kind, crs)
    return {"type": kind, "coordinates": coordinates}, vertices


def checked_box(bounds: Any, crs: FeatureCrs = DEFAULT_CRS) -> Box:
    """Return west, south, east and north of a box, which may have heights and is in the axis order of its CRS.

    In degrees, west > east across the antimeridian.
    """
    if not isinstance(bounds, list) or len(bounds) not in {4, 6} or not all(map(_is_number, bounds)):
        raise FilterError("A box has four numbers: west, south, east, north (or six, with heights).")
    low, high = bounds[:2], bounds[len(bounds) // 2 :][:2]
    for corner in (low, high):
        _check_position(corner, crs)
    (west, south), (east, north) = (low[::-1], high[::-1]) if crs.is_north_first else (low, high)
    if south > north:
        raise FilterError("The south of a box must not lie north of its north.")
    if west > east and crs.srid != DEGREES:
        raise FilterError("The west side of a bbox must not be east of its east side in this CRS.")
    return float(west), float(south), float(east), float(north)


def parts_of(box: Box) -> list[Box]:
    """Cut a box at the antimeridian."""
    west, south, east, north = box
    return [box] if west <= east else [(west, south, 180.0, north), (-180.0, south, east, north)]


def box_as_geometry(box: Box) -> dict[str, Any]:
    """Give a box as a geometry."""
    rings = [[[[w, s], [e, s], [e, n], [w, n], [w, s]]] for w, s, e, n in parts_of(box)]
    return {"type": "MultiPolygon", "coordinates": rings}


def _checked_collection(geometries: Any, crs: FeatureCrs) -> tuple[dict[str, Any], int]:
    if not isinstance(geometries, list) or not geometries:
        raise FilterError("A GeometryCollection has geometries.")
    if not all(isinstance(each, dict) for each in geometries):
        raise FilterError("The members of a GeometryCollection are geometries.")
    checked = [checked_geometry(each, crs, nested=True) for each in geometries]
    whole = {"type": "GeometryCollection", "geometries": [geometry for geometry, _ in checked]}
    return whole, sum(vertices for _, vertices in checked)


def _lines(coordinates: Any, level: int) -> Iterator[list[Any]]:
    """Give the rows of positions; a single position is a row of one."""
    if level == 0:
        yield [coordinates]
        return
    if not isinstance(coordinates, list) or not coordinates:
        raise FilterError("The coordinates of a geometry do not fit its type.")
    if level == 1:
        yield coordinates
        return
    for part in coordinates:
        yield from _lines(part, level - 1)


def _check_line(line: list[Any], kind: str, crs: FeatureCrs) -> None:
    for position in line:
        _check_position(position, crs)
    if len(line) < _FEWEST.get(kind, 1):
        raise FilterError(f"A line of a {kind} has at least {_FEWEST[kind]} positions.")
    if kind in _AREAS and line[0] != line[-1]:
        raise FilterError("A ring ends where it begins.")


def _check_position(position: Any, crs: FeatureCrs) -> None:
    if not isinstance(position, list) or len(position) not in {2, 3} or not all(map(_is_number, position)):
        raise FilterError("A position has two or three numbers.")
    x, y = position[1::-1] if crs.is_north_first else position[:2]
    if crs.srid == DEGREES and (abs(x) > 180 or abs(y) > 90):
        raise FilterError("Positions are longitude and latitude in degrees: within ±180 and ±90.")
    if max(abs(x), abs(y)) > MAX_COORDINATE:
        raise FilterError(f"The coordinates of a position are within ±{MAX_COORDINATE:g}.")


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    return isinstance(value, float) and math.isfinite(value)
