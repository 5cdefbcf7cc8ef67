"""Escapes in GeoJSON of which GDAL makes something else, without a word.

A character beyond U+FFFF is escaped as two halves. GDAL takes it for a half where its code ends like one (U+1D800 to
U+1DFFF, U+2D800 to U+2DFFF and so on), and loses what follows a half that has no other. At U+0000 it ends the text.
"""

import re
from typing import Final

from graticule.handlers.vector.rejecting import Code, rejected

_MISREAD: Final = re.compile(
    rb"\\u(?:0000|[dD][89abAB](?:[37bfBF][67]\\u[dD][c-fC-F]..|[0-9a-fA-F]{2}\\u(?:[^dD].|[dD][^c-fC-F])..))", re.DOTALL
)
_LONGEST: Final = 12  # bytes of what is looked for
_LONGEST_RUN: Final = 1000  # of backslashes, of which every second is escaped by the one before
_BACKSLASH: Final = ord("\\")


class EscapeCheck:
    """Looks through a text piece by piece, and rejects what would be misread."""

    def __init__(self) -> None:
        self._held = b""  # what may not be whole yet
        self._before = 0  # bytes before it

    def look(self, piece: bytes) -> None:
        """Look at the next bytes."""
        text = self._held + piece
        if found := _misread(text):
            where = f"byte {self._before + found.start()}"
            raise rejected(Code.MISREAD_ESCAPE, f"GDAL would misread {found[0].decode(errors='replace')}.", where)
        begin = _run_begin(text, max(0, len(text) - _LONGEST))
        self._held = text[begin:]
        self._before += begin


def _misread(text: bytes) -> re.Match[bytes] | None:
    """Find the first; what only looks like one may have one in it."""
    at = 0
    while found := _MISREAD.search(text, at):
        if not _is_escaped(text, found.start()):
            return found
        at = found.start() + 1
    return None


def _is_escaped(text: bytes, place: int) -> bool:
    """Tell whether the backslash at a place is the second of two that stand for one."""
    return (place - _run_begin(text, place)) % 2 == 1


def _run_begin(text: bytes, place: int) -> int:
    """Give where the backslashes before a place begin."""
    begin = place
    while begin and place - begin < _LONGEST_RUN and text[begin - 1] == _BACKSLASH:
        begin -= 1
    return begin
