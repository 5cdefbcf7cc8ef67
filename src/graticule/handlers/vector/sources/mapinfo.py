"""MapInfo tables (TAB) and interchange files (MIF), of which only those are read that hold their own data."""

import re
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected

TABLE, TABLE_PARTS = ".tab", (".dat", ".map", ".id", ".ind")
INTERCHANGE, INTERCHANGE_PARTS = ".mif", (".mid",)
_TABLE: Final = re.compile(rb"!table\b", re.IGNORECASE)
_INTERCHANGE: Final = re.compile(
    rb"version[ \t]+\d+[ \t]*[\r\n].{0,1000}?^[ \t]*(?:coordsys|columns)\b", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
INTERCHANGE_BYTES: Final = 2048  # in which an interchange file names its columns or its CRS
_OWN_DATA: Final = re.compile(rb"^[ \t]*type[ \t]+(?:native|linked)\b", re.IGNORECASE | re.MULTILINE)
_OTHER_TABLES: Final = re.compile(rb"create\s+view|open\s+table|isseamless", re.IGNORECASE)


def is_mapinfo(text: bytes) -> bool:
    """Whether a file begins like a MapInfo table or an interchange file."""
    return bool(_TABLE.match(text) or _INTERCHANGE.match(text, 0, INTERCHANGE_BYTES))


def ending_of(head: bytes) -> str:
    """Return the ending of the file that is opened, by how it begins."""
    return TABLE if _TABLE.match(head) else INTERCHANGE


def check_header(head: bytes, *, is_whole: bool) -> None:
    """Reject a table that refers to others: a view, a seamless table, a raster or a database.

    GDAL looks for such references in the whole file, so the whole of it must be known.
    """
    if not _TABLE.match(head):
        return
    if not is_whole:
        what = f"The .tab file has {len(head) // 1024} KiB or more; a MapInfo table is described in a few."
        raise rejected(Code.TOO_LARGE_FILE, what)
    if _OTHER_TABLES.search(head) or not _OWN_DATA.search(head):
        what = "The MapInfo table has no data of its own: it refers to other tables, a raster or a database."
        raise rejected(Code.NOT_A_TABLE, what)
