"""Texts of CRSs, looked at before GDAL or PROJ see them. No PROJ here: orchestrators import it.

Both open the files that a text names as grids or as lists of definitions, some of them when they only read the text: a
pipe would hold them for ever.
"""

import re
from typing import Final

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.rejecting import Code, rejected

LONGEST_TEXT: Final = 64 * 1024
# Projections that are known by PROJ's names alone, of which nothing but numbers is read.
PROJ_METHODS: Final = frozenset(
    f"PROJ {name}"
    for name in (
        *("adams_ws2", "alsk", "bipc", "cc", "ccon", "collg", "euler", "fahey", "fouc", "fouc_s", "gn_sinu", "gs48"),
        *("gs50", "hammer", "hatano", "healpix", "imoll", "imoll_o", "isea", "kav5", "kav7", "lagrng", "lcca", "leac"),
        *("lee_os", "mbt_fps", "mbt_s", "mbtfpp", "mbtfps", "mil_os", "mill", "murd1", "murd2", "murd3", "nell"),
        *("nell_h", "ocea", "oea", "pconic", "peirce_q", "putp1", "putp2", "putp3", "putp3p", "putp4p", "putp5"),
        *("putp5p", "putp6", "putp6p", "rhealpix", "rouss", "s2", "som", "tissot", "tobmerc", "tpers", "ups"),
        *("ups south", "urmfps", "vitk1", "weren"),
    )
)
TURNED_POLE: Final = "PROJ ob_tran o_proj=longlat"
_PLAIN_METHODS: Final = "|".join(map(re.escape, sorted(PROJ_METHODS | {TURNED_POLE}))).encode()
_LEADS_ELSEWHERE: Final = re.compile(
    rb"(?:METHOD|PROJECTION|GEOIDMODEL)\s*[\[(]\W*(?!\b(?:%b)\")PROJ"
    % _PLAIN_METHODS  # steps of its own
    + rb"|PARAMETERFILE|PROJ4_GRIDS"
    rb"|(?:grids|init|file|model|catalog)\s*=\s*(?!@null(?![\w,./]))"  # in what is handed on to PROJ
    rb"|\A\W*\{|\A\W*\+|\A\W*proj\s*=",  # no WKT at all
    re.IGNORECASE,
)
# A code of the whole CRS: the last part of its WKT. Those of its parts are deeper.
_CODE: Final = re.compile(
    rb"(?:AUTHORITY|ID)\s*\[\s*\"(EPSG|ESRI)\"\s*,\s*\"?([0-9]{4,6})\"?\s*\]\s*\]\s*\Z", re.IGNORECASE
)
_NAME: Final = re.compile(r"[\w:./#-]{1,200}", re.ASCII)


def check_crs_text(text: bytes, where: str) -> None:
    """Reject the text of a CRS that leads to other files, or that is too long for one."""
    if not is_self_contained(text):
        raise unusable_crs(where)


def unusable_crs(where: str) -> Rejected:
    """Return the rejection of a file with such a text."""
    what = "The definition of the CRS refers to other files, such as datum grids, or is too long."
    return rejected(Code.UNKNOWN_SOURCE_CRS, what, where)


def is_self_contained(text: bytes) -> bool:
    """Return whether the text of a CRS leads to no other files."""
    return len(text) <= LONGEST_TEXT and not leads_elsewhere(text)


def leads_elsewhere(text: bytes) -> bool:
    """Return whether a text, such as one with definitions of CRSs in it, leads to other files."""
    return _LEADS_ELSEWHERE.search(text) is not None


def code_in_wkt(text: bytes) -> str | None:
    """Return the code that a WKT has for the whole CRS, such as EPSG:4267."""
    found = _CODE.search(text) if len(text) <= LONGEST_TEXT else None
    return None if found is None else f"{found[1].decode().upper()}:{found[2].decode()}"


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a CRS, and no definition."""
    return _NAME.fullmatch(text) is not None
