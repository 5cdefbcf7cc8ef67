"""What is looked at in a File Geodatabase before GDAL reads it: the texts of CRSs in its tables."""

import html
import re
import struct
import zipfile
from typing import IO, Final

from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import check_crs_text

FOLDER: Final = "layer.gdb"  # how the database is called where we pack it
MAIN_TABLE: Final = "a00000001.gdbtable"
FILES: Final = re.compile(r"a[0-9a-f]{8}\.gdbtabl[ex]|gdb", re.IGNORECASE)  # that are read
OWN_FILES: Final = re.compile(r"a[0-9a-f]{8}\.[\w.]+|gdb|timestamps", re.IGNORECASE)
MAX_HEADER_BYTES: Final = 4 * 1024**2
_VERSIONS: Final = (b"\x03\0\0\0", b"\x04\0\0\0")
_HEADER: Final = struct.Struct("<32xQ")  # of a table: where its fields are described
_WKT: Final = re.compile(rb"<(?:\w+:)?WKT2?>([^<]*)<", re.IGNORECASE)
_WINDOW, _OVERLAP = 60 * 1024, 16 * 1024
_PIECE: Final = 1024**2


def is_main_table(name: str) -> bool:
    """Whether a file is called as the table that lists the tables of a database."""
    return name.rpartition("/")[2].casefold() == MAIN_TABLE


def is_table(head: bytes) -> bool:
    """Whether a file begins as a table of a version that GDAL reads."""
    return head.startswith(_VERSIONS)


def check_tables(file: str) -> None:
    """Reject a database with a CRS that leads to other files."""
    with zipfile.ZipFile(file) as packed:
        for name in packed.namelist():
            if name.casefold().endswith(".gdbtable"):
                with packed.open(name) as table:
                    _check_table(table, name.rpartition("/")[2])


def _check_table(table: IO[bytes], name: str) -> None:
    head = table.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise rejected(Code.CORRUPT, "A table of the geodatabase is cut off.", f"file {name}")
    table.seek(_HEADER.unpack(head)[0])
    (length,) = struct.unpack("<I", table.read(4).ljust(4, b"\0"))
    described = table.read(min(length, MAX_HEADER_BYTES)).replace(b"\0", b"")  # texts are in UTF-16
    for begin in range(0, len(described), _WINDOW - _OVERLAP):
        _check_crs(b"x" + described[begin : begin + _WINDOW], name)  # it does not begin with a CRS
    table.seek(0)
    held = b""
    while piece := table.read(_PIECE):
        for found in _WKT.finditer(held + piece):
            _check_crs(html.unescape(found[1].decode(errors="replace")).encode(), name)
        held = piece[-_OVERLAP:]


def _check_crs(text: bytes, name: str) -> None:
    check_crs_text(text, f"file {name}")
