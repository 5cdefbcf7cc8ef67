"""How the rows of a source are shared out: the parts that are loaded one by one, or side by side."""

from itertools import accumulate
from math import ceil
from typing import Final

from graticule.handlers.vector.described import Chunk
from graticule.handlers.vector.rejecting import Code, rejected

# A chunk is a task, with a process to start: so many rows take two or three seconds, which outweighs that, and is all
# that is read again after a crash.
ROWS_PER_CHUNK: Final = 250_000
MOST_CHUNKS: Final = 2_000  # tasks of one fan-out; a larger source has larger chunks

Range = tuple[int, int, int]  # begin and end, as the format finds rows by, and the number of rows between


def rows_per_chunk(feature_count: int) -> int:
    """Tell how many rows a chunk is to have."""
    return max(ROWS_PER_CHUNK, ceil(feature_count / MOST_CHUNKS))


def planned(ranges: list[Range] | None, feature_count: int) -> list[Chunk]:
    """Make chunks of the parts that can be read apart, in their order; of a small source only one."""
    if ranges is None or feature_count <= ROWS_PER_CHUNK:
        return [Chunk(index=0, first_fid=1, row_count=feature_count)]
    parts = _few([each for each in ranges if each[2]])
    rows = [count for _, _, count in parts]
    if sum(rows) != feature_count:
        what = f"The file announces {sum(rows)} features, and {feature_count} can be read."
        raise rejected(Code.CORRUPT, what)
    firsts = accumulate(rows, initial=1)
    return [
        Chunk(index=index, first_fid=first, row_count=count, begin=begin, end=end)
        for index, ((begin, end, count), first) in enumerate(zip(parts, firsts, strict=False))
    ]


def joined(layers: list[list[Chunk]]) -> list[Chunk]:
    """Number the chunks of several layers, and their rows, one after the other."""
    chunks: list[Chunk] = []
    first_fid = 1
    for place, planned in enumerate(layers):
        for chunk in planned:
            if chunk.row_count:
                changed = {"index": len(chunks), "first_fid": first_fid, "layer": place}
                chunks.append(chunk.model_copy(update=changed))
                first_fid += chunk.row_count
    return chunks


def _few(ranges: list[Range]) -> list[Range]:
    """Join neighbours until there are not too many."""
    together = max(1, ceil(len(ranges) / MOST_CHUNKS))
    groups = [ranges[first : first + together] for first in range(0, len(ranges), together)]
    return [(group[0][0], group[-1][1], sum(count for _, _, count in group)) for group in groups]
