"""How grids are cut into tiles."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.core.errors import InvalidInput
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.tiling import (
    MOST_BATCHES,
    Tile,
    aligned_overlap,
    batches_of,
    check_tile_bytes,
    check_told_bytes,
    largest_reduction,
    tile_size_for,
    tiles_of,
)

SIZES = st.sampled_from([512, 1024, 1536, 2048, 2560, 8192, 16384])
EXTENTS = st.integers(1, 60_000)


@pytest.mark.parametrize(
    ("bands", "bytes_per_sample", "size"),
    [
        (3, 1, 8192),
        (1, 1, 8192),
        (4, 2, 4096),
        (1, 4, 4096),
        (12, 2, 2048),
        (64, 8, 2048),
        (1, 8, 4096),
        (326, 2, 1024),
        (1024, 8, 512),
    ],
)
def test_a_tile_holds_nearly_200_mib(bands: int, bytes_per_sample: int, size: int) -> None:
    assert tile_size_for(bands, bytes_per_sample) == size


@given(EXTENTS, EXTENTS, SIZES, st.integers(0, 600))
@settings(max_examples=examples(60))
def test_cores_are_a_partition_and_neighbours_overlap_as_asked(
    width: int, height: int, tile_size: int, wanted: int
) -> None:
    overlap = aligned_overlap(tile_size, min(wanted, tile_size // 2))
    tiles = tiles_of(width, height, tile_size, overlap, "s")
    across = {tile.column: tile for tile in tiles if tile.row == 0}
    down = {tile.row: tile for tile in tiles if tile.column == 0}
    assert Counter((tile.column, tile.row) for tile in tiles) == {(c, r): 1 for r in down for c in across}
    assert_side([(t.box.column, t.box.width, t.core.column, t.core.width) for t in across.values()], width, overlap)
    assert_side([(t.box.row, t.box.height, t.core.row, t.core.height) for t in down.values()], height, overlap)
    for tile in tiles:  # the rest of a tile follows from its column and its row
        assert (tile.box.column, tile.box.width) == (across[tile.column].box.column, across[tile.column].box.width)
        assert (tile.box.row, tile.box.height) == (down[tile.row].box.row, down[tile.row].box.height)
        assert max(tile.box.width, tile.box.height) <= tile_size
        assert tile.box.column % largest_reduction(tile_size) == tile.box.row % largest_reduction(tile_size) == 0


def assert_side(spans: list[tuple[int, int, int, int]], extent: int, overlap: int) -> None:
    assert spans[0][0] == 0
    assert spans[-1][0] + spans[-1][1] == extent
    assert [core for _, _, core, _ in spans] == [start for start, _, _, _ in spans]
    assert sum(length for *_, length in spans) == extent
    for (start, length, core, core_length), following in pairwise(spans):
        assert start + length - following[0] == overlap
        assert core + core_length == following[2]


def test_tiles_are_named_by_column_and_row() -> None:
    tiles = tiles_of(1000, 500, 512, 64, "scene")
    assert [tile.tile_id for tile in tiles] == ["scene_tile_0_0", "scene_tile_1_0", "scene_tile_2_0"]
    assert tiles[1] == Tile("scene_tile_1_0", 1, 0, Box(448, 0, 512, 500), Box(448, 0, 448, 500))
    assert tiles[2].core == tiles[2].box == Box(896, 0, 104, 500)


def test_an_overlap_grows_until_tiles_begin_where_overviews_do() -> None:
    assert largest_reduction(8192) == 16
    assert aligned_overlap(8192, 512) == 512
    assert aligned_overlap(8192, 500) == 512
    assert aligned_overlap(8192, 0) == 0
    assert aligned_overlap(512, 63) == 63


@pytest.mark.parametrize(
    ("tile_size", "overlap", "said"),
    [
        (1000, 0, "multiple of 512"),
        (256, 0, "multiple of 512"),
        (32768, 0, "multiple of 512"),
        (2048, 2048, "half the tile size"),
        (2048, 1025, "half the tile size"),
        (8704, 8192, "half the tile size"),
        (2048, -1, "from 0"),
    ],
)
def test_what_cannot_be_cut_is_refused(tile_size: int, overlap: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        aligned_overlap(tile_size, overlap)


def test_too_many_tiles_are_refused() -> None:
    with pytest.raises(InvalidInput, match="100000 are the most"):
        tiles_of(512 * 317, 512 * 317, 512, 0, "s")


def test_tiles_that_are_too_large_for_memory_are_refused() -> None:
    check_tile_bytes(16_384, 8)
    check_tile_bytes(2048, 512)
    with pytest.raises(InvalidInput, match="more than 2 GiB"):
        check_tile_bytes(16_384, 9)


def test_tiles_of_which_too_much_would_be_told_are_refused() -> None:
    tiles = tiles_of(512 * 200, 512 * 200, 512, 0, "s")
    check_told_bytes(tiles, 3, "acme/data/v1")
    with pytest.raises(InvalidInput, match="40000 tiles with 13 bands"):
        check_told_bytes(tiles, 13, "acme/data/v1")


@given(st.integers(1, 5000))
@settings(max_examples=20)
def test_batches_hold_every_tile_once(count: int) -> None:
    ids = [str(number) for number in range(count)]
    batches = batches_of(ids)
    assert [each for batch in batches for each in batch] == ids
    assert len(batches) == count if count <= MOST_BATCHES else len(batches) <= MOST_BATCHES
