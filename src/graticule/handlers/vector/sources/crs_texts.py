"""Texts of CRSs, looked at before GDAL or PROJ see them. No PROJ here: orchestrators import it.

Both open the files that a text names as grids or as lists of definitions, some of them when they only read the text: a
pipe would hold them for ever.
"""

import re
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected

LONGEST_TEXT: Final = 64 * 1024
_LEADS_ELSEWHERE: Final = re.compile(
    rb"(?:METHOD|PROJECTION|GEOIDMODEL)\s*[\[(]\W*PROJ(?! ob_tran o_proj=longlat\")"  # steps of its own
    rb"|PARAMETERFILE|PROJ4_GRIDS"
    rb"|(?:\w*grids|init|file|model|catalog)\s*=\s*(?!@null(?![\w,./]))"  # in what is handed on to PROJ
    rb"|\A\W*\{|\A\W*\+|\A\W*proj\s*=",  # no WKT at all
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[\w:./#-]{1,200}", re.ASCII)


def check_crs_text(text: bytes, where: str) -> None:
    """Reject the text of a CRS that leads to other files, or that is too long for one."""
    if len(text) > LONGEST_TEXT or _LEADS_ELSEWHERE.search(text):
        raise rejected(
            Code.UNKNOWN_SOURCE_CRS,
            "The CRS is not defined by itself (it leads to other files), or is too long.",
            where,
        )


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a CRS, and no definition."""
    return _NAME.fullmatch(text) is not None
