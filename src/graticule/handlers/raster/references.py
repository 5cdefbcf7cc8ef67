"""What in a raster leads to other files, looked for before GDAL opens it."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.crs_texts import check_crs_text, check_envi_header, is_crs_attribute
from graticule.handlers.raster.file_kinds import ENVI, ERDAS, GEOPACKAGE, HDF5, JPEG2000, NETCDF, TIFF, FileKind
from graticule.handlers.raster.geopackage_tables import check_tables
from graticule.handlers.raster.netcdf_header import text_attributes
from graticule.handlers.raster.source_file import file_of, open_stream
from graticule.handlers.raster.tiff_citations import check_boxes, check_citations
from graticule.handlers.raster.validation_codes import Code, finding

Watch = Callable[[], None]

_PIECE_BYTES: Final = 16 * 1024**2
_CRS_REFERS: Final = "The CRS definition refers to other files."
_ERDAS_MARKS: Final = {  # in lower case; the WKT of the CRS lies anywhere among the pixels
    b"externalrasterdms": "Its pixels lie in another file (.ige).",
    b"proj4_grids": _CRS_REFERS,
    b"parameterfile": _CRS_REFERS,
    b'"proj ': _CRS_REFERS,  # a method of PROJ itself, whose parameters may be files
}


def check_references(stream: BinaryIO, kind: FileKind) -> None:
    """Reject a file that leads to another one, if it is of a format that is read by ranges."""
    if kind is HDF5:
        from graticule.handlers.raster import hdf5_references  # noqa: PLC0415 - a heavy import, needed for few files

        hdf5_references.check_references(stream)
    elif (check := _CHECKS.get(kind)) is not None:
        stream.seek(0)
        check(stream)


def check_local_references(name: str, kind: FileKind, header: str | None, watch: Watch) -> None:
    """Reject a file of this machine that leads to another one."""
    if kind is ERDAS:
        _check_erdas(name, watch)
    elif kind is GEOPACKAGE:
        check_tables(name)
    elif kind is ENVI and header is not None:
        check_envi_header(Path(header).read_bytes())
    else:
        with open_stream(file_of(name)) as stream:
            check_references(stream, kind)


def _check_netcdf(stream: BinaryIO) -> None:
    try:
        for name, text in text_attributes(stream):
            if is_crs_attribute(name):
                check_crs_text(text, f"attribute {name}")
    except ValueError:
        raise Rejected([finding(Code.CORRUPT, "Its header cannot be read.", "header")]) from None


def _check_erdas(name: str, watch: Watch) -> None:
    """Search a file of any size, piece by piece."""
    end = b""
    with Path(name).open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            watch()
            searched = end + piece.lower()
            for mark, what in _ERDAS_MARKS.items():
                if mark in searched:
                    raise Rejected([finding(Code.REFERS_TO_OTHER_FILES, what, mark.decode())])
            end = searched[-max(map(len, _ERDAS_MARKS)) :]


_CHECKS: Final[dict[FileKind, Callable[[BinaryIO], None]]] = {
    TIFF: check_citations,
    JPEG2000: check_boxes,
    NETCDF: _check_netcdf,
}
