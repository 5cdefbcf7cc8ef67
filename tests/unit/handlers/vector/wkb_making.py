"""Well-known binary as others may write it: in both orders of bytes, in the words of ISO and of PostGIS."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from hypothesis import strategies as st

POINT, LINE, POLYGON, COLLECTION = 1, 2, 3, 7


@dataclass(frozen=True)
class Style:
    """How a geometry is written."""

    order: str = "<"
    is_extended: bool = False
    has_z: bool = False
    has_m: bool = False

    def head(self, kind: int, count: int | None = None) -> bytes:
        """Write what stands before the vertices or members."""
        code = kind + 1000 * self.has_z + 2000 * self.has_m
        if self.is_extended:
            code = kind | 0x80000000 * self.has_z | 0x40000000 * self.has_m
        head = struct.pack(f"{self.order}BI", self.order == "<", code)
        return head if count is None else head + struct.pack(f"{self.order}I", count)

    def vertices(self, places: list[tuple[float, float]]) -> bytes:
        """Write vertices; heights and measures tell which vertex it is."""
        rows = []
        for number, (x, y) in enumerate(places):
            rows.append([x, y, *([100.0 + number] if self.has_z else []), *([-1.0 - number] if self.has_m else [])])
        return np.array(rows, f"{self.order}f8").tobytes()


@dataclass(frozen=True)
class Made:
    """A geometry to be written: rings, or members."""

    kind: int
    rings: list[list[tuple[float, float]]] = field(default_factory=list)
    members: "list[Made]" = field(default_factory=list)

    def wkb(self, style: Style) -> bytes:
        """Write it."""
        if self.kind == POINT:
            return style.head(POINT) + style.vertices(self.rings[0] if self.rings else [(float("nan"),) * 2])
        if self.kind == LINE:
            places = self.rings[0] if self.rings else []
            return style.head(LINE, len(places)) + style.vertices(places)
        if self.kind == POLYGON:
            counted = (struct.pack(f"{style.order}I", len(ring)) + style.vertices(ring) for ring in self.rings)
            return style.head(POLYGON, len(self.rings)) + b"".join(counted)
        return style.head(self.kind, len(self.members)) + b"".join(member.wkb(style) for member in self.members)


def square(x: float, y: float, size: float = 1, *, is_hole: bool = False) -> list[tuple[float, float]]:
    """Give a closed ring."""
    ring = [(x, y), (x + size, y), (x + size, y + size), (x, y + size), (x, y)]
    return ring[::-1] if is_hole else ring


def _single(kind: int) -> Callable[[int], "st.SearchStrategy[Made]"]:
    """Give valid geometries of a type, which fit into a cell of a grid, by the number of the cell."""

    def at(cell: int) -> "st.SearchStrategy[Made]":
        offset = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda by: (cell * 20 + by[0], by[1]))
        if kind == POINT:
            return offset.map(lambda place: Made(POINT, [[place]]))
        if kind == LINE:
            steps = st.integers(2, 6)
            return st.builds(lambda p, n: Made(LINE, [[(p[0] + i, p[1] + i * i) for i in range(n)]]), offset, steps)
        return st.builds(_holed, offset, st.integers(0, 3))

    return at


def _holed(place: tuple[float, float], holes: int) -> Made:
    x, y = place
    inner = [square(x + 1 + 3 * each, y + 1, is_hole=True) for each in range(holes)]
    return Made(POLYGON, [square(x, y, 12), *inner])


@st.composite
def geometries(draw: st.DrawFn, kinds: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)) -> Made:
    """Give geometries, some of them empty."""
    kind = draw(st.sampled_from(kinds))
    if kind <= POLYGON:
        return draw(st.one_of(st.just(Made(kind)), _single(kind)(0)))
    if kind < COLLECTION:
        count = draw(st.integers(0, 4))
        return Made(kind, members=[draw(_single(kind - 3)(cell)) for cell in range(count)])
    depth = draw(st.integers(0, 2))
    members = draw(st.lists(geometries(kinds=(1, 2, 3, 4, 5, 6)), max_size=3))
    made = Made(COLLECTION, members=members)
    for _ in range(depth):
        made = Made(COLLECTION, members=[made])
    return made


def styles(**chosen: bool) -> "st.SearchStrategy[Style]":
    """Give ways to write a geometry."""
    flags = {name: st.booleans() for name in ("is_extended", "has_z", "has_m")}
    return st.builds(Style, st.sampled_from("<>"), **{**flags, **{k: st.just(v) for k, v in chosen.items()}})


def column(values: list[bytes | None]) -> pa.Array:
    """Give WKB as a column that begins and ends within its buffers, as those of a file may."""
    return pa.array([b"before", *values, b"after"], pa.binary())[1:-1]


def read_all(wkb: pa.Array) -> Any:
    """Read a column with shapely."""
    return shapely.from_wkb(wkb.to_numpy(zero_copy_only=False))


def flattened(geometry: Any) -> list[tuple[str, list[Any]]]:
    """Give the single parts that are not empty, each with the vertices of its rings: x, y, z, m."""
    parts = shapely.get_parts(geometry)
    if geometry.geom_type.startswith(("Multi", "Geometry")):
        return [each for part in parts for each in flattened(part)]
    if geometry.is_empty:
        return []
    rings = shapely.get_rings(geometry) if geometry.geom_type == "Polygon" else [geometry]
    return [(geometry.geom_type, [shapely.get_coordinates(r, include_z=True, include_m=True) for r in rings])]
