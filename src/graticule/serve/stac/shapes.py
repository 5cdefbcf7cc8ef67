"""How large and how deep a value may be that a caller gives as JSON: looked at before anything else is."""

import math
from collections.abc import Iterable
from typing import Any, Final

MOST_DEPTH: Final = 64  # of the whole: a filter has two for each of its levels
MOST_VERTICES: Final = 10_000
_DEPTH_OF_COORDINATES: Final = 4  # of a MultiPolygon; the others have less
_COLLECTION: Final = "GeometryCollection"
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # what can be written as JSON for the database


def check_depth(value: Any) -> None:
    """Refuse what is nested too deep; the depth of the stack does not grow with it."""
    if _is_deeper(value, MOST_DEPTH):
        raise ValueError(f"Lists and objects are nested at most {MOST_DEPTH} times.")


def checked_vertices(geometry: Any) -> int:
    """Count the positions of a GeoJSON geometry.

    A collection within another one is refused: to write one, the library takes twice as long with each level.
    """
    if not isinstance(geometry, dict):
        raise ValueError("A shape is an object.")  # noqa: TRY004 - pydantic tells of no other kind
    if geometry.get("type") != _COLLECTION:
        return _positions(geometry.get("coordinates"))
    return sum(_positions(part.get("coordinates")) for part in _parts(geometry.get("geometries")))


def is_number(value: Any) -> bool:
    """Tell whether a value is a number that the database can read."""
    if isinstance(value, int):
        return not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _parts(geometries: Any) -> list[dict[str, Any]]:
    if not isinstance(geometries, list) or not all(isinstance(part, dict) for part in geometries):
        raise ValueError("The parts of a collection of shapes are shapes.")
    if any("geometries" in part or part.get("type") == _COLLECTION for part in geometries):
        raise ValueError("A collection of shapes has no other one in it.")
    return geometries


def _positions(coordinates: Any) -> int:
    """Count lists of numbers in lists of lists."""
    if _is_deeper(coordinates, _DEPTH_OF_COORDINATES):
        raise ValueError("The coordinates of a shape are nested too deep.")
    if not isinstance(coordinates, list) or not coordinates:
        raise ValueError("A shape has lists of numbers as coordinates.")
    if all(map(is_number, coordinates)):
        return 1
    return sum(map(_positions, coordinates))


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
