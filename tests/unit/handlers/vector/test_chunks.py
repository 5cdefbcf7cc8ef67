"""Chunks: every row is in one of them, in the order of the source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.examining.chunks import MOST_CHUNKS, ROWS_PER_CHUNK, Range, planned, rows_per_chunk

ROWS = st.integers(0, 2 * ROWS_PER_CHUNK)


@st.composite
def parts(draw: st.DrawFn) -> list[Range]:
    """Draw ranges, one after the other, with gaps between; there may be more than there may be chunks."""
    rows = draw(st.lists(ROWS, min_size=1, max_size=6)) * draw(st.sampled_from([1, 2, 700]))
    gap = draw(st.integers(0, 5))
    found, begin = [], draw(st.integers(0, 9))
    for count in rows:
        found.append((begin, begin + count + 1, count))
        begin += count + 1 + gap
    return found


@given(parts())
def test_all_rows_are_in_a_chunk_once(ranges: list[Range]) -> None:
    count = sum(rows for _, _, rows in ranges)
    chunks = planned(ranges, count)
    assert 1 <= len(chunks) <= MOST_CHUNKS
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    following = 1
    for chunk in chunks:
        assert chunk.first_fid == following
        following += chunk.row_count
    assert following == count + 1


@given(parts())
def test_chunks_hold_the_rows_between_their_limits(ranges: list[Range]) -> None:
    chunks = planned(ranges, sum(rows for _, _, rows in ranges))
    rest = (each for each in ranges if each[2])
    for chunk in chunks if chunks[0].begin is not None else []:
        inside = [next(rest)]
        while inside[-1][1] != chunk.end:
            inside.append(next(rest))
        assert inside[0][0] == chunk.begin
        assert sum(rows for _, _, rows in inside) == chunk.row_count
    assert chunks[0].begin is None or next(rest, None) is None


@given(st.integers(0, 10**12))
def test_there_are_not_too_many_chunks(count: int) -> None:
    rows = rows_per_chunk(count)
    assert rows >= ROWS_PER_CHUNK
    assert -(-count // rows) <= MOST_CHUNKS


@pytest.mark.parametrize(("ranges", "count"), [([(0, 9, ROWS_PER_CHUNK)], ROWS_PER_CHUNK), (None, 10**9), ([], 0)])
def test_a_source_that_is_small_or_cannot_be_parted_is_one_chunk(ranges: list[Range] | None, count: int) -> None:
    (chunk,) = planned(ranges, count)
    assert (chunk.index, chunk.first_fid, chunk.row_count, chunk.begin, chunk.end) == (0, 1, count, None, None)


@pytest.mark.parametrize("announced", [0, ROWS_PER_CHUNK, ROWS_PER_CHUNK + 2])
def test_a_source_that_announces_other_rows_than_it_has_is_rejected(announced: int) -> None:
    with pytest.raises(Rejected, match="corrupt"):
        planned([(0, 5, announced)], ROWS_PER_CHUNK + 1)
