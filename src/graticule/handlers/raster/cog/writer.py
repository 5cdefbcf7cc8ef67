"""Writes a COG in one pass over its pixels.

The image is cut into units: pieces of a block row. A unit is read by the thread of its source, compressed
and halved by any thread, and its blocks are taken over in order by the calling thread, which gathers the
halves until they make a block row of the next level.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from graticule.handlers.raster.cog.encoding import encode_block, encode_mask
from graticule.handlers.raster.cog.header import cog_header
from graticule.handlers.raster.cog.profile import CogProfile
from graticule.handlers.raster.cog.pyramid import LevelRow, level_sizes, reduced
from graticule.handlers.raster.cog.skeleton import skeleton_of
from graticule.handlers.raster.cog.spool import BlockSpool, EncodedBlock
from graticule.handlers.raster.pixels import Box, Pixels, PixelSource

UNIT_BYTES = 16 * 2**20
UNITS_PER_SOURCE = 2  # read but not compressed yet: one at work, one in wait
SPOOL_MEMORY = 64 * 2**20

OnProgress = Callable[[int, int], None]
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class WrittenCog:
    """A finished file."""

    size: int
    sha256: str
    overview_count: int


def write_cog(
    path: Path, profile: CogProfile, sources: Sequence[PixelSource], *, on_progress: OnProgress
) -> WrittenCog:
    """Write the pixels that the sources give to `path`.

    All sources give the same pixels; each is used by one thread, always for the same columns. With a
    single source all work is done in the calling thread. The file does not depend on their number.

    `on_progress(done, total)` counts block rows. It is called in the calling thread after each unit, and
    while the file is put together. What it raises ends the work; nothing is left behind then.

    Memory: at most 2 R + 6 N U + 4/3 S, where R is a block row of the image (block size x width x bands x bytes
    per sample), N the number of sources, U a unit (16 MiB, or one block if that is more) and S the spool's
    64 MiB; blocks beyond that wait in a nameless file beside `path`.
    """
    sizes = level_sizes(profile.width, profile.height)
    with ExitStack() as stack:
        spools = [
            stack.enter_context(BlockSpool(*size, folder=path.parent, memory=max(SPOOL_MEMORY >> 2 * level, 1)))
            for level, size in enumerate(sizes)
        ]
        with _Crew(len(sources)) as crew:
            _Production(profile, sources, spools, crew, on_progress).run()
        return _written(path, profile, spools, on_progress)


class _CallingThread(Executor):
    """Does at once what it is given."""

    def submit(
        self, function: Callable[_Params, _Result], /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> Future[_Result]:
        future: Future[_Result] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # it is raised where the result is asked for
            future.set_exception(error)
        return future


class _Crew:
    """The threads: one per source to read, and as many to compress. The system shares the cores among them."""

    def __init__(self, sources: int) -> None:
        alone = sources == 1
        self.readers: list[Executor] = [_CallingThread() if alone else ThreadPoolExecutor(1) for _ in range(sources)]
        self.encoders: Executor = _CallingThread() if alone else ThreadPoolExecutor(sources)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for executor in (*self.readers, self.encoders):
            executor.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A piece of a block row of a level; `column` and `width` are in pixels."""

    level: int
    block_row: int
    column: int
    width: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The blocks of a unit, and its pixels at half the size when there is a next level."""

    blocks: list[EncodedBlock]
    half: Pixels | None


class _Production:
    """Carries units through reading, compressing and halving, never too many at a time."""

    def __init__(
        self,
        profile: CogProfile,
        sources: Sequence[PixelSource],
        spools: Sequence[BlockSpool],
        crew: _Crew,
        on_progress: OnProgress,
    ) -> None:
        self._profile = profile
        self._sources = sources
        self._spools = spools
        self._crew = crew
        self._on_progress = on_progress
        self._sizes = level_sizes(profile.width, profile.height)
        self._pending: deque[tuple[_Unit, Future[_Encoded]]] = deque()
        self._gathering: dict[int, LevelRow] = {}
        self._done = 0
        self._block = profile.block_size
        self._total = -(-profile.height // self._block)

    def run(self) -> None:
        for block_row in range(self._total):
            for number, unit in enumerate(self._units(0, block_row)):
                self._take_until(fewer_than=UNITS_PER_SOURCE * len(self._sources))
                self._read(unit, number % len(self._sources))
        self._take_until(fewer_than=1)

    def _units(self, level: int, block_row: int) -> Iterator[_Unit]:
        """Cut a block row into units of like size, as many for each source as for any other."""
        width = self._sizes[level][0]
        blocks = -(-width // self._block)
        smallest_number = -(-blocks * self._profile.block_bytes // UNIT_BYTES)
        number = -(-smallest_number // len(self._sources)) * len(self._sources)
        step = -(-blocks // number) * self._block
        for column in range(0, width, step):
            yield _Unit(level, block_row, column, min(step, width - column))

    def _rows(self, level: int, block_row: int) -> int:
        return min(self._block, self._sizes[level][1] - block_row * self._block)

    def _read(self, unit: _Unit, source: int) -> None:
        box = Box(unit.column, unit.block_row * self._block, unit.width, self._rows(0, unit.block_row))
        pixels = self._crew.readers[source].submit(self._sources[source].read, box)
        self._encode(unit, pixels.result)

    def _encode(self, unit: _Unit, pixels: Callable[[], Pixels]) -> None:
        is_last = unit.level == len(self._sizes) - 1
        self._pending.append((unit, self._crew.encoders.submit(_encoded, pixels, self._profile, is_last=is_last)))

    def _take_until(self, *, fewer_than: int) -> None:
        while len(self._pending) >= fewer_than:
            unit, future = self._pending.popleft()
            self._take(unit, future.result())

    def _take(self, unit: _Unit, encoded: _Encoded) -> None:
        for block in encoded.blocks:
            self._spools[unit.level].append(block)
        if unit.level == 0 and unit.column + unit.width == self._profile.width:
            self._done += 1
        self._on_progress(self._done, self._total)
        if encoded.half is not None:
            self._gather(unit, encoded.half)

    def _gather(self, unit: _Unit, half: Pixels) -> None:
        level, block_row = unit.level + 1, unit.block_row // 2
        row = self._gathering.get(level)
        if row is None:
            row = LevelRow(self._profile, self._sizes[level][0], self._rows(level, block_row))
            self._gathering[level] = row
        row.put(unit.column // 2, unit.block_row % 2 * self._block // 2, half)
        if row.is_complete:
            del self._gathering[level]
            for part in self._units(level, block_row):
                self._encode(part, partial(_columns, row.pixels, part.column, part.width))


def _columns(pixels: Pixels, column: int, width: int) -> Pixels:
    span = slice(column, column + width)
    return Pixels(pixels.data[..., span], None if pixels.valid is None else pixels.valid[..., span])


def _encoded(pixels: Callable[[], Pixels], profile: CogProfile, *, is_last: bool) -> _Encoded:
    unit = pixels()
    size = profile.block_size
    columns = range(0, unit.data.shape[2], size)
    blocks = [_encoded_block(_columns(unit, column, size), profile) for column in columns]
    return _Encoded(blocks, None if is_last else reduced(unit, profile))


def _encoded_block(pixels: Pixels, profile: CogProfile) -> EncodedBlock:
    if _is_absent(pixels, profile):
        return EncodedBlock()
    image = encode_block(_whole_block(pixels.data, profile.block_size), profile.encoding)
    if not profile.has_mask:
        return EncodedBlock(image)
    valid = np.ones(pixels.data.shape[1:], np.bool_) if pixels.valid is None else pixels.valid
    return EncodedBlock(image, encode_mask(_whole_block(valid[np.newaxis], profile.block_size)[..., 0]))


def _is_absent(pixels: Pixels, profile: CogProfile) -> bool:
    """A block without a valid pixel is not stored: readers fill it with nodata, or 0, as it was."""
    if pixels.valid is None or pixels.valid.any():
        return False
    filled = np.isnan(pixels.data) if np.isnan(profile.fill) else pixels.data == profile.fill
    return bool(filled.all())


def _whole_block(data: NDArray[Any], size: int) -> NDArray[Any]:
    """Turn (bands, rows, columns) into a block (size, size, bands); beyond the edge its pixels go on."""
    bands, rows, columns = data.shape
    block = np.empty((size, size, bands), data.dtype)
    for number, band in enumerate(data):  # three times as fast as one copy with moved axes
        block[:rows, :columns, number] = band
    block[:rows, columns:] = block[:rows, columns - 1 : columns]
    block[rows:] = block[rows - 1]
    return block


def _written(path: Path, profile: CogProfile, spools: Sequence[BlockSpool], on_progress: OnProgress) -> WrittenCog:
    header = cog_header(skeleton_of(profile), [spool.index() for spool in spools])
    total = -(-profile.height // profile.block_size)
    digest = hashlib.sha256()
    try:
        with path.open("wb") as file:
            for chunk in chain([header], *(spool.chunks() for spool in reversed(spools))):
                file.write(chunk)
                digest.update(chunk)
                on_progress(total, total)
            return WrittenCog(file.tell(), digest.hexdigest(), overview_count=len(spools) - 1)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
