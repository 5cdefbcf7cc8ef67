"""The CRS that a text stands for, if it is one of which nothing but numbers and names is read. Imports PROJ.

PROJ takes much else from such a text: steps of its own, and names of files that it opens when it transforms.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from pyproj import CRS
from pyproj.enums import WktVersion
from pyproj.exceptions import ProjError

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import PROJ_METHODS, TURNED_POLE, check_crs_text, code_in_wkt

CODE: Final = re.compile(r"EPSG:[0-9]{1,6}")
_ANY_CODE: Final = re.compile(r"(EPSG|ESRI):[0-9]{4,6}")
_EPSG: Final = "EPSG"
_OWN_STEPS: Final = "proj"  # how methods begin that are steps of PROJ's
_OWN_TEXT: Final = "proj crs string"  # what PROJ reads in place of all else
# Names of parameters that are handed on to PROJ as they are.
_TURNED_BY: Final = {"o_lat_p", "o_lon_p", "lon_0"}
_PLAIN_PARAMETERS: Final = {
    *("lat_0", "lat_1", "lat_2", "lat_3", "lat_b", "lat_ts", "lon_0", "lon_1", "lon_2", "lon_3", "lonc", "x_0", "y_0"),
    *("alpha", "azi", "gamma", "h", "k", "k_0", "m", "M", "n", "north_square", "q", "rot_xy", "south_square", "theta"),
    *("tilt", "W"),
}
# Methods that PROJ knows, and that EPSG has no number for.
_METHODS: Final = {
    *(
        "Adams_Square_II",
        "Aitoff",
        "Compact Miller",
        "Craster Parabolic",
        "Eckert I",
        "Eckert II",
        "Eckert III",
        "Eckert IV",
        "Eckert V",
    ),
    *("Eckert VI", "Flat Polar Quartic", "Gall Stereographic", "Gauss Schreiber Transverse Mercator", "Gnomonic"),
    *("Geostationary Satellite (Sweep X)", "Geostationary Satellite (Sweep Y)", "Goode Homolosine"),
    *("Hotine Oblique Mercator Two Point Natural Origin", "International Map of the World Polyconic"),
    *("Interrupted Goode Homolosine", "Interrupted Goode Homolosine Ocean", "Loximuthal", "Miller Cylindrical"),
    *("Mollweide", "Natural Earth", "Natural Earth II", "Orthographic (Spherical)", "Patterson", "Quartic Authalic"),
    *("Peirce Quincuncial (Diamond)", "Peirce Quincuncial (Square)", "Pole rotation (GRIB convention)"),
    *("Pole rotation (netCDF CF convention)", "Quadrilateralized Spherical Cube", "Robinson", "Sinusoidal"),
    *("Stereographic", "Times", "Transverse Cylindrical Equal Area", "Two Point Equidistant", "Van Der Grinten"),
    *("Wagner I", "Wagner II", "Wagner III", "Wagner IV", "Wagner V", "Wagner VI", "Wagner VII"),
    *("Winkel I", "Winkel II", "Winkel Tripel"),
}


def read_crs(text: str, where: str) -> CRS:
    """Give the CRS of a code or of WKT; what is none, or has PROJ read other things, is rejected."""
    try:
        if CODE.fullmatch(text):
            return CRS.from_user_input(text)
        check_crs_text(text.encode(), where)
        return _harmless(_known_heights(CRS.from_wkt(text)), where)
    except ProjError:
        error = rejected(Code.UNKNOWN_SOURCE_CRS, "The CRS of the layer cannot be read.", where)
    except Rejected as refused:
        error = refused
    by_code = crs_of_code(code_in_wkt(text.encode()))
    if by_code is None:
        raise error
    return by_code


def crs_of_code(name: str | None) -> CRS | None:
    """Return the CRS of a code of EPSG or ESRI, or None if there is none."""
    try:
        return None if name is None else CRS.from_authority(*name.split(":", 1))
    except ProjError:
        return None


def wkt_of_code(name: str | None) -> str | None:
    """Return the WKT of a code of EPSG or ESRI, or None if there is none."""
    crs = crs_of_code(name if name is not None and _ANY_CODE.fullmatch(name) else None)
    return None if crs is None else str(crs.to_wkt(WktVersion.WKT1_GDAL) or crs.to_wkt())


def wkt_of_json(described: Any, where: str) -> str:
    """Give a CRS that is written as PROJJSON as WKT."""
    _check_plain(described, where)
    try:
        return str(CRS.from_json_dict(described).to_wkt())
    except (ProjError, TypeError, ValueError, AttributeError):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, "The CRS of the file cannot be read.", where) from None


def on_the_ground(crs: CRS) -> CRS:
    """Give a CRS without heights."""
    return crs.sub_crs_list[0] if crs.is_compound else crs.to_2d()


def epsg_name(crs: CRS) -> str | None:
    """Give the code of a CRS, if it is sure to be that."""
    authority = crs.to_authority(min_confidence=100)
    return f"{_EPSG}:{authority[1]}" if authority and authority[0] == _EPSG else None


def _known_heights(crs: CRS) -> CRS:
    """Leave out heights that have no code: they remain as they are."""
    return crs.sub_crs_list[0] if crs.is_compound and epsg_name(crs) is None else crs


def _harmless(crs: CRS, where: str) -> CRS:
    """Give a CRS made anew from its code, or else from what was looked at and nothing more."""
    if name := epsg_name(crs):
        return CRS.from_user_input(name)
    described = crs.to_json_dict()
    if described.get("conversion", {}).get("method", {}).get("name") in PROJ_METHODS:
        described.pop("remarks", None)  # PROJ repeats there what the parameters say, and would read it instead of them
    _check_plain(described, where)
    return CRS.from_json_dict(described)


def _check_plain(described: Any, where: str) -> None:
    try:
        is_plain = all(map(_is_plain, _parts(described)))
    except (TypeError, KeyError, AttributeError, RecursionError):
        is_plain = False
    if not is_plain:
        what = "The CRS of the layer is defined by files, by PROJ pipelines or by a projection method that PROJ lacks."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, where)


def _parts(described: Any) -> Iterator[dict[str, Any]]:
    if isinstance(described, dict):
        yield described
    children = described.values() if isinstance(described, dict) else described if isinstance(described, list) else ()
    for child in children:
        yield from _parts(child)


def _is_plain(part: dict[str, Any]) -> bool:
    is_known = "method" not in part or _is_known(part)
    return is_known and _OWN_TEXT not in str(part.get("remarks", "")).casefold()


def _is_known(conversion: dict[str, Any]) -> bool:
    """Tell whether a method is one of the known, and has numbers alone for parameters."""
    method, parameters = conversion["method"], conversion.get("parameters", [])
    name = str(method["name"])
    if not all(isinstance(each["value"], int | float) for each in parameters):
        return False
    if name == TURNED_POLE:
        return {each["name"] for each in parameters} <= _TURNED_BY
    if name in PROJ_METHODS:
        return {each["name"] for each in parameters} <= _PLAIN_PARAMETERS
    is_numbered = (method.get("id") or {}).get("authority") == _EPSG
    return name in _METHODS or (is_numbered and not name.casefold().lstrip().startswith(_OWN_STEPS))
