"""Well-known binary, read and written for whole batches at once.

`scanned` finds the coordinates of plain geometries with a few operations of numpy, however many there are. What is
plain it decides by itself and never trusts a count: all else is left to who reads one geometry after the other.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from graticule.handlers.vector.preparing.curves import MAX_VERTICES, TooManyVertices, linearize

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

POINT, LINE, POLYGON, COLLECTION = 1, 2, 3, 7
TO_MULTI: Final = 3  # from the code of a single part to that of several
MOST_ROUNDS: Final = 100  # rings or parts of a plain geometry
_PAIR: Final = "V16"
_HEADER: Final = 5  # bytes: the order of bytes and the code of the type
_COUNT: Final = 4
_DIMENSIONS: Final = 1000  # codes of ISO: Z adds one of these, M two
_Z, _M = 1, 2
_EWKB_Z, _EWKB_M, _EWKB_SRID = 4, 2, 1  # the flags of PostGIS: the highest bits of a code
_LAST_KIND: Final = 17  # of those that WKB has: a triangle
CIRCULAR_STRING, COMPOUND_CURVE, CURVE_POLYGON, MULTI_CURVE, MULTI_SURFACE = 8, 9, 10, 11, 12
_CURVES: Final = range(CIRCULAR_STRING, MULTI_SURFACE + 1)
_LINEAR: Final = {  # what curves become, and what their members must have become
    COMPOUND_CURVE: (LINE, LINE),
    CURVE_POLYGON: (POLYGON, LINE),
    MULTI_CURVE: (LINE + TO_MULTI, LINE),
    MULTI_SURFACE: (POLYGON + TO_MULTI, POLYGON),
}
DEEPEST: Final = 32  # levels of a geometry, as GDAL has it
_STRIDES: Final = np.array([16, 24, 24, 32], np.int64)  # bytes of a vertex by its dimensions


@dataclass(frozen=True)
class Bytes:
    """An array of WKB as its bytes, which can be written to, and the place of each geometry in them.

    Only coordinates are written: what the geometries are, and how long, stays.
    """

    data: NDArray[np.uint8]
    offsets: Integers
    is_null: Flags

    @classmethod
    def of(cls, column: pa.Array) -> "Bytes":
        """Copy the bytes of a column."""
        column = column.cast(pa.large_binary())
        _, offsets_buffer, data_buffer = column.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
        used = slice(int(offsets[0]), int(offsets[-1]))
        data = np.frombuffer(data_buffer, np.uint8)[used] if data_buffer is not None else np.empty(0, np.uint8)
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        return cls(data.copy(), offsets - offsets[0], is_null)

    def column(self) -> pa.Array:
        """Give them as an array, which shares the bytes."""
        buffers = [self._validity(), pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self.is_null), buffers)

    @cached_property
    def codes(self) -> Integers:
        """The code of the type of each; 0 where there is none, or in another order of bytes."""
        is_long = (np.diff(self.offsets) >= _HEADER + _COUNT) & ~self.is_null
        at = np.where(is_long, self.offsets[:-1], 0)
        if not is_long.any():
            return np.zeros(len(is_long), np.int64)
        return np.where(is_long & (self.data[at] == 1), self.words[at + 1].astype(np.int64), 0)

    def may_have_curves(self) -> Integers:
        """Return the places of curves, surfaces and collections, in either order of bytes and with PostGIS's flags."""
        is_long = (np.diff(self.offsets) >= _HEADER + _COUNT) & ~self.is_null
        places = np.flatnonzero(is_long)
        at = self.offsets[places]
        words = self.words[at + 1]
        codes = np.where(self.data[at] == 1, words, words.byteswap()).astype(np.int64)
        kinds = (codes & 0x1FFFFFFF) % _DIMENSIONS
        found: Integers = places[(kinds >= COLLECTION) & (kinds <= _LAST_KIND)]
        return found

    @property
    def kinds(self) -> Integers:
        """The type of each, without its dimensions."""
        return self.codes % _DIMENSIONS

    @property
    def words(self) -> NDArray[np.uint32]:
        """The unsigned integer that begins at each byte."""
        return np.ndarray((max(len(self.data) - 3, 0),), "<u4", self.data, strides=(1,))

    def coordinates(self, at: Integers) -> Floats:
        """Give x and y of the vertices that begin at some bytes."""
        found: Floats = self._pairs[at].view("<f8").reshape(-1, 2)
        return found

    def place(self, at: Integers, x: Floats, y: Floats) -> None:
        """Put the vertices that begin at some bytes elsewhere."""
        self._pairs[at] = np.column_stack([x, y]).astype("<f8", copy=False).view(_PAIR).ravel()

    @property
    def _pairs(self) -> Any:
        """The 16 bytes that begin at each byte; numpy copies such faster than numbers that are not aligned."""
        return np.ndarray((max(len(self.data) - 15, 0),), _PAIR, self.data, strides=(1,))

    def _validity(self) -> pa.Buffer | None:
        if not self.is_null.any():
            return None
        return pa.py_buffer(np.packbits(~self.is_null, bitorder="little"))


@dataclass(frozen=True, slots=True)
class Runs:
    """Vertices that follow each other in the bytes: the first byte, their number, and whose they are."""

    starts: Integers
    counts: Integers
    features: Integers

    def positions(self, stride: int) -> Integers:
        """Give the byte at which each vertex begins."""
        ends = np.cumsum(self.counts)
        before = ends - self.counts
        every = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
        return np.repeat(self.starts - stride * before, self.counts) + stride * every

    def owners(self) -> Integers:
        """Give the feature of each vertex."""
        return np.repeat(self.features, self.counts)

    def has_next(self) -> Flags:
        """Tell which vertices are followed by one of the same run."""
        followed = np.ones(int(self.counts.sum()), bool)
        followed[np.cumsum(self.counts) - 1] = False
        return followed

    def of(self, is_chosen: Flags) -> "Runs":
        """Give those of some features."""
        kept = is_chosen[self.features]
        return Runs(self.starts[kept], self.counts[kept], self.features[kept])

    @classmethod
    def joined(cls, parts: "Iterable[Runs]") -> "Runs":
        """Put runs together, in the order of the bytes."""
        several = [part for part in parts if len(part.starts)]
        if not several:
            none = np.empty(0, np.int64)
            return cls(none, none, none)
        joined = [
            np.concatenate(each) for each in zip(*((p.starts, p.counts, p.features) for p in several), strict=True)
        ]
        order = np.argsort(joined[0], kind="stable") if len(several) > 1 else slice(None)
        return cls(*(each[order] for each in joined))


def code_of(kind: int, *, has_z: bool, has_m: bool) -> int:
    """Give the code of a type with its dimensions."""
    return kind + _DIMENSIONS * (_Z * has_z + _M * has_m)


def several_of(kind: int) -> int:
    """Give the type that has several parts of a type, or is one that has."""
    return kind + TO_MULTI if kind <= POLYGON else kind


def scanned(given: Bytes) -> tuple[Flags, Runs]:
    """Tell which geometries are plain, and where their vertices are.

    Plain is a point, line, polygon or several of these, little-endian, that has no empty part, no more rings than
    `MOST_ROUNDS` and exactly the bytes that it says.
    """
    codes, kinds, dimensions = given.codes, given.kinds, given.codes // _DIMENSIONS
    is_plain = (kinds >= POINT) & (kinds <= POLYGON + TO_MULTI) & (dimensions < len(_STRIDES))
    if not is_plain.any():
        return is_plain, Runs.joined([])
    scan = _Scan(given, codes, is_plain)
    is_point = (kinds == POINT) | (kinds == POINT + TO_MULTI)
    runs = Runs.joined(
        [scan.points(np.flatnonzero(is_plain & is_point)), *scan.rings(np.flatnonzero(is_plain & ~is_point))]
    )
    return is_plain, runs if is_plain[runs.features].all() else runs.of(is_plain)


class _Scan:
    """A walk through all geometries at once; what turns out not to be plain is marked and left."""

    def __init__(self, given: Bytes, codes: Integers, is_plain: Flags) -> None:
        self._data, self._words, self._is_plain = given.data, given.words, is_plain
        self._ends = given.offsets[1:]
        is_several = codes % _DIMENSIONS > POLYGON
        begins = np.where(is_plain, given.offsets[:-1], 0)
        self._at = begins + np.where(is_several, _HEADER + _COUNT, 0)
        self._parts = np.where(is_several, self._words[begins + _HEADER], 1).astype(np.int64)
        self._part_codes = codes - TO_MULTI * is_several
        self._strides = _STRIDES[np.where(is_plain, codes // _DIMENSIONS, 0)]

    def points(self, features: Integers) -> Runs:
        """Give the vertices of points: all parts have the same length."""
        sizes = _HEADER + self._strides[features]
        parts = self._parts[features]
        features = self._checked(features, (parts > 0) & (self._at[features] + parts * sizes == self._ends[features]))
        parts = self._parts[features]
        owners = np.repeat(features, parts)
        place = np.arange(len(owners)) - np.repeat(np.cumsum(parts) - parts, parts)
        begins = self._at[owners] + place * (_HEADER + self._strides[owners])
        self._is_plain[owners[~self._has_header(owners, begins)]] = False
        return Runs(begins + _HEADER, np.ones(len(owners), np.int64), owners)

    def rings(self, features: Integers) -> Iterator[Runs]:
        """Give the vertices of lines and polygons: of each geometry one ring more in each round."""
        left = np.zeros(len(self._at), np.int64)  # rings of the part at hand
        active = self._checked(features, self._parts[features] > 0)
        for _ in range(MOST_ROUNDS):
            active = self._opened(active, left)
            active = self._checked(active, self._at[active] + _COUNT <= self._ends[active])
            counts = self._words[self._at[active]].astype(np.int64)
            ends = self._at[active] + _COUNT + counts * self._strides[active]
            fits = (counts > 0) & (ends <= self._ends[active])
            active, counts = self._checked(active, fits), counts[fits]
            yield Runs(self._at[active] + _COUNT, counts, active)
            self._at[active] = ends[fits]
            left[active] -= 1
            is_done = (left[active] == 0) & (self._parts[active] == 0)
            self._checked(active[is_done], self._at[active[is_done]] == self._ends[active[is_done]])
            active = active[~is_done]
            if not len(active):
                return
        self._is_plain[active] = False

    def _opened(self, active: Integers, left: Integers) -> Integers:
        """Go into the next part of geometries that are between two."""
        between = left[active] == 0
        opening = active[between]
        if not len(opening):
            return active
        at = self._at[opening]
        fits = at + _HEADER + _COUNT <= self._ends[opening]
        fits[fits] = self._has_header(opening[fits], at[fits])
        is_line = (
            self._part_codes[opening] % _DIMENSIONS == LINE
        )  # its only ring has its count where others have theirs
        rings = np.ones(len(opening), np.int64)
        asked = fits & ~is_line
        rings[asked] = self._words[at[asked] + _HEADER]
        fits &= rings > 0
        left[opening] = rings
        self._at[opening] = at + _HEADER + np.where(is_line, 0, _COUNT)
        self._parts[opening] -= 1
        self._is_plain[opening[~fits]] = False
        return active[self._is_plain[active]]

    def _has_header(self, features: Integers, at: Integers) -> Flags:
        has_header: Flags = (self._data[at] == 1) & (self._words[at + 1] == self._part_codes[features])
        return has_header

    def _checked(self, features: Integers, fits: Flags) -> Integers:
        self._is_plain[features[~fits]] = False
        return features[fits]


class Malformed(ValueError):
    """Bytes that are no WKB."""


class Unsupported(ValueError):
    """A geometry that we do not take: of another type, or nested too deep."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """One geometry, taken apart: its rings (a point or line has one), or else its members."""

    kind: int
    has_z: bool
    has_m: bool
    rings: list[Floats]
    members: "list[Geometry]"


def read(data: bytes) -> Geometry:
    """Take a geometry apart.

    All that WKB may be is read, in both orders of bytes and with the flags of PostGIS. GEOS, which would go into any
    depth, is not asked.
    """
    return _Walk(data).whole()


def of_shapely(geometry: Any, origin: Geometry) -> Geometry:
    """Take apart what GEOS has made of a geometry.

    GEOS forgets measures: they are put back where a vertex was before. What new vertices lack is 0.
    """
    made = read(shapely.to_wkb(geometry, output_dimension=4, byte_order=1, flavor="iso"))
    return _measured(made, _measures(origin) if origin.has_m else None)


def _measures(geometry: Geometry) -> dict[tuple[float, float], float]:
    known = {(x, y): m for ring in geometry.rings for x, y, m in ring[:, [0, 1, -1]].tolist()}
    for member in geometry.members:
        known |= _measures(member)
    return known


def _measured(geometry: Geometry, known: dict[tuple[float, float], float] | None) -> Geometry:
    rings = [ring if known is None else _put_back(ring, known, has_m=geometry.has_m) for ring in geometry.rings]
    return replace(
        geometry,
        has_m=geometry.has_m or known is not None,
        rings=[np.where(np.isnan(ring), 0.0, ring) for ring in rings],
        members=[_measured(member, known) for member in geometry.members],
    )


def _put_back(ring: Floats, known: dict[tuple[float, float], float], *, has_m: bool) -> Floats:
    others, measures = (ring[:, :-1], ring[:, -1]) if has_m else (ring, np.zeros(len(ring)))
    vertices = zip(*ring[:, :2].T.tolist(), measures.tolist(), strict=True)
    return np.column_stack([others, [known.get((x, y), measure) for x, y, measure in vertices]])


def read_curved(data: bytes) -> Geometry | None:
    """Take a geometry apart as `read` does; None if no part of it is a curve."""
    walk = _Walk(data)
    geometry = walk.whole()
    return geometry if walk.has_curves else None


def walked(data: bytes) -> list[tuple[int, int]]:
    """Give where the runs of vertices of a geometry begin, and how many each has."""
    walk = _Walk(data)
    walk.whole()
    return walk.runs


class _Walk:
    """A walk through one geometry, which never goes beyond its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._vertices = data, 0, 0
        self.runs: list[tuple[int, int]] = []
        self.has_curves = False

    def whole(self) -> Geometry:
        try:
            return self._geometry(1)
        except struct.error:
            raise Malformed("It ends too early.") from None

    def _geometry(self, depth: int) -> Geometry:
        if depth > DEEPEST:
            raise Unsupported(f"It has more than {DEEPEST} levels.")
        order = self._order()
        kind, has_z, has_m = self._type(order)
        made = Geometry(kind, has_z, has_m, [], [])
        width = 2 + has_z + has_m
        if kind in _CURVES:
            return self._curve(made, order, depth)
        if kind in {POINT, LINE}:
            made.rings.append(self._run(order, 1 if kind == POINT else self._count(order), width))
        else:
            for _ in range(self._member_count(order, _COUNT if kind == POLYGON else _HEADER + _COUNT)):
                if kind == POLYGON:
                    made.rings.append(self._run(order, self._count(order), width))
                else:
                    made.members.append(self._geometry(depth + 1))
        return made

    def _curve(self, curve: Geometry, order: str, depth: int) -> Geometry:
        """Read a geometry with arcs as one of lines."""
        self.has_curves = True
        if curve.kind == CIRCULAR_STRING:
            points = self._run(order, self._count(order), 2 + curve.has_z + curve.has_m)
            return replace(curve, kind=LINE, rings=[self._linear(points)])
        kind, expected = _LINEAR[curve.kind]
        members = [self._geometry(depth + 1) for _ in range(self._member_count(order, _HEADER + _COUNT))]
        if any((each.kind, each.has_z, each.has_m) != (expected, curve.has_z, curve.has_m) for each in members):
            raise Malformed("A part of a curve is of a type that it cannot have.")
        if kind > POLYGON:
            return replace(curve, kind=kind, members=members)
        rings = [each.rings[0] for each in members]
        return replace(curve, kind=kind, rings=rings if kind == POLYGON else [_joined(rings, curve)])

    def _linear(self, points: Floats) -> Floats:
        try:
            made = linearize(points.astype(np.float64))
        except TooManyVertices as error:
            raise Unsupported(str(error)) from None
        self._vertices += len(made)
        if self._vertices > MAX_VERTICES:
            raise Unsupported(f"Its curves have more than {MAX_VERTICES:,} vertices as lines.")
        return made

    def _order(self) -> str:
        (order,) = struct.unpack_from("B", self._data, self._at)
        if order > 1:
            raise Malformed("Its order of bytes is none.")
        self._at += 1
        return "<" if order else ">"

    def _type(self, order: str) -> tuple[int, bool, bool]:
        code = self._count(order)
        flags, plain = code >> 29, code & 0x1FFFFFFF
        kind, dimensions = plain % _DIMENSIONS, plain // _DIMENSIONS
        if MULTI_SURFACE < kind <= _LAST_KIND:
            raise Unsupported("It is a polyhedral surface, a TIN or a triangle.")
        if not POINT <= kind <= MULTI_SURFACE or dimensions > _Z + _M:
            raise Malformed("Its type is none.")
        if flags & _EWKB_SRID:
            self._count(order)
        return kind, bool(flags & _EWKB_Z or dimensions & _Z), bool(flags & _EWKB_M or dimensions & _M)

    def _count(self, order: str) -> int:
        (count,) = struct.unpack_from(f"{order}I", self._data, self._at)
        self._at += _COUNT
        return int(count)

    def _member_count(self, order: str, least: int) -> int:
        """Read how many rings or members follow, each of which has some bytes at the least."""
        count = self._count(order)
        if count * least > len(self._data) - self._at:
            raise Malformed("It ends too early.")
        return count

    def _run(self, order: str, count: int, width: int) -> Floats:
        begin, size = self._at, 8 * count * width
        if begin + size > len(self._data):
            raise Malformed("It ends too early.")
        self.runs.append((begin, count))
        self._at += size
        return np.frombuffer(self._data, f"{order}f8", count * width, begin).reshape(count, width)


def _joined(lines: list[Floats], curve: Geometry) -> Floats:
    """Put the parts of a compound curve together; each begins where the one before it ends."""
    kept = [line for line in lines if len(line)]
    if not kept:
        return np.empty((0, 2 + curve.has_z + curve.has_m))
    parts = [kept[0]]
    for line in kept[1:]:
        is_same = (line[0, :2] == parts[-1][-1, :2]).all()
        parts.append(line[1:] if is_same and len(line) > 1 else line)
    return np.vstack(parts)


class Writer:
    """Writes geometries in the dimensions that are wanted: a height or measure that is missing is 0.

    Empty parts and vertices without a place are left out; so are lines and rings with too few vertices. Rings are
    closed.
    """

    def __init__(self, *, has_z: bool, has_m: bool) -> None:
        self._has_z, self._has_m = has_z, has_m
        self._width = 2 + has_z + has_m

    def several(self, kind: int, members: Iterable[Geometry]) -> bytes:
        """Write geometries as the members of one."""
        written = [part for part in map(self.written, members) if part is not None]
        return self._head(kind, len(written)) + b"".join(written)

    def written_or_empty(self, geometry: Geometry) -> bytes:
        """Write a geometry; what nothing is left of is an empty one of its type."""
        if geometry.kind == POINT:
            return self.written(geometry) or self._head(POINT) + struct.pack("<d", np.nan) * self._width
        return self.written(geometry) or self._head(geometry.kind, 0)

    def written(self, geometry: Geometry) -> bytes | None:
        """Write a geometry; None when nothing is left of it."""
        if geometry.kind > POLYGON:
            written = self.several(geometry.kind, geometry.members)
            return written if len(written) > _HEADER + _COUNT else None
        rings = [self._vertices(ring, geometry) for ring in geometry.rings]
        if geometry.kind == POLYGON:
            return self._polygon([_closed(ring) for ring in rings])
        (vertices,) = rings
        if len(vertices) < geometry.kind:
            return None
        return self._head(geometry.kind, *([len(vertices)] if geometry.kind == LINE else [])) + vertices.tobytes()

    def _polygon(self, rings: list[Floats]) -> bytes | None:
        if not rings or not len(rings[0]):
            return None
        kept = [ring for ring in rings if len(ring)]
        return self._head(POLYGON, len(kept)) + b"".join(struct.pack("<I", len(ring)) + ring.tobytes() for ring in kept)

    def _vertices(self, ring: Floats, geometry: Geometry) -> Floats:
        is_nowhere = np.isnan(ring[:, :2]).any(axis=1)
        ring = ring[~is_nowhere] if is_nowhere.any() else ring
        if (geometry.has_z, geometry.has_m) == (self._has_z, self._has_m):
            return ring.astype("<f8", copy=False)
        none = np.zeros(len(ring))
        columns = [ring[:, 0], ring[:, 1]]
        columns += [ring[:, 2] if geometry.has_z else none] if self._has_z else []
        columns += [ring[:, -1] if geometry.has_m else none] if self._has_m else []
        return np.column_stack(columns).astype("<f8", copy=False)

    def _head(self, kind: int, *count: int) -> bytes:
        code = code_of(kind, has_z=self._has_z, has_m=self._has_m)
        return struct.pack(f"<BI{len(count)}I", 1, code, *count)


def _closed(ring: Floats) -> Floats:
    """Close a ring that has lost its end; one with too few vertices is none."""
    if len(ring) and (ring[0, :2] != ring[-1, :2]).any():
        ring = np.vstack([ring, ring[:1]])
    return ring if len(ring) > POLYGON else ring[:0]
