"""Where on earth a layer is: its CRS, and whether its axes are in the right order. Imports PROJ."""

import math
from dataclasses import dataclass
from typing import Final

from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.handlers.vector.described import WGS84
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.projections import CODE, epsg_name, read_crs

Box = tuple[float, float, float, float]  # west, south, east, north

_UNDEFINED: Final = "undefined"  # how a GeoPackage's CRS of none is called
_WORLD: Final[Box] = (-360.0, -90.0, 360.0, 90.0)  # some go on counting across the antimeridian, either way
_SLACK_DEGREES: Final = 2.0
_SLACK_SHARE: Final = 0.25  # CRSs are used beyond where they are meant to be


def layer_crs(declared: str | None, wanted: str | None, where: str) -> str:
    """Give the CRS in which the coordinates are, by its code or else as WKT: what is asked for, or declared."""
    if wanted is not None:
        return _by_code(wanted)
    if declared is None:
        raise rejected(Code.NO_CRS, "The layer does not say in which CRS its coordinates are.", where)
    crs = read_crs(declared, where)
    if crs.name.casefold().startswith(_UNDEFINED):
        raise rejected(Code.NO_CRS, "The layer says of its CRS that it is not known.", where)
    if not _is_for_maps(crs):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, f"The CRS {crs.name} is not one for maps.", where)
    return _name(crs)


def is_swapped(crs_name: str, bounds: Box, where: str) -> bool:
    """Tell whether the layer has north before east, judging by where its CRS is used; reject what lies nowhere."""
    crs = CRS.from_user_input(crs_name)
    west, south, east, north = bounds
    given, turned = _degrees(crs, bounds), _degrees(crs, (south, west, north, east))
    area = _area(crs)
    if given is not None and _lies_in(given, area, slack=True):
        return False
    if turned is not None and _lies_in(turned, area, slack=False):
        return True
    if given is None:
        told = ", ".join(f"{side:g}" for side in bounds)
        raise rejected(Code.ABSURD_BOUNDS, f"The bounds {told} do not lie where the layer's CRS is defined.", where)
    return False


@dataclass(frozen=True, slots=True)
class _Area:
    west: float
    width: float
    south: float
    north: float


def _by_code(name: str) -> str:
    try:
        crs = CRS.from_user_input(name) if CODE.fullmatch(name) else None
    except ProjError:
        crs = None
    if crs is None or not _is_for_maps(crs):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, f"The source_crs {name[:100]!r} is not one.", "source_crs")
    return name


def _is_for_maps(crs: CRS) -> bool:
    return bool(crs.is_geographic or crs.is_projected) and not crs.is_geocentric


def _name(crs: CRS) -> str:
    if crs.equals(CRS.from_user_input(WGS84), ignore_axis_order=True):
        return WGS84
    return epsg_name(crs) or str(crs.to_wkt())


def _area(crs: CRS) -> _Area:
    used = crs.area_of_use
    if used is None:
        return _Area(-180.0, 360.0, -90.0, 90.0)
    return _Area(used.west, (used.east - used.west) % 360 or 360.0, used.south, used.north)


def _lies_in(box: Box, area: _Area, *, slack: bool) -> bool:
    """Tell whether a box in degrees lies in an area, on whichever turn of the globe."""
    west, south, east, north = box
    wider = _SLACK_DEGREES + _SLACK_SHARE * area.width if slack else 0.0
    higher = _SLACK_DEGREES + _SLACK_SHARE * (area.north - area.south) if slack else 0.0
    width = area.width + 2 * wider
    from_west = (west - area.west + wider) % 360
    is_between = width >= 360 or from_west + (east - west) <= width
    return is_between and area.south - higher <= south and north <= area.north + higher


def _degrees(crs: CRS, bounds: Box) -> Box | None:
    """Give bounds in degrees, west to east, or None when they lie nowhere."""
    if not all(map(math.isfinite, bounds)):
        return None
    if crs.is_geographic and crs.axis_info[0].unit_name == "degree":
        west, south, east, north = bounds
        is_on_earth = _WORLD[0] <= west and east <= _WORLD[2] and _WORLD[1] <= south and north <= _WORLD[3]
        return bounds if is_on_earth else None
    try:
        west, south, east, north = Transformer.from_crs(crs, WGS84, always_xy=True).transform_bounds(
            *bounds, errcheck=True
        )
    except ProjError:
        return None
    return (west, south, west + (east - west) % 360, north) if math.isfinite(west + south + east + north) else None
