"""What a file is by its first bytes. Its name says nothing: a partner may have called it anything."""

import re
import struct
from dataclasses import dataclass
from typing import Final

WORLD_FILE_ENDINGS: Final = (
    *(".tfw", ".tifw", ".tiffw", ".pgw", ".pngw", ".jgw", ".jpgw", ".jpegw", ".gfw", ".gifw", ".wld"),
)
HEAD_BYTES: Final = 4096  # enough for every mark below


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, and the GDAL drivers that may open it; none for a kind that is not accepted."""

    name: str
    drivers: tuple[str, ...] = ()
    is_sequential: bool = False  # the last line cannot be read without all lines before it


TIFF: Final = FileKind("GeoTIFF", ("GTiff",))
PNG: Final = FileKind("PNG", ("PNG",), is_sequential=True)
JPEG: Final = FileKind("JPEG", ("JPEG",), is_sequential=True)
JPEG2000: Final = FileKind("JPEG 2000", ("JP2OpenJPEG",))
NETCDF: Final = FileKind("NetCDF", ("netCDF",))
# The HDF5 driver hands the grids of the IHO (S-102, S-104, S-111) to drivers of their own.
HDF5: Final = FileKind("HDF5", ("netCDF", "HDF5", "HDF5Image", "S102", "S104", "S111"))
GRIB: Final = FileKind("GRIB", ("GRIB",))
ERDAS: Final = FileKind("Erdas Imagine", ("HFA",))
ASCII_GRID: Final = FileKind("ASCII grid", ("AAIGrid",))
ENVI: Final = FileKind("ENVI", ("ENVI",))  # two files, so only in an archive; known by the second
GIF: Final = FileKind("GIF", ("GIF", "BIGGIF"), is_sequential=True)
GEOPACKAGE: Final = FileKind("GeoPackage", ("GPKG",))
# Formats that every task reads as they are, by ranges.
READ_DIRECTLY: Final = (TIFF, PNG, JPEG, JPEG2000)
# Formats that `raster.validate` may have to convert first, and those that it always converts.
CONTAINERS: Final = (NETCDF, HDF5)
CONVERTED: Final = (GRIB, ERDAS, ASCII_GRID, ENVI, GIF, GEOPACKAGE)
ACCEPTED: Final = (*READ_DIRECTLY, *CONTAINERS, *CONVERTED)

REFERENCE: Final = FileKind("a description of rasters elsewhere (VRT and its like)")
ZIP: Final = FileKind("a zip archive")
ARCHIVE: Final = FileKind("an archive")
HDF4: Final = FileKind("HDF4")

_MARKS: Final[tuple[tuple[int, bytes, FileKind], ...]] = (
    (0, b"II*\0", TIFF),
    (0, b"MM\0*", TIFF),
    (0, b"II+\0", TIFF),
    (0, b"MM\0+", TIFF),
    (0, b"\x89PNG\r\n\x1a\n", PNG),
    (0, b"\xff\xd8\xff", JPEG),
    (4, b"jP  \r\n\x87\n", JPEG2000),
    (0, b"\xff\x4f\xff\x51", JPEG2000),
    (0, b"CDF\x01", NETCDF),
    (0, b"CDF\x02", NETCDF),
    (0, b"CDF\x05", NETCDF),
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (0, b"GRIB", GRIB),
    (0, b"EHFA_HEADER_TAG", ERDAS),
    (0, b"GIF87a", GIF),
    (0, b"GIF89a", GIF),
    (0, b"\x0e\x03\x13\x01", HDF4),
    (0, b"PK\x03\x04", ZIP),
    (0, b"PK\x05\x06", ZIP),
    (0, b"\x1f\x8b", ARCHIVE),
    (0, b"BZh", ARCHIVE),
    (0, b"\xfd7zXZ\0", ARCHIVE),
    (0, b"7z\xbc\xaf\x27\x1c", ARCHIVE),
    (0, b"Rar!\x1a\x07", ARCHIVE),
    (0, b"\x28\xb5\x2f\xfd", ARCHIVE),
    (257, b"ustar", ARCHIVE),
    *((start, b"\x89HDF\r\n\x1a\n", HDF5) for start in (512, 1024, 2048)),  # behind a block of the user's
)
_REFERENCE_ROOTS: Final = (b"<VRTDataset", b"<GDAL_WMS", b"<WMS_Capabilities", b"<GDALTileIndexDataset", b"<GDAL_WCS")


_ASCII_GRID: Final = re.compile(
    rb"\s*(?:ncols|nrows|[xy]ll(?:corner|center)|cellsize|d[xy])[ \t]+[-+.\d]", re.IGNORECASE
)
_GRIB_BEHIND_HEADER: Final = re.compile(rb"[\x00-\x7f]{1,1000}?GRIB.{3}[\x01\x02]", re.DOTALL)  # that of the WMO
_SQLITE: Final = b"SQLite format 3\0"
_GEOPACKAGE_IDS: Final = (b"GPKG", b"GP10", b"GP11")  # where SQLite keeps the id of an application


def kind_of(head: bytes) -> FileKind | None:
    """Tell what a file is by its first bytes; None for one that is nothing known."""
    for start, mark, kind in _MARKS:
        if head[start : start + len(mark)] == mark:
            return kind
    if head.startswith(_SQLITE) and head[68:72] in _GEOPACKAGE_IDS:
        return GEOPACKAGE
    if _ASCII_GRID.match(head) and b"\0" not in head:
        return ASCII_GRID
    if _GRIB_BEHIND_HEADER.match(head):
        return GRIB
    return REFERENCE if any(root in head for root in _REFERENCE_ROOTS) else None


def first_directory(head: bytes) -> int:
    """Give where the first directory of a TIFF begins, as its head says; 0 when the head is cut off."""
    order = "<" if head[:2] == b"II" else ">"
    form, start = ("Q", 8) if head[2:4] in {b"+\0", b"\0+"} else ("I", 4)
    length = struct.calcsize(form)
    return int(struct.unpack(order + form, head[start : start + length])[0]) if len(head) >= start + length else 0
