"""The citations of a GeoTIFF, also of one inside a JPEG 2000 file: GDAL reads the WKT that ArcGIS writes there."""

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.crs_texts import check_crs_text
from graticule.handlers.raster.validation_codes import Code, finding

_CITATIONS: Final = 34737  # the tag with the texts of all geokeys
_MARK: Final = b"ESRI PE String"
_MAX_TEXT_BYTES: Final = 1024**2
_MAX_DIRECTORIES: Final = 65_536
_MAX_ENTRIES: Final = 65_536  # of a directory
_GEOTIFF_BOX: Final = bytes.fromhex("b14bf8bd083d4b43a5ae8cd7d5a6ce03")
_MAX_BOX_BYTES: Final = 16 * 1024**2
_MAX_BOXES: Final = 100_000
_UNREADABLE: Final = (struct.error, ValueError, OverflowError)


def check_citations(tiff: BinaryIO) -> None:
    """Reject a GeoTIFF whose CRS refers to other files; tags that cannot be read are left to GDAL."""
    for text in _citations(tiff):
        if _MARK in text:
            check_crs_text(text, "GeoTIFF citation")


def check_boxes(jpeg2000: BinaryIO) -> None:
    """Check the GeoTIFFs inside a JPEG 2000 file as `check_citations` does."""
    for box in _geotiff_boxes(jpeg2000):
        check_citations(io.BytesIO(box))


def _citations(tiff: BinaryIO) -> Iterator[bytes]:
    head, seen = tiff.read(16), set[int]()
    order, is_big = "<" if head[:2] == b"II" else ">", head[2:4] in {b"+\0", b"\0+"}
    forms = ("Q", "HHQQ", "Q") if is_big else ("H", "HHII", "I")
    count, entry, offset = (struct.Struct(order + form) for form in forms)
    with suppress(*_UNREADABLE):
        (start,) = offset.unpack_from(head, 8 if is_big else 4)
        while start and start not in seen and len(seen) < _MAX_DIRECTORIES:
            seen.add(start)
            tiff.seek(start)
            (entries,) = count.unpack(tiff.read(count.size))
            directory = tiff.read(min(entries, _MAX_ENTRIES) * entry.size)
            (start,) = offset.unpack(tiff.read(offset.size))
            for tag, _, length, place in entry.iter_unpack(directory):
                if tag == _CITATIONS:
                    tiff.seek(place)
                    yield tiff.read(min(length, _MAX_TEXT_BYTES))


def _geotiff_boxes(jpeg2000: BinaryIO) -> Iterator[bytes]:
    for start, length in _uuid_boxes(jpeg2000):
        jpeg2000.seek(start)
        if jpeg2000.read(len(_GEOTIFF_BOX)) == _GEOTIFF_BOX:
            if length > _MAX_BOX_BYTES:
                raise Rejected([finding(Code.CORRUPT, "A GeoTIFF box is too long.", "boxes")])
            yield jpeg2000.read(max(0, length - len(_GEOTIFF_BOX)))


def _uuid_boxes(jpeg2000: BinaryIO) -> Iterator[tuple[int, int]]:
    """Return where the content of each box with a UUID begins, and how long it is."""
    start, end = 0, jpeg2000.seek(0, io.SEEK_END)
    for _ in range(_MAX_BOXES):
        jpeg2000.seek(start)
        head = jpeg2000.read(16)
        if len(head) < 8:
            return
        length, kind = struct.unpack_from(">I4s", head)
        content = start + (16 if length == 1 else 8)
        stop = {0: end, 1: start + int.from_bytes(head[8:])}.get(length, start + length)
        if stop < content:
            return
        if kind == b"uuid":
            yield content, min(stop, end) - content
        start = stop
    raise Rejected([finding(Code.CORRUPT, "It has too many boxes.", "boxes")])
