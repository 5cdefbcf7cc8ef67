"""How an output grid is cut into tiles. All of it is arithmetic on pixels.

A tile's overviews equal those of the whole raster only when the tile begins at a multiple of the largest reduction,
for an overview pixel averages an aligned square. So a tile's side is a multiple of 512, and an overlap that would
make tiles begin elsewhere is enlarged until it does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from graticule.core.errors import InvalidInput
from graticule.dag.state import MAX_FAN_BYTES
from graticule.handlers.raster.pixels import Box

BLOCK: Final = 512
SMALLEST_TILE: Final = 512
LARGEST_TILE: Final = 16384
MOST_TILES: Final = 100_000
MOST_BATCHES: Final = 1000
MOST_TILE_BYTES: Final = 2 * 1024**3  # of the pixels of one tile
# What a tile's task tells of it, at most, but for names: it is gathered from all tiles, and that has a limit.
TOLD_BYTES: Final = 480
TOLD_BAND_BYTES: Final = 240
_CHOSEN_SIZES: Final = (16384, 8192, 4096, 2048)
_SMALL_SIZES: Final = (2048, 1024, 512)  # for pixels of very many bands
_TILE_BYTES: Final = 200 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the output grid: `box` is what it shows, `core` the part that no other tile counts."""

    tile_id: str
    column: int
    row: int
    box: Box
    core: Box


def tile_size_for(bands: int, bytes_per_sample: int) -> int:
    """Return the power of two whose square holds nearly 200 MiB of pixels; from 2048 on down, at most 2 GiB."""
    pixel = bands * bytes_per_sample
    fitting = (size for size in _CHOSEN_SIZES if size * size * pixel <= _TILE_BYTES)
    possible = (size for size in _SMALL_SIZES if size * size * pixel <= MOST_TILE_BYTES)
    return next(fitting, None) or next(possible, SMALLEST_TILE)


def aligned_overlap(tile_size: int, overlap: int) -> int:
    """Give the smallest overlap of at least this with which tiles begin where all their overviews do."""
    _check(tile_size, overlap)
    reduction = largest_reduction(tile_size)
    aligned = ceil(overlap / reduction) * reduction
    _check(tile_size, aligned)
    return aligned


def largest_reduction(size: int) -> int:
    """Give how many pixels of a side make one of its smallest overview, which fits in a block."""
    reduction = 1
    while ceil(size / reduction) > BLOCK:
        reduction *= 2
    return reduction


def tiles_of(width: int, height: int, tile_size: int, overlap: int, stem: str) -> list[Tile]:
    """Cut a grid into tiles, row by row; neighbours share `overlap` pixels."""
    if aligned_overlap(tile_size, overlap) != overlap:
        raise InvalidInput(f"With an overlap of {overlap}, tiles of {tile_size} do not begin where overviews do.")
    count = _count(width, tile_size, overlap) * _count(height, tile_size, overlap)
    if count > MOST_TILES:
        raise InvalidInput(
            f"Tiles of {tile_size} pixels would be {count}; {MOST_TILES} are the most.",
            hint="Choose a larger tile_size or a smaller overlap.",
        )
    return [
        _tile(stem, column, row, across, down)
        for row, down in enumerate(_spans(height, tile_size, overlap))
        for column, across in enumerate(_spans(width, tile_size, overlap))
    ]


def check_tile_bytes(tile_size: int, pixel_bytes: int) -> None:
    """Refuse tiles whose pixels would not fit into memory."""
    if tile_size * tile_size * pixel_bytes > MOST_TILE_BYTES:
        raise InvalidInput(
            f"Tiles of {tile_size} x {tile_size} pixels of {pixel_bytes} bytes would have more than "
            f"{MOST_TILE_BYTES // 1024**3} GiB each.",
            hint="Choose a smaller tile_size, or send the bands in several files.",
        )


def check_told_bytes(tiles: Sequence[Tile], bands: int, blob_prefix: str) -> None:
    """Refuse more tiles than can be told of together: better now than when all of them are made."""
    told = told_bytes(tiles[-1].tile_id, bands, blob_prefix) * len(tiles)
    if told > MAX_FAN_BYTES:
        raise InvalidInput(
            f"Of {len(tiles)} tiles with {bands} bands, {told} bytes would be told; {MAX_FAN_BYTES} are the most.",
            hint="Choose a larger tile_size or a smaller overlap.",
        )


def told_bytes(tile_id: str, bands: int, blob_prefix: str) -> int:
    """Give how many bytes a task tells of its tile, at most."""
    names = 3 * len(tile_id.encode()) + len(blob_prefix.encode())  # of the tile, its file, and its blob
    return TOLD_BYTES + TOLD_BAND_BYTES * bands + names


def batches_of(tile_ids: Sequence[str]) -> list[list[str]]:
    """Share tiles out to tasks: one for each, or, when that were too many, some neighbours for each."""
    size = max(1, ceil(len(tile_ids) / MOST_BATCHES))
    return [list(tile_ids[start : start + size]) for start in range(0, len(tile_ids), size)]


@dataclass(frozen=True, slots=True)
class _Span:
    """One side of a tile."""

    start: int
    length: int
    core_length: int


def _count(extent: int, tile_size: int, overlap: int) -> int:
    return max(1, ceil((extent - overlap) / (tile_size - overlap)))


def _spans(extent: int, tile_size: int, overlap: int) -> list[_Span]:
    stride = tile_size - overlap
    last = _count(extent, tile_size, overlap) - 1
    inner = [_Span(place * stride, tile_size, stride) for place in range(last)]
    remaining = extent - last * stride
    return [*inner, _Span(last * stride, remaining, remaining)]


def _tile(stem: str, column: int, row: int, across: _Span, down: _Span) -> Tile:
    return Tile(
        tile_id=f"{stem}_tile_{column}_{row}",
        column=column,
        row=row,
        box=Box(across.start, down.start, across.length, down.length),
        core=Box(across.start, down.start, across.core_length, down.core_length),
    )


def _check(tile_size: int, overlap: int) -> None:
    if not SMALLEST_TILE <= tile_size <= LARGEST_TILE or tile_size % BLOCK:
        raise InvalidInput(
            f"A tile size of {tile_size} is not possible.",
            hint=f"Choose a multiple of {BLOCK} from {SMALLEST_TILE} to {LARGEST_TILE}.",
        )
    if not 0 <= overlap <= tile_size // 2:  # with less than half of a tile of its own, each pixel is made many times
        raise InvalidInput(
            f"An overlap of {overlap} is not possible with tiles of {tile_size} pixels.",
            hint=f"Choose one from 0 to {tile_size // 2}, half the tile size.",
        )
