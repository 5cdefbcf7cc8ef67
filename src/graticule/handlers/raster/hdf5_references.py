"""What in an HDF5 file leads out of it.

HDF5 follows external links, external storage and virtual datasets to any file of this machine: GDAL would show its
bytes as pixels. So a file that has one of them is not opened by GDAL at all.
"""

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import h5py

from graticule.core.validation import shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.source_file import SourceFile
from graticule.handlers.raster.validation_codes import Code, finding

MOST_OBJECTS: Final = 10_000
LONGEST_SIDE: Final = 10_000_000
_BUFFER_BYTES: Final = 64 * 1024

ReadRange = Callable[[int, int], bytes]


class TooMuch(ValueError):
    """There are more objects than a raster needs, or longer ones: GDAL reads all axes when it opens a file."""


def check_references(file: SourceFile) -> None:
    """Reject a file that leads to another one."""
    try:
        found = leads_out(file.read, file.state().size)
    except (OSError, KeyError, RuntimeError, ValueError):
        raise Rejected([finding(Code.CORRUPT, "Its objects cannot be listed.")]) from None
    if found is not None:
        what = f"The data of its object '{shortened(found, 200)}' lie in another file."
        raise Rejected([finding(Code.REFERS_TO_OTHER_FILES, what, "objects")])


def leads_out(read: ReadRange, size: int) -> str | None:
    """Name the first object whose data lie in another file; None when there is none.

    A file that cannot be read is an OSError, KeyError, RuntimeError or ValueError, as h5py tells it.
    """
    stream: BinaryIO = io.BufferedReader(_Ranges(read, size), _BUFFER_BYTES)
    with h5py.File(stream, "r") as file:
        return next(_leading_out(file), None)


def _leading_out(file: Any) -> Iterator[str]:
    for group, name in _links(file):
        if _is_elsewhere(group, name):
            yield f"{group.name.rstrip('/')}/{name}"


def _is_elsewhere(group: Any, name: str) -> bool:
    link = group.get(name, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        return True
    item = (
        group.get(name) if isinstance(link, h5py.HardLink) else None
    )  # a soft link leads to what a hard one names too
    if not isinstance(item, h5py.Dataset):
        return False
    if max(item.shape or (0,)) > LONGEST_SIDE:
        raise TooMuch(f"A side is longer than {LONGEST_SIDE}.")
    return bool(item.external or item.is_virtual)


def _links(file: Any) -> Iterator[tuple[Any, str]]:
    """Go through the links of all groups, each group once: hard links may lead in circles."""
    waiting, known, seen = [file["/"]], set(), 0
    while waiting:
        group = waiting.pop()
        for name in group:
            if (seen := seen + 1) > MOST_OBJECTS:
                raise TooMuch(f"There are more than {MOST_OBJECTS} objects.")
            yield group, name
            inner = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
            if isinstance(inner, h5py.Group) and (address := h5py.h5o.get_info(inner.id).addr) not in known:
                known.add(address)
                waiting.append(inner)


class _Ranges(io.RawIOBase):
    """A file that is read by ranges."""

    def __init__(self, read: ReadRange, size: int) -> None:
        self._read_range, self._size, self._at = read, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._size - self._at))
        data = self._read_range(self._at, wanted) if wanted else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
