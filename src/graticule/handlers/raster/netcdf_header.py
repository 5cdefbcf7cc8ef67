"""The header of a classic NetCDF file: its dimensions, and its attributes that are texts."""

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final

_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12  # the marks of the lists
_MOST_ENTRIES: Final = {_DIMENSIONS: 1024, _VARIABLES: 10_000, _ATTRIBUTES: 10_000}
_TEXT: Final = 2
_MAX_TEXT_BYTES: Final = 16 * 1024**2
_MAX_SKIPPED_BYTES: Final = 1024**3
_TYPE_SIZES: Final = {1: 1, _TEXT: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


def longest_dimension(head: bytes) -> int:
    """Return the length of the longest dimension: GDAL reads a coordinate for each step when it opens a file.

    A head that is no NetCDF or ends too early is a ValueError.
    """
    return max(_Header(io.BytesIO(head)).dimensions(), default=0)


def text_attributes(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Return the names and values of all texts; a header that cannot be read is a ValueError."""
    header = _Header(stream)
    list(header.dimensions())
    yield from header.attributes()
    yield from header.attributes_of_variables()


class _Header:
    """A position in the header, which moves on with all that is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        version = self._read(4)[3]
        self._form = ">Q" if version == 5 else ">I"
        self._offset_bytes = 4 if version == 1 else 8
        self._number()  # of records

    def dimensions(self) -> Iterator[int]:
        for _ in self._list(_DIMENSIONS):
            self._name()
            yield self._number()

    def attributes(self) -> Iterator[tuple[str, bytes]]:
        for _ in self._list(_ATTRIBUTES):
            name, kind, count = self._name(), self._number(">I"), self._number()
            if kind not in _TYPE_SIZES:
                raise ValueError("An attribute has an unknown type.")
            if kind == _TEXT:
                yield name, self._padded(count)
            else:
                self._skip(_pad(_TYPE_SIZES[kind] * count))

    def attributes_of_variables(self) -> Iterator[tuple[str, bytes]]:
        for _ in self._list(_VARIABLES):
            self._name()
            self._skip(self._number() * struct.calcsize(self._form))  # its dimensions
            yield from self.attributes()
            self._skip(4 + struct.calcsize(self._form) + self._offset_bytes)  # type, size and place

    def _list(self, mark: int) -> range:
        found, count = self._number(">I"), self._number()
        if (found, count) != (0, 0) and (found != mark or count > _MOST_ENTRIES[mark]):
            raise ValueError("A list is missing, or too long.")
        return range(count)

    def _name(self) -> str:
        return self._padded(self._number()).decode(errors="replace")

    def _padded(self, size: int) -> bytes:
        return self._read(_pad(size))[:size]

    def _number(self, form: str | None = None) -> int:
        form = form or self._form
        return int(struct.unpack(form, self._read(struct.calcsize(form)))[0])

    def _skip(self, size: int) -> None:
        if size > _MAX_SKIPPED_BYTES:
            raise ValueError("The header is too long.")
        self._stream.seek(size, io.SEEK_CUR)

    def _read(self, size: int) -> bytes:
        content = self._stream.read(size) if size <= _MAX_TEXT_BYTES else b""
        if len(content) < size:
            raise ValueError("The header ends too early.")
        return content


def _pad(size: int) -> int:
    return size + -size % 4
