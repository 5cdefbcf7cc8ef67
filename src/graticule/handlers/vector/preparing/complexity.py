"""How much work a polygon would be for GEOS, found out before it is done.

GEOS tests and repairs nearly all polygons in a time that grows with their vertices. With edges that cross or touch each
other very often it takes hours and gigabytes, and a small file can be made so. What is counted here is the cause, not
the time: the same file is rejected on every machine, or on none.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import shapely
from numpy.typing import NDArray

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected

MAX_MEETINGS: Final = 50_000  # of edges of one geometry that is repaired: a few seconds
MAX_MEETINGS_IN_FILE: Final = 250_000  # and one more for each vertex
MAX_PART_PAIRS: Final = 500_000  # parts of one geometry whose boxes overlap, each pair of which is compared
MAX_REPAIRED_VERTICES: Final = 1_000_000  # GEOS takes about 1 kB for each
_MAX_NEAR_EDGES: Final = 5_000_000
_LARGE: Final = 1_000  # vertices: any two edges of a smaller one can be compared
_MAX_BOXES: Final = 100_000
_NEIGHBOURS: Final = 50  # boxes that overlap one box of an ordinary outline, at most
_MAX_NEAR_IN_FILE: Final = 100_000_000  # pairs of edges beyond those: some seconds
_PAIRS_AT_ONCE: Final = 1_000_000  # in memory
_TRIVIAL: Final = 16  # vertices: not worth counting

Floats = NDArray[np.float64]


class ComplexityLimit:
    """Rejects features of a file that would keep a worker busy, alone or together."""

    def __init__(self) -> None:
        self._near = self._meetings = self._vertices = 0

    def count_vertices(self, count: int) -> None:
        """Count the vertices of a batch: a larger file may have more repairs."""
        self._vertices += count

    def check_large(self, geometries: Any, numbers: NDArray[np.intp]) -> None:
        """Reject a geometry that could not even be tested; these are the numbers of their features."""
        counts = shapely.get_num_coordinates(geometries)
        for place in np.flatnonzero(counts > _LARGE).tolist():
            self._near += count_near(geometries[place], _MAX_NEAR_IN_FILE - self._near)
            if self._near > _MAX_NEAR_IN_FILE:
                raise _too_complex(int(numbers[place]), "too many of its edges are near each other")

    def check_invalid(self, geometries: Any, numbers: NDArray[np.intp]) -> None:
        """Reject an invalid geometry that could not be repaired; these are the numbers of their features."""
        counts = shapely.get_num_coordinates(geometries)
        for place in np.flatnonzero(counts > _TRIVIAL).tolist():
            number = int(numbers[place])
            if counts[place] > MAX_REPAIRED_VERTICES:
                raise _too_complex(number, f"it is invalid and has more than {MAX_REPAIRED_VERTICES:,} vertices")
            met = meetings(geometries[place])
            self._meetings += met
            if met > MAX_MEETINGS:
                raise _too_complex(number, f"its edges cross or touch each other more than {MAX_MEETINGS:,} times")
            if self._meetings > MAX_MEETINGS_IN_FILE + self._vertices:
                raise _too_complex(number, "together with those before it, its edges cross or touch too often")


def count_near(geometry: Any, limit: int) -> int:
    """Return about how many pairs of edges a test of validity compares, beyond those of an ordinary outline."""
    edges = _edges(geometry)
    run = max(1, -(-len(edges) // _MAX_BOXES))
    boxes = _boxes(edges, run)
    ordinary = _NEIGHBOURS * len(boxes)
    return max(0, _count_pairs(boxes, ordinary + limit // run**2 + 1) - ordinary) * run**2


def meetings(geometry: Any) -> int:
    """Count how often edges of a geometry cross, or touch within one polygon; no further than is allowed.

    Parts of several polygons may have borders in common, which costs little.
    """
    polygons = _polygons(geometry)
    if _count_pairs(shapely.bounds(polygons), MAX_PART_PAIRS) > MAX_PART_PAIRS:
        return MAX_MEETINGS + 1
    count = _count_meetings(_edges(polygons), with_touches=False) if len(polygons) > 1 else 0
    for polygon in polygons[~shapely.is_valid(polygons)]:
        if count > MAX_MEETINGS:
            break
        edges = _edges(polygon)
        count += max(0, _count_meetings(edges, with_touches=True) - len(edges))  # each meets the next
    return count


def _count_meetings(edges: Floats, *, with_touches: bool) -> int:
    boxes = _boxes(edges, 1)
    if _count_pairs(boxes, _MAX_NEAR_EDGES) > _MAX_NEAR_EDGES:
        return len(edges) + MAX_MEETINGS + 1
    lines: Any = shapely.linestrings(edges)
    tree, count = shapely.STRtree(lines), 0
    for chunk in _chunks(boxes):
        first, second = tree.query(lines[chunk])
        first += chunk.start
        is_first_look = first < second
        met = _meet(edges[first[is_first_look]], edges[second[is_first_look]], with_touches=with_touches)
        count += int(np.count_nonzero(met))
        if count > len(edges) + MAX_MEETINGS:
            break
    return count


def _meet(first: Floats, second: Floats, *, with_touches: bool) -> NDArray[np.bool_]:
    """Return which edges cross, or at least touch, their counterparts; the boxes of each pair are known to overlap.

    Two edges cross when the ends of each lie on different sides of the other. GEOS compares them 40 times as slowly.
    """
    apart = np.maximum(
        _side_of(first, second[:, 0]) * _side_of(first, second[:, 1]),
        _side_of(second, first[:, 0]) * _side_of(second, first[:, 1]),
    )
    return apart <= 0 if with_touches else apart < 0


def _side_of(edges: Floats, points: Floats) -> Floats:
    """Return on which side of its edge each point lies: -1, 1, or 0 where it is in line with it."""
    along, towards = edges[:, 1] - edges[:, 0], points - edges[:, 0]
    sides: Floats = np.sign(along[:, 0] * towards[:, 1] - along[:, 1] * towards[:, 0])
    return sides


def _polygons(geometry: Any) -> Any:
    parts = np.atleast_1d(geometry)
    while (shapely.get_type_id(parts) > shapely.GeometryType.POLYGON).any():
        parts = shapely.get_parts(parts)
    return parts[shapely.get_type_id(parts) == shapely.GeometryType.POLYGON]


def _edges(geometries: Any) -> Floats:
    """Return the edges of polygons, each as its two ends; those without length are left out."""
    rings = shapely.get_rings(_polygons(geometries))
    ends, owners = shapely.get_coordinates(rings, return_index=True)
    edges = np.stack([ends[:-1], ends[1:]], axis=1)[owners[:-1] == owners[1:]]
    kept: Floats = edges[(edges[:, 0] != edges[:, 1]).any(axis=1)]
    return kept


def _boxes(edges: Floats, run: int) -> Floats:
    """Return the boxes around each so many edges in a row."""
    if not len(edges):
        return np.empty((0, 4))
    starts = np.arange(0, len(edges), run)
    least = np.minimum.reduceat(edges.min(axis=1), starts)
    most = np.maximum.reduceat(edges.max(axis=1), starts)
    return np.hstack([least, most])


def _count_pairs(boxes: Floats, limit: int) -> int:
    """Count the pairs of boxes that overlap, no further than to a limit."""
    shapes: Any = shapely.box(*boxes.T)
    tree, count = shapely.STRtree(shapes), 0
    for chunk in _chunks(boxes):
        count += tree.query(shapes[chunk]).shape[1] - len(shapes[chunk])  # without themselves
        if count > 2 * limit:
            break
    return count // 2


def _chunks(boxes: Floats) -> Iterator[slice]:
    """Divide boxes into chunks that are queried at once, by how many others each may overlap."""
    many = np.minimum(_count_overlaps(boxes[:, 0], boxes[:, 2]), _count_overlaps(boxes[:, 1], boxes[:, 3]))
    shares = np.cumsum(many) // _PAIRS_AT_ONCE
    starts = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), len(boxes)]
    for start, stop in pairwise(starts):
        yield slice(start, stop)


def _count_overlaps(least: Floats, most: Floats) -> NDArray[np.int64]:
    """Return with how many of the intervals each of them overlaps."""
    begun = np.searchsorted(np.sort(least), most, side="right")
    ended = np.searchsorted(np.sort(most), least, side="left")
    counts: NDArray[np.int64] = begun - ended
    return counts


def _too_complex(number: int, why: str) -> Rejected:
    return rejected(Code.GEOMETRY_TOO_COMPLEX, f"Feature {number} is too complex: {why}.", f"feature {number}")
