"""Geometries as somebody wrote them, given to GEOS when that is safe.

GEOS reads what is in a collection by calling itself, without a limit of its own: one nested deep enough ends the
process. Most formats come through GDAL, which has a limit; the bytes of GeoParquet are as they were written.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.preparing.wkb import (
    COLLECTION,
    LINE,
    POLYGON,
    Floats,
    Geometry,
    Malformed,
    Unsupported,
    Writer,
    read,
    read_curved,
    walked,
)
from graticule.handlers.vector.rejecting import Code, rejected

# A geometry that holds others has at least 9 bytes: in fewer than these, none is deeper than GEOS has room for.
_HARMLESS_BYTES: Final = 500 * 9

Geometries = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The geometries of a batch, and the places of those that GEOS could read only after a repair."""

    geometries: Geometries
    unclosed: list[int] = field(default_factory=list)  # a ring did not end where it begins, and was closed
    shortened: list[int] = field(default_factory=list)  # a ring or line with too few vertices was left out


def parsed(wkb: pa.Array, number: int) -> Parsed:
    """Give the geometries of a batch whose first feature has this number; what is none is rejected."""
    _check_long(wkb, number)
    values = wkb.to_numpy(zero_copy_only=False)
    try:
        made = Parsed(np.asarray(shapely.from_wkb(values)))
    except (shapely.errors.GEOSException, NotImplementedError):
        made = _repaired(values, number)
    for place in np.flatnonzero(shapely.get_type_id(made.geometries) == COLLECTION).tolist():
        made.geometries[place] = _without_curves(made.geometries[place], values[place], number + place)
    return made


def _without_curves(collection: Any, wkb: bytes, number: int) -> Any:
    """Return a collection without the arcs in it; shapely knows them at the top alone."""
    with naming_feature(number):
        geometry = read_curved(wkb)
    return collection if geometry is None else _rewritten(geometry, number)


def _check_long(wkb: pa.Array, number: int) -> None:
    """Reject what could end the process."""
    is_long = pc.greater_equal(pc.fill_null(pc.binary_length(wkb), 0), _HARMLESS_BYTES)
    for place in np.flatnonzero(is_long.to_numpy(zero_copy_only=False)).tolist():
        with naming_feature(number + place):
            walked(wkb[place].as_py())


def _repaired(values: Geometries, number: int) -> Parsed:
    """Read geometries one by one, and repair those that GEOS refuses."""
    made = Parsed(np.full(len(values), None))
    for place, value in enumerate(values):
        try:
            made.geometries[place] = shapely.from_wkb(value)
        except (shapely.errors.GEOSException, NotImplementedError):
            geometry = _read(value, number + place)
            made.geometries[place] = _rewritten(geometry, number + place)
            made.unclosed.extend([place] if _has_ring(geometry, _is_unclosed) else [])
            made.shortened.extend([place] if _has_ring(geometry, _is_too_short) else [])
    return made


def _read(wkb: bytes, number: int) -> Geometry:
    with naming_feature(number):
        return read(wkb)


def _rewritten(geometry: Geometry, number: int) -> Any:
    written = Writer(has_z=geometry.has_z, has_m=geometry.has_m).written_or_empty(geometry)
    try:
        return shapely.from_wkb(written)
    except shapely.errors.GEOSException as error:
        what = f"The geometry of feature {number} cannot be read."
        raise rejected(Code.CORRUPT, what, f"feature {number}") from error


def _has_ring(geometry: Geometry, is_such: Callable[[Geometry, Floats], bool]) -> bool:
    found = any(is_such(geometry, ring) for ring in geometry.rings if len(ring))
    return found or any(_has_ring(member, is_such) for member in geometry.members)


def _is_unclosed(geometry: Geometry, ring: Floats) -> bool:
    return geometry.kind == POLYGON and bool((ring[0, :2] != ring[-1, :2]).any())


def _is_too_short(geometry: Geometry, ring: Floats) -> bool:
    if geometry.kind != POLYGON:
        return geometry.kind == LINE and len(ring) < LINE
    return len(ring) + _is_unclosed(geometry, ring) <= POLYGON


@contextmanager
def naming_feature(number: int) -> Iterator[None]:
    """Reject a geometry by the number of its feature."""
    try:
        yield
    except Unsupported as error:
        raise _refused(Code.UNSUPPORTED_GEOMETRY, f"cannot be used: {error}", number) from None
    except Malformed as error:
        raise _refused(Code.CORRUPT, f"cannot be read: {error}", number) from None


def _refused(code: Code, why: str, number: int) -> Rejected:
    return rejected(code, f"The geometry of feature {number} {why}", f"feature {number}")
