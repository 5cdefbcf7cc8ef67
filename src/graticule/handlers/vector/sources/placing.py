"""Where on earth a layer is: its CRS, and whether its axes are in the right order. Imports PROJ."""

from dataclasses import dataclass
from typing import Final

from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.handlers.celestial import other_body
from graticule.handlers.vector.described import WGS84
from graticule.handlers.vector.extent import Box, extent_in_degrees, wrapped
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.projections import CODE, epsg_name, read_crs

_UNDEFINED: Final = "undefined"  # how a GeoPackage's CRS of none is called
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
        what = f"The CRS {crs.name} is neither geographic nor projected."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, where)
    if not _has_way_to_degrees(crs):
        what = f"PROJ has no transformation from the CRS {crs.name} to degrees."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, where)
    if body := other_body(crs):
        raise rejected(Code.OTHER_BODY, f"The CRS {crs.name} is for {body}, not for the Earth.", where)
    return _name(crs)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a layer lies: in degrees, the west above the east across the antimeridian."""

    bbox: Box
    is_swapped: bool = False  # north comes before east
    is_outside: bool = False  # of the area for which its CRS is made


def locate(crs_name: str, bounds: Box) -> Location | None:
    """Locate a layer, and decide by the area of use of its CRS whether its axes are swapped; None if it is nowhere."""
    crs = CRS.from_user_input(crs_name)
    west, south, east, north = bounds
    given, swapped = extent_in_degrees(crs, bounds), extent_in_degrees(crs, (south, west, north, east))
    area = _area(crs)
    if given is not None and area.widened().contains(given):
        return Location(wrapped(given))
    if swapped is not None and area.contains(swapped):
        return Location(wrapped(swapped), is_swapped=True)
    return None if given is None else Location(wrapped(given), is_outside=not area.widened().meets(given))


def area_of_use(crs_name: str) -> str:
    """Return the name of the area for which a CRS is made."""
    used = CRS.from_user_input(crs_name).area_of_use
    return "" if used is None else used.name.rstrip(".")


@dataclass(frozen=True, slots=True)
class _Area:
    """An area in degrees; its width is at most a turn."""

    west: float
    width: float
    south: float
    north: float

    def widened(self) -> "_Area":
        """Return the area in which a CRS is used though it is not meant for it."""
        wider = _SLACK_DEGREES + _SLACK_SHARE * self.width
        higher = _SLACK_DEGREES + _SLACK_SHARE * (self.north - self.south)
        return _Area(self.west - wider, min(self.width + 2 * wider, 360.0), self.south - higher, self.north + higher)

    def contains(self, box: Box) -> bool:
        """Return whether a box lies in the area, on whichever turn of the globe."""
        west, south, east, north = box
        is_between = self.width == 360 or (west - self.west) % 360 + (east - west) <= self.width
        return is_between and self.south <= south and north <= self.north

    def meets(self, box: Box) -> bool:
        """Return whether a part of a box lies in the area, on whichever turn of the globe."""
        west, south, east, north = box
        from_west = (west - self.west) % 360
        is_beside = self.width < from_west and from_west + (east - west) < 360
        return not is_beside and south <= self.north and self.south <= north


def _by_code(name: str) -> str:
    try:
        crs = CRS.from_user_input(name) if CODE.fullmatch(name) else None
    except ProjError:
        crs = None
    if crs is None or not _is_for_maps(crs) or not _has_way_to_degrees(crs):
        what = (
            f"The source_crs {name[:100]!r} is not the code of a geographic or projected CRS that PROJ can transform."
        )
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, "source_crs")
    return name


def _has_way_to_degrees(crs: CRS) -> bool:
    """Return whether PROJ knows the projection: it reads the definitions of many more than it can compute."""
    try:
        Transformer.from_crs(crs, WGS84, always_xy=True)
    except ProjError:
        return False
    return True


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
