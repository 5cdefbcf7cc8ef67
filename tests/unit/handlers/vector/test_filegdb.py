"""Tables of File Geodatabases: texts of CRSs that lead to other files are found wherever GDAL reads them."""

import struct
import zipfile
from pathlib import Path

import pytest

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.sources import filegdb

GRIDS = b"PROJ4_GRIDS"
WEB_MERCATOR = b'EXTENSION["PROJ4","+proj=merc +a=6378137 +nadgrids=@null +wktext"]'
BEFORE_A_PIECE_ENDS = filegdb.PIECE_BYTES - 60_000


def code_of(folder: Path, described: bytes, content: bytes = b"", length: int | None = None) -> str | None:
    """Check a table, and return the code with which it is rejected."""
    file = folder / "layer.gdb-files"
    size = len(described) if length is None else length
    table = struct.pack("<32xQI", 40, size) + described + content
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(f"{filegdb.FOLDER}/a00000001.gdbtable", table)
    try:
        filegdb.check_tables(str(file))
    except Rejected as error:
        return error.findings[0].code
    return None


@pytest.mark.parametrize(
    ("described", "code"),
    [
        (WEB_MERCATOR * 5000, None),
        (b"x" * 50_000 + b"METHOD" + b" " * 30_000 + b'["PROJ pipeline"]', "unknown_source_crs"),
        (b"x" * 3_000_000 + GRIDS, "unknown_source_crs"),
        (GRIDS.decode().encode("utf-16-le"), "unknown_source_crs"),
    ],
)
def test_descriptions_of_fields_are_checked_as_a_whole(tmp_path: Path, described: bytes, code: str | None) -> None:
    assert code_of(tmp_path, described) == code


def test_descriptions_of_fields_that_are_too_long_are_rejected(tmp_path: Path) -> None:
    assert code_of(tmp_path, b"x", length=filegdb.MAX_HEADER_BYTES + 1) == "corrupt"


@pytest.mark.parametrize(
    ("element", "code"),
    [
        (b"<WKT>%b</WKT>" % WEB_MERCATOR, None),
        (b"<WKT2/><WKT></WKT><WKTS>PROJ4_GRIDS</WKTS>", None),
        (b"<WKT>PROJ4_GRIDS</WKT>", "unknown_source_crs"),
        (b"<e:wkt2>&#80;ROJ4_GRIDS</e:wkt2>", "unknown_source_crs"),
        (b'<WKT a="b">PROJ4_GRIDS</WKT>', "unknown_source_crs"),
        (b'<WKT a="%b">PROJ4_GRIDS</WKT>' % (b"b" * 70_000), "unknown_source_crs"),
        (b"<WKT><![CDATA[PROJ4_GRIDS]]></WKT>", "unknown_source_crs"),
        (b"<WKT>%bPROJ4_GRIDS</WKT>" % (b" " * 65_000), "unknown_source_crs"),
        (b"<WKT>%b</WKT>" % (b" " * 70_000), "unknown_source_crs"),
    ],
)
@pytest.mark.parametrize("before", [0, BEFORE_A_PIECE_ENDS])
def test_every_crs_of_a_table_is_checked(tmp_path: Path, element: bytes, code: str | None, before: int) -> None:
    assert code_of(tmp_path, b"", b"\xff" * before + element) == code


def test_a_crs_is_not_cut_where_a_piece_ends(tmp_path: Path) -> None:
    element = b"<WKT>%b</WKT>" % WEB_MERCATOR
    for before in range(filegdb.PIECE_BYTES - len(element) - 44, filegdb.PIECE_BYTES - 44):
        assert code_of(tmp_path, b"", b"\xff" * before + element) is None
