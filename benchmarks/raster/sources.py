"""The sources: map-like pictures, and a file of 11 GB that takes little room on the disk."""

import os
import struct
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.windows import Window

from benchmarks.raster.size import BANDS

BLOCK = 512
CRS = "EPSG:32620"
TILE_OFFSETS, TILE_SIZES = 324, 325
LONG = 4  # the type of 4-byte numbers; what is not that has 8 bytes here
PAGE = 4096
TRANSFORM = Affine(10, 0, 500_000, 0, -10, 2_000_000)
PROFILE = {
    "driver": "GTiff",
    "count": BANDS,
    "dtype": "uint8",
    "crs": CRS,
    "transform": TRANSFORM,
    "tiled": True,
    "blockxsize": BLOCK,
    "blockysize": BLOCK,
    "photometric": "RGB",
    "interleave": "pixel",
}


def make_picture(path: Path, width: int, height: int) -> None:
    """Write smooth terrain with mild noise as an uncompressed, tiled GeoTIFF, unless it is there already."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, noise = path.with_suffix(".partial"), np.random.default_rng(0)
    with rasterio.open(partial, "w", width=width, height=height, BIGTIFF="IF_SAFER", **PROFILE) as dataset:
        for top in range(0, height, BLOCK):
            rows = min(BLOCK, height - top)
            dataset.write(_strip(noise, top, rows, width, height), window=Window(0, top, width, rows))
    partial.rename(path)


def _strip(noise: np.random.Generator, top: int, rows: int, width: int, height: int) -> NDArray[np.uint8]:
    down = (np.arange(top, top + rows, dtype=np.float32) / height)[:, None]
    across = (np.arange(width, dtype=np.float32) / width)[None, :]
    terrain = 128 + 60 * np.sin(12 * across + 5 * np.sin(7 * down)) + 40 * np.cos(23 * down * across)
    bands = [
        terrain * factor + offset + 3 * noise.standard_normal((rows, width), dtype=np.float32)
        for factor, offset in ((1.0, 0), (0.9, 10), (0.7, 0))
    ]
    picture: NDArray[np.uint8] = np.clip(np.stack(bands), 0, 255).astype(np.uint8)
    return picture


def make_hollow(path: Path, side: int) -> None:
    """Write a BigTIFF whose blocks all have their place in the file, most of them in a hole that reads as zeros."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    options: dict[str, Any] = PROFILE | {"BIGTIFF": "YES"}
    with rasterio.open(partial, "w", width=side, height=side, SPARSE_OK="TRUE", **options):
        pass
    with partial.open("r+b") as file:
        _give_places(file.fileno(), BLOCK * BLOCK * BANDS)
    with rasterio.open(partial, "r+") as dataset:
        blocks = ceil(side / BLOCK)
        for place in range(blocks):  # both diagonals, the corners and the centre among them
            _fill(dataset, place, place)
            _fill(dataset, place, blocks - 1 - place)
    partial.rename(path)


def _give_places(file: int, block_bytes: int) -> None:
    arrays = {tag: (kind, count, place) for tag, kind, count, place in _arrays(file)}
    _, count, place = arrays[TILE_OFFSETS]
    first = ceil(os.fstat(file).st_size / PAGE) * PAGE
    os.pwrite(file, struct.pack(f"<{count}Q", *range(first, first + count * block_bytes, block_bytes)), place)
    kind, _, place = arrays[TILE_SIZES]
    os.pwrite(file, struct.pack(f"<{count}{'I' if kind == LONG else 'Q'}", *[block_bytes] * count), place)
    os.ftruncate(file, first + count * block_bytes)


def _arrays(file: int) -> Iterator[tuple[int, int, int, int]]:
    """Give tag, type, length and place of each entry of a BigTIFF's first directory."""
    (directory,) = struct.unpack("<Q", os.pread(file, 8, 8))
    (entries,) = struct.unpack("<Q", os.pread(file, 8, directory))
    for number in range(entries):
        yield struct.unpack("<HHQQ", os.pread(file, 20, directory + 8 + 20 * number))


def _fill(dataset: Any, column: int, row: int) -> None:
    left, top = column * BLOCK, row * BLOCK
    width, height = min(BLOCK, dataset.width - left), min(BLOCK, dataset.height - top)
    strip = _strip(np.random.default_rng(column), top, height, width, dataset.height)
    dataset.write(strip, window=Window(left, top, width, height))
