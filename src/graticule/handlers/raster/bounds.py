"""Where on the earth a raster lies, and whether that can be."""

from collections.abc import Sequence
from math import hypot, isfinite
from typing import Final, NamedTuple

import pyproj
from affine import Affine
from rasterio.crs import CRS

from graticule.handlers.raster.grid import lonlat_bounds
from graticule.handlers.raster.opening import GDAL_ERRORS

_SMALLEST_PIXEL_METRES: Final = 0.001
_METRES_OF_A_DEGREE: Final = 111_320.0
_DEGREES_OF_A_RADIAN: Final = 57.29577951308232
_MAX_SLACK_DEGREES: Final = 10.0
AREA_TOLERANCE_DEGREES: Final = 5.0
_SLACK_DEGREES: Final = 1.0  # or a pixel, if that is more: global grids reach half a pixel beyond the poles
_UTM_LATITUDE: Final = 84.0  # to the north and to the south, for either kind of zone


class Bounds(NamedTuple):
    """West, south, east, north; in EPSG:4326 west > east means across the antimeridian."""

    west: float
    south: float
    east: float
    north: float


def source_bounds(transform: Affine, width: int, height: int) -> Bounds:
    """Give the box around the four corners, in the raster's CRS."""
    corners = [transform @ corner for corner in ((0, 0), (width, 0), (0, height), (width, height))]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return Bounds(min(xs), min(ys), max(xs), max(ys))


def world_bounds(crs: CRS, transform: Affine, width: int, height: int) -> Bounds | None:
    """Give the box in EPSG:4326; None when there is none."""
    if transform.is_degenerate or not all(map(isfinite, transform[:6])):
        return None
    try:
        found = Bounds(*lonlat_bounds(crs, transform, width, height))
    except (*GDAL_ERRORS, pyproj.exceptions.ProjError):  # PROJ knows no way from this CRS
        return None
    return found if all(map(isfinite, found)) else None


def absurdity(crs: CRS, transform: Affine, bounds: Bounds, world: Bounds | None) -> str | None:
    """Say what is impossible about the place of a raster; None when nothing is."""
    if not all(map(isfinite, transform[:6])) or not all(map(isfinite, bounds)):
        return "Its position is not finite."
    if transform.is_degenerate:
        return "Its pixels have no size."
    if crs.is_geographic and (outside := _outside_of_the_earth(crs, transform, bounds)):
        return outside
    if world is None:
        return "Its bounds lie where its CRS knows no place on the earth."
    if _pixel_metres(crs, transform) < _SMALLEST_PIXEL_METRES:
        return "Its pixels are smaller than a millimetre: the coordinates may be of another CRS."
    return None


def _outside_of_the_earth(crs: CRS, transform: Affine, bounds: Bounds) -> str | None:
    unit = crs.units_factor[1] * _DEGREES_OF_A_RADIAN
    degrees = [value * unit for value in bounds]
    slack = max(_SLACK_DEGREES, *(abs(side) * unit for side in (transform.a, transform.e)))
    slack = min(slack, _MAX_SLACK_DEGREES)
    if degrees[1] < -90 - slack or degrees[3] > 90 + slack:
        return "Its latitudes go beyond the poles."
    if degrees[0] < -360 - slack or degrees[2] > 540 + slack or degrees[2] - degrees[0] > 360 + 2 * slack:
        return "Its longitudes go around the earth more than once."
    return None


def _pixel_metres(crs: CRS, transform: Affine) -> float:
    smallest = min(hypot(transform.a, transform.d), hypot(transform.b, transform.e))
    _, factor = crs.units_factor
    return float(smallest * (factor * _DEGREES_OF_A_RADIAN * _METRES_OF_A_DEGREE if crs.is_geographic else factor))


def is_outside_area_of_use(crs: CRS, world: Bounds) -> bool:
    """Return whether a raster lies outside the area that its CRS is made for.

    UTM zones count as those of both hemispheres: scenes of the south often come in a northern zone.
    """
    area = _area_of_use(crs)
    if area is None or not crs.is_projected:
        return False
    around = AREA_TOLERANCE_DEGREES
    is_beside = all(east < area.west - around or west > area.east + around for west, east in _spans(world, area))
    return is_beside or world.north < area.south - around or world.south > area.north + around


def _spans(world: Bounds, area: Bounds) -> Sequence[tuple[float, float]]:
    """Give the longitudes of the raster, in every turn of the earth in which they may meet the area."""
    east = world.east if world.west <= world.east else world.east + 360
    return [(world.west + turn, east + turn) for turn in (-360, 0, 360)]


def _area_of_use(crs: CRS) -> Bounds | None:
    authority = crs.to_authority(confidence_threshold=90)
    if authority is None:
        return None
    try:
        known = pyproj.CRS.from_authority(*authority)
    except pyproj.exceptions.CRSError:
        return None
    area = known.area_of_use
    if area is None:
        return None
    south, north = (-_UTM_LATITUDE, _UTM_LATITUDE) if known.utm_zone else (area.south, area.north)
    return Bounds(area.west, south, area.east if area.west <= area.east else area.east + 360, north)
