"""Geometries on their way from a source to a table: reprojected, repaired, of several parts, of one shape.

Nearly all of a batch goes the way of `wkb.scanned`: their bytes are rewritten where they are. Only those that are odd,
invalid, or across the antimeridian are taken apart one by one.
"""

import struct
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from pyproj import CRS
from pyproj.exceptions import ProjError

from graticule.handlers.vector.described import Shape
from graticule.handlers.vector.preparing.bounds import Bounds, joined
from graticule.handlers.vector.preparing.complexity import ComplexityLimit
from graticule.handlers.vector.preparing.dividing import Divider, of_kind
from graticule.handlers.vector.preparing.parsing import naming_feature
from graticule.handlers.vector.preparing.repairing import made_valid, repaired_parts
from graticule.handlers.vector.preparing.reprojecting import (
    BEYOND_POLE,
    Origins,
    Reprojection,
    Seam,
    clamped,
    half_turn,
    is_far,
)
from graticule.handlers.vector.preparing.wkb import (
    COLLECTION,
    LINE,
    POINT,
    POLYGON,
    TO_MULTI,
    Bytes,
    Flags,
    Floats,
    Geometry,
    Integers,
    Runs,
    Writer,
    code_of,
    of_shapely,
    read,
    scanned,
    several_of,
    walked,
)
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.projections import CODE, on_the_ground, read_crs

_SHARES: Final = (0.25, 0.5, 0.75)  # of an edge: places by which its way round the globe is known
_WANTED: Final = {"MultiPoint": 4, "MultiLineString": 5, "MultiPolygon": 6, "GeometryCollection": 7}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Geometries as they are stored: little-endian WKB of ISO, of their `Shape`."""

    wkb: pa.Array  # binary
    repaired: int
    divided: int  # at the antimeridian
    bounds: Bounds | None  # of all coordinates; None when there are none


class Preparer:
    """Prepares the geometries of a source for one CRS and one shape.

    Z and M are kept as they are. Where the shape has one and a geometry has not, it is 0, as PostGIS's ST_Force4D
    has it.

    Vertices that are apart in the source may be one place in the target: what is valid there may be as much work here
    as what is rejected there, and is rejected likewise.

    Of a layer across the antimeridian, `gap` is a longitude in degrees at which nothing is. In the bounds, longitudes
    west of it are counted on beyond 180, so that they are no wider than the layer.
    """

    def __init__(
        self,
        source_crs: str | CRS,
        target: CRS,
        shape: Shape,
        is_swapped: bool,
        *,
        gap: float | None = None,
        origins: Origins | None = None,
    ) -> None:
        source = source_crs if isinstance(source_crs, CRS) else _source_crs(source_crs)
        self._shape, self._is_swapped = shape, is_swapped
        self._writer = Writer(has_z=shape.has_z, has_m=shape.has_m)
        self._stride = 8 * (2 + shape.has_z + shape.has_m)
        self._codes = np.array([code_of(kind, has_z=shape.has_z, has_m=shape.has_m) for kind in _plain_kinds(shape)])
        self._move = Reprojection(source, target, origins or Origins())
        self._half = half_turn(target)
        self._globe = Divider(self._half) if target.is_geographic else None
        self._seam = Seam.of(target) if origins is None else None
        self._over_seam = None if self._seam is None else _OverSeam(source, target, self._seam, shape, is_swapped)
        self._gap = None if gap is None or self._globe is None else gap * self._half / 180
        self._complexity = ComplexityLimit()

    def prepared(self, wkb: pa.Array, first: int = 1) -> Prepared:
        """Prepare a batch; `first` is the number of its first feature, by which one that is rejected is told."""
        with np.errstate(invalid="ignore", over="ignore"):  # what is infinite is told as a rejection
            return self._prepared(Bytes.of(wkb), first)

    def _prepared(self, wkb: Bytes, first: int) -> Prepared:
        shaped, repaired = self._shaped(wkb, first)
        vertices, is_across = self._placed(shaped, first)
        given = shaped.given
        self._complexity.count_vertices(len(vertices.x))
        is_invalid = self._invalid(given, ~is_across, first)
        if not (is_across | is_invalid).any():
            return Prepared(self._promoted(given), repaired, 0, self._bounds(vertices))
        made = self._mended(shaped, is_across, is_invalid, vertices, first)
        return replace(made, repaired=made.repaired + repaired)

    def _shaped(self, given: Bytes, first: int) -> tuple["_Shaped", int]:
        """Make plain geometries of our dimensions of all, as far as there is such, and find their vertices.

        The number is of those that have lost vertices.
        """
        is_plain, runs = scanned(given)
        is_odd = ~given.is_null & ~(is_plain & np.isin(given.codes, self._codes))
        shaped = _Shaped.of(given, runs.of(~is_odd) if is_odd.any() else runs, self._stride)
        lacks_place = shaped.lacks_place()
        is_odd |= lacks_place
        if not is_odd.any():
            return shaped, 0
        column, odd = given.column(), np.flatnonzero(is_odd)
        written = [self._rewritten(column[place].as_py(), first + place) for place in odd.tolist()]
        repaired = int(np.count_nonzero(lacks_place & ~_is_point(given)))
        given = Bytes.of(_substituted(column, odd, written))
        return _Shaped.of(given, _found(given), self._stride), repaired

    def _rewritten(self, data: bytes, number: int) -> bytes:
        with naming_feature(number):
            return self._several(read(data), number)

    def _several(self, geometry: Geometry, number: int) -> bytes:
        """Write a geometry with several parts, of the type of our shape."""
        own = several_of(geometry.kind)
        wanted = _WANTED.get(self._shape.type, own)
        members = [geometry] if geometry.kind <= POLYGON else geometry.members
        written = self._writer.several(own, members)
        if own == wanted:
            return written
        if len(written) == len(self._writer.several(own, [])):  # an empty one is of any type
            return self._writer.several(wanted, [])
        if wanted == COLLECTION:
            return self._writer.several(wanted, [geometry])
        what = f"Feature {number} is not of the type {self._shape.type}, which the layer had."
        raise rejected(Code.CORRUPT, what, f"feature {number}")

    def _placed(self, shaped: "_Shaped", first: int) -> tuple["_Vertices", Flags]:
        """Put the vertices where they are in the target, and tell which geometries go across the end of its map.

        On a globe, these go on beyond its antimeridian.
        """
        vertices = _Vertices(*self._moved(shaped.coordinates), shaped.runs)
        self._check(vertices, first)
        if self._globe is not None:
            vertices = self._clamped(self._on_globe(shaped.coordinates, vertices, self._globe))
        shaped.given.place(shaped.at, vertices.x, vertices.y)
        is_across = np.zeros(len(shaped.given.is_null), bool)
        is_there = self._is_across(vertices)
        if is_there.any():
            is_across[vertices.runs.owners()[is_there]] = True
        return vertices, is_across

    def _is_across(self, vertices: "_Vertices") -> Flags:
        """Tell which vertices are beyond the end of the map, or have it between them and the next."""
        if self._globe is not None and self._globe.is_beyond(vertices.box[:, 0]).any():
            return self._globe.is_beyond(vertices.x)
        if self._seam is not None and self._seam.is_far(vertices.box).any():
            return self._seam.is_far(np.column_stack([vertices.x, vertices.y])) & vertices.runs.has_next()
        return np.zeros(0, bool)

    def _moved(self, sent: Floats) -> tuple[Floats, Floats]:
        x, y = np.ascontiguousarray(sent.T)
        return self._move(y, x) if self._is_swapped else self._move(x, y)

    def _on_globe(self, sent: Floats, vertices: "_Vertices", globe: Divider) -> "_Vertices":
        """Count longitudes on across the antimeridian where an edge goes across."""
        if globe.is_beyond(vertices.box[:, 0]).any():
            vertices = replace(vertices, x=globe.brought(vertices.x, vertices.runs))
        edges = self._doubtful(sent, vertices, globe)
        if not len(edges):
            return vertices
        begins, ends = sent[edges], sent[edges + 1]
        between = [self._moved(begins + share * (ends - begins))[0] for share in _SHARES]
        way = [vertices.x[edges], *between, vertices.x[edges + 1]]
        return replace(vertices, x=vertices.x - globe.turned(edges + 1, way, vertices.runs))

    def _clamped(self, vertices: "_Vertices") -> "_Vertices":
        """Put vertices onto the map that are beyond its edge by a rounding error."""
        limits = np.array([self._half, self._half / 2])
        if (np.abs(vertices.box) <= limits).all():
            return vertices
        return replace(vertices, x=clamped(vertices.x, limits[0]), y=clamped(vertices.y, limits[1], BEYOND_POLE))

    def _doubtful(self, sent: Floats, vertices: "_Vertices", globe: Divider) -> Integers:
        """Find edges of which the ends do not tell which way round they go: there are nearly none."""
        none = np.empty(0, np.int64)
        if not self._move.may_jump:
            return none
        is_wide, is_long = globe.is_wide(vertices.box[:, 0]), is_far(sent, self._move.far)
        if is_wide:
            is_long = is_long | globe.is_jump(vertices.x)
        return np.flatnonzero(is_long & vertices.runs.has_next()) if is_wide or is_long.any() else none

    def _check(self, vertices: "_Vertices", first: int) -> None:
        """Reject places that are none."""
        if self._is_somewhere(*vertices.box.T).all():
            return
        vertex = int(np.argmin(self._is_somewhere(vertices.x, vertices.y)))
        number = first + int(vertices.runs.owners()[vertex])
        place = f"{vertices.x[vertex]}, {vertices.y[vertex]}"
        what = f"Feature {number} would be at {place}, which is nowhere in the CRS of the table."
        raise rejected(Code.ABSURD_BOUNDS, what, f"feature {number}")

    def _is_somewhere(self, x: Floats, y: Floats) -> Flags:
        is_finite: Flags = np.isfinite(x) & np.isfinite(y)
        return is_finite if self._globe is None else is_finite & self._globe.has(x, y)

    def _invalid(self, given: Bytes, is_asked: Flags, first: int) -> Flags:
        """Return which of the geometries are invalid; points never are."""
        asked = np.flatnonzero(is_asked & ~given.is_null & ~_is_point(given))
        column = given.column() if len(asked) == len(is_asked) else given.column().take(pa.array(asked))
        read_in = shapely.from_wkb(column.to_numpy(zero_copy_only=False), on_invalid="ignore")
        if self._move.is_needed:
            self._complexity.check_large(read_in, first + asked)
        invalid = np.zeros(len(is_asked), bool)
        invalid[asked] = ~shapely.is_valid(read_in)
        return invalid

    def _mended(
        self, shaped: "_Shaped", is_across: Flags, is_invalid: Flags, vertices: "_Vertices", first: int
    ) -> Prepared:
        """Replace what is invalid or across the end of the map."""
        column, is_odd = shaped.given.column(), is_across | is_invalid
        sent = column if self._over_seam is None or not is_across.any() else shaped.sent().column()
        odd = np.flatnonzero(is_odd)
        mended = [
            self._mend((sent if is_across[place] else column)[place].as_py(), bool(is_across[place]), first + place)
            for place in odd.tolist()
        ]
        written = [
            self._several(each.geometry, first + place) for each, place in zip(mended, odd.tolist(), strict=True)
        ]
        made = Bytes.of(_substituted(column, odd, written))
        repaired, divided = sum(each.is_repaired for each in mended), sum(each.is_divided for each in mended)
        bounds = joined(self._bounds(vertices.of(~is_odd)), *(self._bounds_of(each.geometry) for each in mended))
        return Prepared(self._promoted(made), repaired, divided, bounds)

    def _mend(self, data: bytes, is_across: bool, number: int) -> "_Mended":
        try:
            if is_across and self._over_seam is not None:
                return self._over_seam.divided(data, number)
            return self._mended_one(read(data), is_across, number)
        except shapely.errors.GEOSException as error:
            what = f"The geometry of feature {number} cannot be repaired."
            raise rejected(Code.CORRUPT, what, f"feature {number}") from error

    def _mended_one(self, geometry: Geometry, is_across: bool, number: int) -> "_Mended":
        if not is_across or self._globe is None:
            return _Mended(self._repaired(geometry, number), is_repaired=True, is_divided=False)
        if self._move.may_jump:
            self._check_outlines(geometry, self._globe, number)
            geometry = self._globe.enclosed(geometry)
        is_valid = self._is_valid(geometry)
        made, is_divided = self._globe.divided(geometry if is_valid else self._repaired(geometry, number))
        return _Mended(made, not is_valid, is_divided)

    def _is_valid(self, geometry: Geometry) -> bool:
        written = self._writer.written(geometry)
        return written is None or bool(shapely.is_valid(shapely.from_wkb(written)))

    def _check_outlines(self, geometry: Geometry, globe: Divider, number: int) -> None:
        """Reject polygons with holes whose rings could not be repaired: holes are cut out of an area that is valid."""
        for member in geometry.members:
            self._check_outlines(member, globe, number)
        for ring in geometry.rings if geometry.kind == POLYGON and len(geometry.rings) > 1 else []:
            outline = shapely.from_wkb(self._writer.written(globe.enclosed(replace(geometry, rings=[ring]))))
            if not shapely.is_valid(outline):
                self._complexity.check_invalid(np.array([outline]), np.array([number]))

    def _repaired(self, geometry: Geometry, number: int) -> Geometry:
        """Make a geometry valid; of what comes out, only parts of its own dimension are kept.

        One that nothing would be left of, such as a flat polygon, stays as it is.
        """
        written = self._writer.written(geometry)
        several = replace(geometry, kind=several_of(geometry.kind), rings=[], members=[])
        if written is None:
            return several
        given = shapely.from_wkb(written)
        self._complexity.check_invalid(np.array([given]), np.array([number]))
        made = of_shapely(
            made_valid(given) if geometry.kind in {POINT, LINE, POLYGON, COLLECTION} else repaired_parts(given),
            geometry,
        )
        if geometry.kind == COLLECTION:
            return made if made.kind == COLLECTION else replace(several, members=[made])
        kind = several.kind - TO_MULTI
        return replace(several, members=of_kind(made, kind) or of_kind(read(written), kind))

    def _bounds(self, vertices: "_Vertices") -> Bounds | None:
        return vertices.bounds if self._gap is None else _bounds(self._counted_on(vertices.x), vertices.y)

    def _bounds_of(self, geometry: Geometry) -> Bounds | None:
        rings = (_bounds(self._counted_on(ring[:, 0]), ring[:, 1]) for ring in geometry.rings)
        return joined(*rings, *map(self._bounds_of, geometry.members))

    def _counted_on(self, x: Floats) -> Floats:
        return x if self._gap is None else np.where(x < self._gap, x + 2 * self._half, x)

    def _promoted(self, given: Bytes) -> pa.Array:
        """Make of each single part a geometry that has it as its only one."""
        kinds = given.kinds
        is_single = (kinds >= POINT) & (kinds <= POLYGON)
        column = given.column()
        if is_single.any():
            heads = pa.array([b"", *(self._head(kind) for kind in range(POINT, POLYGON + 1))], pa.large_binary())
            chosen = heads.take(pa.array(np.where(is_single, kinds, 0)))
            column = pc.binary_join_element_wise(chosen, column, pa.scalar(b"", pa.large_binary()))
        try:
            return column.cast(pa.binary())
        except pa.ArrowInvalid:
            raise rejected(Code.TOO_LARGE_FEATURE, "A batch of features has more than 2 GiB.") from None

    def _head(self, kind: int) -> bytes:
        code = code_of(kind + TO_MULTI, has_z=self._shape.has_z, has_m=self._shape.has_m)
        return struct.pack("<BII", 1, code, 1)


@dataclass(frozen=True, slots=True)
class _Mended:
    geometry: Geometry
    is_repaired: bool
    is_divided: bool


class _OverSeam:
    """Divides in degrees what goes across the end of a projected map, and puts the pieces onto it."""

    def __init__(self, source: CRS, target: CRS, seam: Seam, shape: Shape, is_swapped: bool) -> None:
        to_globe, to_map = Origins(target=seam.origin), Origins(source=seam.origin)
        self._to_globe = Preparer(source, seam.geodetic, shape, is_swapped, origins=to_globe)
        self._to_map = Preparer(seam.geodetic, target, shape, False, origins=to_map)

    def divided(self, data: bytes, number: int) -> _Mended:
        """Divide a geometry of the source."""
        on_globe = self._to_globe.prepared(pa.array([data], pa.large_binary()), number)
        on_map = self._to_map.prepared(on_globe.wkb, number)
        is_repaired = on_globe.repaired + on_map.repaired > 0
        return _Mended(read(on_map.wkb[0].as_py()), is_repaired, on_globe.divided > 0)


@dataclass(frozen=True, slots=True)
class _Shaped:
    """Geometries of our dimensions, and their vertices: in which byte each begins, and where it is."""

    given: Bytes
    runs: Runs
    at: Integers
    coordinates: Floats

    @classmethod
    def of(cls, given: Bytes, runs: Runs, stride: int) -> "_Shaped":
        at = runs.positions(stride)
        return cls(given, runs, at, given.coordinates(at))

    def sent(self) -> Bytes:
        """Give the geometries with their vertices where they were in the source."""
        bytes_sent = replace(self.given, data=self.given.data.copy())
        bytes_sent.place(self.at, *self.coordinates.T)
        return bytes_sent

    def lacks_place(self) -> Flags:
        """Tell which geometries have a vertex that is nowhere, or are a point without a place."""
        lacking = np.zeros(len(self.given.is_null), bool)
        is_nowhere = np.isnan(self.coordinates)
        if is_nowhere.any():
            lacking[self.runs.owners()[is_nowhere.any(axis=1)]] = True
        return lacking


@dataclass(frozen=True)
class _Vertices:
    """Where vertices are in the target, and whose they are."""

    x: Floats
    y: Floats
    runs: Runs

    @cached_property
    def bounds(self) -> Bounds | None:
        """The box around them."""
        return _bounds(self.x, self.y)

    @property
    def box(self) -> Floats:
        """Its two corners, or none."""
        return np.array(self.bounds or ()).reshape(-1, 2)

    def of(self, is_chosen: Flags) -> "_Vertices":
        """Give those of some features."""
        kept = is_chosen[self.runs.owners()]
        return _Vertices(self.x[kept], self.y[kept], self.runs.of(is_chosen))


def target_crs(name: str) -> CRS:
    """Give the CRS of the table, which is one of the EPSG's for maps."""
    try:
        crs = CRS.from_user_input(name) if CODE.fullmatch(name) else None
    except ProjError:
        crs = None
    if crs is None or crs.to_epsg() is None or not (crs.is_projected or crs.is_geographic) or crs.is_vertical:
        raise rejected(Code.UNKNOWN_TARGET_CRS, f"The target_crs {name[:100]!r} is not one.", "target_crs")
    return crs


def _source_crs(text: str) -> CRS:
    """Give the CRS of the source on the ground: heights stay as they are."""
    return on_the_ground(read_crs(text, "source_crs"))


def _plain_kinds(shape: Shape) -> list[int]:
    """Give the types that need nothing but a head to be of a shape."""
    if shape.type == "Geometry":
        return list(range(POINT, COLLECTION))
    wanted = _WANTED[shape.type]
    return [wanted - TO_MULTI, wanted] if wanted < COLLECTION else []


def _found(given: Bytes) -> Runs:
    """Find the vertices of geometries that we have written ourselves."""
    is_plain, runs = scanned(given)
    rest = []
    for place in np.flatnonzero(~is_plain & ~given.is_null).tolist():
        begin, end = given.offsets[place : place + 2]
        starts, counts = np.array(walked(given.data[begin:end].tobytes()), np.int64).reshape(-1, 2).T
        rest.append(Runs(starts + begin, counts, np.full(len(starts), place)))
    return Runs.joined([runs, *rest])


def _is_point(given: Bytes) -> Flags:
    return np.isin(given.kinds, [POINT, several_of(POINT)])


def _substituted(column: pa.Array, places: Integers, values: list[bytes]) -> pa.Array:
    """Put other values into some places of a column."""
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, pa.array(values, column.type)]).take(pa.array(order))


def _bounds(x: Floats, y: Floats) -> Bounds | None:
    return (float(x.min()), float(y.min()), float(x.max()), float(y.max())) if len(x) else None
