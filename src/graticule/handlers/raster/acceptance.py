"""Whether GDAL may see a file at all, by its first bytes: nothing but what is known and harmless."""

from typing import Final

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.file_kinds import (
    ARCHIVE,
    HDF4,
    NETCDF,
    REFERENCE,
    TIFF,
    FileKind,
    first_directory,
    kind_of,
)
from graticule.handlers.raster.netcdf_header import longest_dimension
from graticule.handlers.raster.validation_codes import Code, finding

_REFUSED: Final = {
    REFERENCE: Code.VRT_NOT_ACCEPTED,
    ARCHIVE: Code.ARCHIVE_NOT_ACCEPTED,
    HDF4: Code.HDF4_NOT_ACCEPTED,
}


def accepted_kind(head: bytes) -> FileKind:
    """Tell what a file is, or reject it."""
    if not head:
        raise Rejected([finding(Code.EMPTY_FILE, "The file has no bytes.")])
    kind = kind_of(head)
    if kind is None:
        raise Rejected([finding(Code.NOT_A_RASTER, "It is of no known raster format.", "first bytes")])
    if (code := _REFUSED.get(kind)) is not None:
        raise Rejected([finding(code, f"It is {kind.name}.", "first bytes")])
    return kind


def check_length(kind: FileKind, head: bytes, size: int) -> None:
    """Reject a file that ends before what its first bytes tell of."""
    if kind is TIFF and (directory := first_directory(head)) >= size:
        what = f"Its end is missing: its directory is at byte {directory}, and the file has {size}."
        raise Rejected([finding(Code.TRUNCATED, what, "directory")])
    if kind is NETCDF:
        _check_dimensions(head, size)


def _check_dimensions(head: bytes, size: int) -> None:
    """Reject a file that is too short for its own dimensions: pixels and axes are stored as they are."""
    try:
        longest = longest_dimension(head)
    except ValueError:
        raise Rejected([finding(Code.CORRUPT, "Its header cannot be read.", "header")]) from None
    if longest > size:
        what = f"One of its dimensions has {longest} steps, and the file has {size} bytes."
        raise Rejected([finding(Code.TRUNCATED, what, "header")])
