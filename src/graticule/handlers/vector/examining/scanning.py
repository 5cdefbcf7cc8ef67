"""One pass over the features of a layer: what they are, and what is wrong with them.

Imports shapely: only for where a handler runs.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from graticule.core.validation import shortened
from graticule.handlers.vector.described import ColumnType
from graticule.handlers.vector.preparing.attributes import column_type, converted
from graticule.handlers.vector.preparing.complexity import ComplexityLimit
from graticule.handlers.vector.preparing.parsing import Geometries, Parsed, parsed
from graticule.handlers.vector.preparing.repairing import collapses, has_collapsing_parts
from graticule.handlers.vector.preparing.reprojecting import NOISE
from graticule.handlers.vector.rejecting import Code, rejected

MOST_EXAMPLES: Final = 10
LONGEST_REASON: Final = 200  # characters
_TYPES: Final = (  # by GEOS's numbers
    "Point",
    "LineString",
    "LinearRing",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)
_LIMITED: Final[frozenset[ColumnType]] = frozenset({"date", "time", "timestamp", "timestamptz", "numeric"})

Box = tuple[float, float, float, float]
Places = NDArray[np.intp]
_NONE: Final[Places] = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class Example:
    """A feature that is told of: its number in the order of the source, from 1, and what is wrong with it."""

    feature: int
    reason: str | None = None


@dataclass(slots=True)
class Noted:
    """Features with one thing in common: how many, and the first of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, places: Places, before: int, geometries: Geometries | None = None) -> None:
        """Count features of a batch that so many features are before; of geometries, their faults are told."""
        self.count += len(places)
        for place in places[: MOST_EXAMPLES - len(self.examples)]:
            reason = None if geometries is None else shapely.is_valid_reason(geometries[place])
            told = None if reason is None else shortened(reason, LONGEST_REASON)
            self.examples.append(Example(before + int(place) + 1, told))


@dataclass(slots=True)
class Values:
    """What is known of the values of a field."""

    field: pa.Field
    nulls: int = 0
    longest: int | None = None  # characters of a text

    def add(self, column: pa.Array) -> None:
        """Add those of a batch; what is no text or has no place in a table is rejected."""
        self._check(column)
        self.nulls += column.null_count
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            longest = pc.max(pc.utf8_length(column)).as_py()
            self.longest = max(self.longest or 0, longest or 0)

    def _check(self, column: pa.Array) -> None:
        where = f"field {self.field.name}"
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise rejected(Code.NOT_UTF8, "A text of the features is not in UTF-8.", where) from None
        if (kind := column_type(self.field)) in _LIMITED:
            converted(column, kind, where)


class Scan:
    """What is known of the features so far."""

    def __init__(self, fields: pa.Schema, half_turn: float | None = None) -> None:
        """Begin; a half turn is 180 degrees in the unit of the longitudes, if there are such."""
        self.count = 0
        self.types: Counter[str] = Counter()  # of what has a place
        self.dimensions: Counter[tuple[bool, bool]] = Counter()  # of the same: with heights, with measures
        self.null, self.empty, self.invalid = Noted(), Noted(), Noted()
        self.curved, self.unclosed, self.shortened = Noted(), Noted(), Noted()
        self.flat, self.partly_flat = Noted(), Noted()
        self.values = [Values(field) for field in fields]
        self._complexity = ComplexityLimit()
        self.begin_layer(half_turn)

    def begin_layer(self, half_turn: float | None) -> None:
        """Continue with another layer: coordinates are measured again, all else is counted on."""
        self._half_turn = half_turn
        self._is_placed = False
        self._beyond = np.zeros(2, np.int64)  # geometries with more than half a turn, by each axis
        self._least = np.full(2, np.inf)
        self._most = np.full(2, -np.inf)
        self.outermost = [0, 0, 0, 0]  # the features that reach furthest to the west, south, east and north

    @property
    def bounds(self) -> Box | None:
        """The least of the first and the second coordinate, and the most of them; None when nothing has a place."""
        if not self._is_placed:
            return None
        west, south, east, north = (float(side) for side in (*self._least, *self._most))
        return west, south, east, north

    def beyond(self, *, is_swapped: bool) -> int:
        """Tell how many geometries have longitudes on the other side of the antimeridian."""
        return int(self._beyond[1 if is_swapped else 0])

    @property
    def has_z(self) -> bool:
        """Whether a geometry has heights."""
        return any(has_z for has_z, _ in self.dimensions)

    @property
    def has_m(self) -> bool:
        """Whether a geometry has measures."""
        return any(has_m for _, has_m in self.dimensions)

    def add(self, attributes: pa.RecordBatch, wkb: pa.Array, curved: Places = _NONE) -> None:
        """Add a batch, and the places of those of its geometries that had curves."""
        for place, values in enumerate(self.values):
            values.add(attributes.column(place))
        self.curved.add(curved, self.count)
        try:
            self._add_parsed(parsed(wkb, self.count + 1))
        except shapely.errors.GEOSException as error:
            what = f"A geometry of the features {self.count + 1} to {self.count + len(wkb)} cannot be read."
            raise rejected(Code.CORRUPT, what) from error
        self.count += len(wkb)

    def _add_parsed(self, found: Parsed) -> None:
        self.unclosed.add(np.array(found.unclosed, np.intp), self.count)
        self.shortened.add(np.array(found.shortened, np.intp), self.count)
        self._add_geometries(found.geometries)

    def _add_geometries(self, geometries: Geometries) -> None:
        is_null = shapely.is_missing(geometries)
        is_empty = shapely.is_empty(geometries)
        self.null.add(np.flatnonzero(is_null), self.count)
        self.empty.add(np.flatnonzero(is_empty), self.count)
        numbers = self.count + 1 + np.arange(len(geometries))
        self._complexity.count_vertices(int(shapely.get_num_coordinates(geometries).sum()))
        self._complexity.check_large(geometries, numbers)
        is_invalid = ~(shapely.is_valid(geometries) | is_null)
        self._complexity.check_invalid(geometries[is_invalid], numbers[is_invalid])
        is_flat = np.zeros(len(geometries), bool)
        is_flat[is_invalid] = collapses(geometries[is_invalid])
        self.flat.add(np.flatnonzero(is_flat), self.count)
        repaired = np.flatnonzero(is_invalid & ~is_flat)
        self.invalid.add(repaired, self.count, geometries)
        self.partly_flat.add(repaired[has_collapsing_parts(geometries[repaired])], self.count)
        placed = np.flatnonzero(~(is_null | is_empty))
        self._add_placed(geometries[placed], self.count + 1 + placed)

    def _add_placed(self, geometries: Geometries, numbers: Places) -> None:
        """Add geometries that have a place, and the numbers of their features."""
        if not len(geometries):
            return
        self._is_placed = True
        for kind, count in enumerate(np.bincount(shapely.get_type_id(geometries)).tolist()):
            if count:
                self.types[_TYPES[kind]] += count
        with_z, with_m = shapely.has_z(geometries), shapely.has_m(geometries)
        for code, count in enumerate(np.bincount(with_z + 2 * with_m).tolist()):
            if count:
                self.dimensions[bool(code & 1), bool(code & 2)] += count
        self._add_bounds(shapely.bounds(geometries), numbers)

    def _add_bounds(self, bounds: NDArray[np.float64], numbers: Places) -> None:
        least, most = bounds[:, :2], bounds[:, 2:]
        self._note_outermost(bounds, numbers)
        self._least = np.fmin(self._least, np.fmin.reduce(least))
        self._most = np.fmax(self._most, np.fmax.reduce(most))
        if self._half_turn is not None:
            limit = self._half_turn * (1 + NOISE)
            self._beyond += np.count_nonzero((least < -limit) | (most > limit), axis=0)

    def _note_outermost(self, bounds: NDArray[np.float64], numbers: Places) -> None:
        so_far = np.array([*self._least, *-self._most])
        sides = np.where(np.isnan(bounds), np.inf, bounds * [1, 1, -1, -1])
        reached = np.argmin(sides, axis=0)
        for side in np.flatnonzero(sides.min(axis=0) < so_far).tolist():
            self.outermost[side] = int(numbers[reached[side]])
