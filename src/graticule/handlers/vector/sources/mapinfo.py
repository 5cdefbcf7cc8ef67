"""MapInfo tables (TAB) and interchange files (MIF), of which only those are read that hold their own data."""

import re
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected

TABLE, TABLE_PARTS = ".tab", (".dat", ".map", ".id", ".ind")
INTERCHANGE, INTERCHANGE_PARTS = ".mif", (".mid",)
_TABLE: Final = re.compile(rb"!table\b", re.IGNORECASE)
_INTERCHANGE: Final = re.compile(
    rb"version\s+\d+\s*[\r\n].{0,1000}?^\s*(?:coordsys|columns)\b", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_OWN_DATA: Final = re.compile(rb"^\s*type\s+(?:native|linked)\b", re.IGNORECASE | re.MULTILINE)
_OTHER_TABLES: Final = re.compile(rb"create\s+view|open\s+table|isseamless", re.IGNORECASE)


def is_mapinfo(text: bytes) -> bool:
    """Whether a file begins like a MapInfo table or an interchange file."""
    return bool(_TABLE.match(text) or _INTERCHANGE.match(text))


def ending_of(head: bytes) -> str:
    """Return the ending of the file that is opened, by how it begins."""
    return TABLE if _TABLE.match(head) else INTERCHANGE


def check_header(head: bytes) -> None:
    """Reject a table that refers to others: a view, a seamless table, a raster or a database."""
    if _TABLE.match(head) and (_OTHER_TABLES.search(head) or not _OWN_DATA.search(head)):
        what = "The MapInfo table has no data of its own: it refers to other tables, a raster or a database."
        raise rejected(Code.NOT_A_TABLE, what)
