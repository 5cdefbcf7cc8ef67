"""What is looked at in a FlatGeobuf file before GDAL reads it."""

import struct
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.crs_texts import check_crs_text, is_name
from graticule.handlers.vector.sources.source import SourceFile

_HEADER: Final = 12  # where it begins: after the mark, and its length
_LONGEST_HEADER: Final = 10 * 1024**2  # that GDAL reads, too
# The numbers of fields in the schema of the format.
_CRS: Final = 10
_AUTHORITY, _WKT, _CODE = 0, 4, 5


def check_crs(file: SourceFile) -> None:
    """Reject a file whose CRS leads elsewhere."""
    try:
        header = _Buffer(file.storage.read(file.path, _HEADER, _LONGEST_HEADER))
        crs = header.reference(header.follow(0), _CRS)
        texts = {} if crs is None else {each: header.text(crs, each) for each in (_AUTHORITY, _WKT, _CODE)}
    except struct.error:
        raise rejected(Code.CORRUPT, "The header of the file cannot be read.") from None
    check_crs_text(texts.pop(_WKT, b""), "header")
    if not all(is_name(text.decode(errors="replace")) for text in texts.values() if text):
        raise rejected(Code.UNKNOWN_SOURCE_CRS, "The CRS of the file is not the name of one.", "header")


class _Buffer:
    """A FlatBuffer: tables, whose fields are found by their number, and texts. `struct.error` when it is none."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def follow(self, at: int) -> int:
        return at + self._number("<I", at)

    def reference(self, table: int, field: int) -> int | None:
        """Give where the value of a field is, or None when it is left out."""
        fields = table - self._number("<i", table)
        place = 4 + 2 * field
        offset = self._number("<H", fields + place) if place < self._number("<H", fields) else 0
        return self.follow(table + offset) if offset else None

    def text(self, table: int, field: int) -> bytes:
        at = self.reference(table, field)
        return b"" if at is None else self._data[at + 4 : at + 4 + self._number("<I", at)]

    def _number(self, form: str, at: int) -> int:
        if at < 0:
            raise struct.error("before the beginning")
        return int(struct.unpack_from(form, self._data, at)[0])
