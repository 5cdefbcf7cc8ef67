"""A file of Python's that is read by ranges: it need not lie on this machine."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from graticule.storage.blocking import BlockingStorage

BUFFER_BYTES: Final = 1024 * 1024


class RangeReader(io.RawIOBase):
    """Reads a file of a known size by a function that returns the bytes of a range."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read, self._size, self._at = read, size, 0

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: it can be read anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to where the next bytes are read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return where the next bytes are read."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return with how many bytes."""
        wanted = max(0, min(len(buffer), self._size - self._at))
        data = self._read(self._at, wanted) if wanted else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def blob_stream(storage: BlockingStorage, path: str) -> io.BufferedReader:
    """Open a blob for reading."""
    return io.BufferedReader(RangeReader(partial(storage.read, path), storage.stat(path).size), BUFFER_BYTES)
