"""Data that come or go piece by piece, and parts of a blob."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Final

from graticule.core.errors import InvalidInput

PIECE_BYTES: Final = 1024 * 1024


def check_range(start: int, length: int | None = None) -> None:
    """Refuse what is no part of a blob."""
    if start < 0 or (length is not None and length < 0):
        raise InvalidInput("A part of a blob begins at 0 or later, and has no negative length.")


async def pieces_of(data: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Give the pieces of either kind of stream."""
    if isinstance(data, AsyncIterable):
        async for piece in data:
            yield piece
    else:
        for piece in data:
            yield piece
