"""What is looked at in a File Geodatabase before GDAL reads it: the texts of CRSs in its tables."""

import html
import re
import struct
import zipfile
from typing import IO, Final

from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import LONGEST_TEXT, is_self_contained, leads_elsewhere, unusable_crs

FOLDER: Final = "layer.gdb"  # how the database is called where we pack it
MAIN_TABLE: Final = "a00000001.gdbtable"
FILES: Final = re.compile(r"a[0-9a-f]{8}\.gdbtabl[ex]|gdb", re.IGNORECASE)  # that are read
OWN_FILES: Final = re.compile(r"a[0-9a-f]{8}\.[\w.]+|gdb|timestamps", re.IGNORECASE)
MAX_HEADER_BYTES: Final = 4 * 1024**2
_VERSIONS: Final = (b"\x03\0\0\0", b"\x04\0\0\0")
_HEADER: Final = struct.Struct("<32xQ")  # of a table: where its fields are described
# An element with the text of a CRS. It has no text here if its tag is too long, and one with `<!` if that is not plain.
_WKT: Final = re.compile(
    rb"[<:]WKT2?(?=[\s/>])(?:[^<>]{100}|[^<>]*>([^<]{0,%d}+(?:(?=<[^!])|<!|[^<])))" % LONGEST_TEXT, re.IGNORECASE
)
_OVERLAP: Final = LONGEST_TEXT + 200
PIECE_BYTES: Final = 1024**2


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
    if length > MAX_HEADER_BYTES:
        what = f"A table of the geodatabase describes its fields in more than {MAX_HEADER_BYTES // 1024**2} MiB."
        raise rejected(Code.CORRUPT, what, f"file {name}")
    described = table.read(length).replace(b"\0", b"")  # texts are in UTF-16
    if leads_elsewhere(b"x" + described):  # it does not begin with a CRS
        raise unusable_crs(f"file {name}")
    table.seek(0)
    held = b""
    while piece := table.read(PIECE_BYTES):
        held += piece
        if not all(_is_plain(found[1]) for found in _WKT.finditer(held)):
            raise unusable_crs(f"file {name}")
        held = held[-_OVERLAP:]


def _is_plain(text: bytes | None) -> bool:
    if text is None or text.endswith(b"<!"):
        return False
    return is_self_contained(html.unescape(text.decode(errors="replace")).encode())
