"""Large TIFFs that take no room on the disk."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import rasterio
from affine import Affine

TILE_OFFSETS, TILE_SIZES = 324, 325


def hollow_tiff(path: Path, side: int, count: int = 3, block: int = 512) -> Path:
    """Write a tiled BigTIFF whose blocks all have a place in the file, where there is a hole: they read as zeros."""
    profile = {"driver": "GTiff", "tiled": True, "blockxsize": block, "blockysize": block, "interleave": "pixel"}
    transform = Affine(10, 0, 500_000, 0, -10, 2_000_000)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(
        path, "w", width=side, height=side, count=count, dtype="uint8", crs="EPSG:32620", transform=transform,
        BIGTIFF="YES", SPARSE_OK="TRUE", **profile,
    ):  # fmt: skip
        pass
    with path.open("r+b") as file:
        arrays = {tag: (at, length) for tag, at, length in _arrays(file.fileno())}
        number, size = arrays[TILE_OFFSETS][1], block * block * count
        first = (os.fstat(file.fileno()).st_size + 4095) // 4096 * 4096
        offsets = struct.pack(f"<{number}Q", *(first + index * size for index in range(number)))
        os.pwrite(file.fileno(), offsets, arrays[TILE_OFFSETS][0])
        os.pwrite(file.fileno(), struct.pack(f"<{number}I", *[size] * number), arrays[TILE_SIZES][0])
        os.ftruncate(file.fileno(), first + number * size)
    return path


def _arrays(file: int) -> Iterator[tuple[int, int, int]]:
    """Give tag, place and length of each array of the first directory."""
    (directory,) = struct.unpack("<Q", os.pread(file, 8, 8))
    (number,) = struct.unpack("<Q", os.pread(file, 8, directory))
    for index in range(number):
        entry = os.pread(file, 20, directory + 8 + 20 * index)
        tag, _, length, place = struct.unpack("<HHQQ", entry)
        yield tag, place, length
