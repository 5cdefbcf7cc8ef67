"""The head of a COG, byte by byte where readers would not tell; the rest is seen in `test_writer`."""

import struct

import numpy as np
from tests.unit.handlers.raster.cog.rasters import Array, profile_for

from graticule.handlers.raster.cog.header import Blocks, LevelIndex, cog_header
from graticule.handlers.raster.cog.skeleton import skeleton_of


def blocks(offsets: list[int], sizes: list[int]) -> Blocks:
    return Blocks(np.array(offsets, np.int64), np.array(sizes, np.int64))


def header_of(data: Array, levels: list[LevelIndex], *, has_mask: bool = False) -> bytes:
    return cog_header(skeleton_of(profile_for(data, has_mask=has_mask)), levels)


def test_an_absent_block_has_neither_address_nor_size() -> None:
    index = blocks([0, 4, 0], [0, 77, 0])
    header = header_of(np.zeros((1, 512, 1536), "uint8"), [LevelIndex(1536, 512, 85, index, index)])
    assert header.endswith(struct.pack("<6I", 0, len(header) + 4, 0, 0, 77, 0))


def test_the_smallest_level_begins_where_the_head_ends() -> None:
    full, half = blocks([4, 40], [28, 30]), blocks([4], [10])
    levels = [LevelIndex(600, 500, 74, full, full), LevelIndex(300, 250, 18, half, half)]
    header = header_of(np.zeros((1, 500, 600), "uint8"), levels)
    assert header.endswith(struct.pack("<4I", len(header) + 18 + 4, len(header) + 18 + 40, 28, 30))
    assert struct.pack("<HHII", 324, 4, 1, len(header) + 4) in header


def test_the_area_behind_the_first_bytes_is_that_of_gdal() -> None:
    one = blocks([4], [20])
    for has_mask, size in ((False, 140), (True, 174)):
        header = header_of(np.zeros((1, 5, 5), "uint8"), [LevelIndex(5, 5, 28, one, one)], has_mask=has_mask)
        first_line = f"GDAL_STRUCTURAL_METADATA_SIZE={size:06d} bytes\n".encode()
        assert header[8:].startswith(first_line)
        (first_directory,) = struct.unpack_from("<I", header, 4)
        assert first_directory - 8 - len(first_line) - size in {0, 1}
        assert (b"MASK_INTERLEAVED_WITH_IMAGERY=YES\n" in header) == has_mask
