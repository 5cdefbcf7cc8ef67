"""Geometries as somebody wrote them, given to GEOS when that is safe.

GEOS reads what is in a collection by calling itself, without a limit of its own: one nested deep enough ends the
process. Most formats come through GDAL, which has a limit; the bytes of GeoParquet are as they were written.
"""

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.preparing.wkb import COLLECTION, Malformed, Unsupported, walked
from graticule.handlers.vector.rejecting import Code, rejected

# A geometry that holds others has at least 9 bytes: in fewer than these, none is deeper than GEOS has room for.
_HARMLESS_BYTES: Final = 500 * 9
_SURFACES: Final = frozenset({13, 14, 15, 16, 17})  # of curves, polyhedra and triangles, as ISO numbers them
_UNKNOWN_TYPE: Final = re.compile(r"Unknown WKB type (\d+)")

Geometries = NDArray[Any]


def parsed(wkb: pa.Array, number: int) -> Geometries:
    """Give the geometries of a batch whose first feature has this number; what is none is rejected."""
    _check_long(wkb, number)
    values = wkb.to_numpy(zero_copy_only=False)
    try:
        geometries = np.asarray(shapely.from_wkb(values))
    except (shapely.errors.GEOSException, NotImplementedError):
        raise _fault(values, number) from None
    for place in np.flatnonzero(shapely.get_type_id(geometries) == COLLECTION).tolist():
        _check(values[place], number + place)  # shapely finds arcs at the top alone
    return geometries


def _check_long(wkb: pa.Array, number: int) -> None:
    """Reject what could end the process."""
    is_long = pc.greater_equal(pc.fill_null(pc.binary_length(wkb), 0), _HARMLESS_BYTES)
    for place in np.flatnonzero(is_long.to_numpy(zero_copy_only=False)).tolist():
        _check(wkb[place].as_py(), number + place)


def _check(wkb: bytes, number: int) -> None:
    try:
        walked(wkb)
    except Unsupported as error:
        raise _unsupported(str(error), number) from None
    except Malformed:
        raise _unreadable(number) from None


def _fault(values: Geometries, number: int) -> Rejected:
    """Tell which geometry it is that cannot be read."""
    for place, value in enumerate(values):
        try:
            shapely.from_wkb(value)
        except NotImplementedError:
            return _unsupported("It is a curve.", number + place)
        except shapely.errors.GEOSException as error:
            kind = _UNKNOWN_TYPE.search(str(error))
            if kind and int(kind[1]) in _SURFACES:
                return _unsupported("It is a surface of many faces.", number + place)
            return _unreadable(number + place)
    return rejected(Code.CORRUPT, "A geometry cannot be read.")


def _unsupported(why: str, number: int) -> Rejected:
    return rejected(Code.UNSUPPORTED_GEOMETRY, f"A geometry is not taken: {why}", f"feature {number}")


def _unreadable(number: int) -> Rejected:
    return rejected(Code.CORRUPT, "A geometry cannot be read.", f"feature {number}")
