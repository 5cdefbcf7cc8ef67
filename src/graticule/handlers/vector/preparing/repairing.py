"""Points, lines and polygons that are invalid, made valid.

GEOS takes a time that grows with the square of the parts when it repairs or unites very many together. So each part is
repaired by itself, and only those are united that share more than single points.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import shapely

from graticule.handlers.vector.preparing.wkb import Integers

_LINE, _AREA = 1, 2  # numbers of dimensions
_FLAT: Final = 1e-9  # of the room that a geometry takes: less area may be none
_SEVERAL: Final = (shapely.multipoints, shapely.multilinestrings, shapely.multipolygons)


def made_valid(geometry: Any) -> Any:
    """Make a geometry valid, or many; what has collapsed is left out."""
    return shapely.make_valid(geometry, method="structure", keep_collapsed=False)


def collapses(geometries: Any) -> Any:
    """Tell which invalid geometries nothing is left of when they are made valid: flat polygons, lines of no length."""
    sides = np.nan_to_num(shapely.bounds(geometries))
    room = (sides[:, 2] - sides[:, 0]) ** 2 + (sides[:, 3] - sides[:, 1]) ** 2
    found = ~shapely.is_empty(geometries) & (shapely.area(geometries) <= _FLAT * room)
    found[found] = shapely.is_empty(made_valid(geometries[found]))
    return found


def has_collapsing_parts(geometries: Any) -> Any:
    """Return which invalid geometries lose a whole part when they are made valid, such as a flat polygon of several."""
    parts, owners = geometries, np.arange(len(geometries))
    while (shapely.get_type_id(parts) > shapely.GeometryType.POLYGON).any():
        parts, places = shapely.get_parts(parts, return_index=True)
        owners = owners[places]
    is_invalid = ~shapely.is_valid(parts)
    found = np.zeros(len(geometries), bool)
    found[owners[is_invalid][collapses(parts[is_invalid])]] = True
    return found


def repaired_parts(geometry: Any) -> Any:
    """Make several points, lines or polygons valid; of what comes out, only parts of the same dimension are kept."""
    dimension = int(shapely.get_dimensions(geometry))
    parts = shapely.get_parts(geometry)
    is_invalid = ~shapely.is_valid(parts)
    parts[is_invalid] = made_valid(parts[is_invalid])
    made = _several(parts, dimension)
    if dimension < _AREA or shapely.is_valid(made):
        return made
    made = _several([shapely.union_all(each) for each in _groups(shapely.get_parts(made))], dimension)
    return made if shapely.is_valid(made) else _several([made_valid(made)], dimension)


def _several(geometries: Any, dimension: int) -> Any:
    """Put the single parts of a dimension together that are at any depth, and not empty."""
    singles = shapely.get_parts(shapely.get_parts(geometries))  # what GEOS makes has two levels at the most
    return _SEVERAL[dimension](singles[(shapely.get_dimensions(singles) == dimension) & ~shapely.is_empty(singles)])


def _groups(polygons: Any) -> Iterator[Any]:
    """Put polygons together that overlap or have a border in common, also by others between them."""
    tree, groups = shapely.STRtree(polygons), np.arange(len(polygons))
    for place, polygon in enumerate(polygons):
        near = tree.query(polygon)
        others = near[groups[near] != groups[place]]
        met = others[shapely.get_dimensions(shapely.intersection(polygon, polygons[others])) >= _LINE]
        if len(met):
            groups[_is_of(groups, groups[met])] = groups[place]
    order = np.argsort(groups, kind="stable")
    yield from np.split(polygons[order], np.flatnonzero(np.diff(groups[order])) + 1)


def _is_of(groups: Integers, chosen: Integers) -> Any:
    is_chosen = np.zeros(len(groups), bool)
    is_chosen[chosen] = True
    return is_chosen[groups]
