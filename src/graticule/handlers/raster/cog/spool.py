"""Keeps the compressed blocks of a level until the file can be written: its overviews come first in it."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Self

import numpy as np

from graticule.handlers.raster.cog.header import Blocks, LevelIndex

_CHUNK = 4 * 2**20
_FRAME = 4  # bytes of the leader, and of the trailer


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A compressed block and its mask; empty where there is none."""

    image: bytes = b""
    mask: bytes = b""


class BlockSpool:
    """The blocks of a level, row by row, in the form that they have in the file.

    Up to `memory` bytes are kept in memory, more go to a nameless file in `folder`: it is gone when the
    spool is closed, and also when the process dies.
    """

    def __init__(self, width: int, height: int, *, folder: Path, memory: int) -> None:
        self._width, self._height = width, height
        self._file = SpooledTemporaryFile(max_size=memory, dir=str(folder))  # noqa: SIM115 - closed with the spool
        self._size = 0
        self._offsets: list[tuple[int, int]] = []
        self._sizes: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, block: EncodedBlock) -> None:
        """Add the next block, with its mask right behind it."""
        self._offsets.append((self._framed(block.image), self._framed(block.mask)))
        self._sizes.append((len(block.image), len(block.mask)))

    def index(self) -> LevelIndex:
        """Tell where the blocks lie."""
        offsets = np.array(self._offsets, np.int64).T
        sizes = np.array(self._sizes, np.int64).T
        image, mask = (Blocks(*pair) for pair in zip(offsets, sizes, strict=True))
        return LevelIndex(self._width, self._height, self._size, image, mask)

    def chunks(self) -> Iterator[bytes]:
        """Give all bytes of the level, from the first block to the last."""
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def _framed(self, content: bytes) -> int:
        """Write content between its size and its last bytes again, as GDAL's layout wants; give its offset."""
        if not content:
            return 0
        start = self._size + _FRAME
        self._file.write(b"".join((struct.pack("<I", len(content)), content, content[-_FRAME:])))
        self._size += len(content) + 2 * _FRAME
        return start
