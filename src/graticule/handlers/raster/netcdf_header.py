"""The dimensions that a classic NetCDF file declares: GDAL reads a coordinate for each step when it opens it."""

import struct
from typing import Final

_DIMENSIONS: Final = 10  # the mark of the list
_MOST_DIMENSIONS: Final = 1024


def longest_dimension(head: bytes) -> int:
    """Give the length of the longest dimension; a head that is no NetCDF or ends too early is a ValueError."""
    form, width = (">Q", 8) if head[3:4] == b"\x05" else (">I", 4)

    def number(at: int, form: str = form) -> int:
        try:
            return int(struct.unpack_from(form, head, at)[0])
        except struct.error:
            raise ValueError("The list of dimensions ends too early.") from None

    at = 4 + width  # behind the number of records
    mark, count, at = number(at, ">I"), number(at + 4), at + 4 + width
    if (mark, count) != (0, 0) and (mark != _DIMENSIONS or count > _MOST_DIMENSIONS):
        raise ValueError("There is no list of dimensions.")
    longest = 0
    for _ in range(count):
        at += width + (number(at) + 3) // 4 * 4  # its name, padded
        longest = max(longest, number(at))
        at += width
    return longest
