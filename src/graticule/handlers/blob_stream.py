"""A blob as a file of Python's, read by ranges: it need not lie on this machine."""

import io
from typing import Final

from graticule.storage.blocking import BlockingStorage

BUFFER_BYTES: Final = 1024 * 1024


class _Ranges(io.RawIOBase):
    def __init__(self, storage: BlockingStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._size = storage.stat(path).size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what a buffered reader gives
        data = self._storage.read(self._path, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def blob_stream(storage: BlockingStorage, path: str) -> io.BufferedReader:
    """Open a blob for reading."""
    return io.BufferedReader(_Ranges(storage, path), BUFFER_BYTES)
