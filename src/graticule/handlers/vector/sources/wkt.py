"""Columns of well-known text, written as WKB.

GEOS reads them. What it refuses is read by a parser of ours: curves, which shapely does not know, and rings that are
not closed, which are repaired later. Surfaces of many faces are written as what they are, and rejected as such.
"""

import re
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from graticule.handlers.vector.preparing.wkb import code_of
from graticule.handlers.vector.rejecting import Code, rejected

MAX_DEPTH: Final = 100  # parentheses within each other; levels are counted later
SRID: Final = r"^\s*(?i:srid)\s*=\s*(?P<srid>[0-9]{1,6})\s*;\s*"
_TOKEN: Final = re.compile(r"\s*(?:([-+]?[A-Za-z]+)|([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|([(),]))")
_KINDS: Final = {
    "POINT": 1,
    "LINESTRING": 2,
    "POLYGON": 3,
    "MULTIPOINT": 4,
    "MULTILINESTRING": 5,
    "MULTIPOLYGON": 6,
    "GEOMETRYCOLLECTION": 7,
    "CIRCULARSTRING": 8,
    "COMPOUNDCURVE": 9,
    "CURVEPOLYGON": 10,
    "MULTICURVE": 11,
    "MULTISURFACE": 12,
    "POLYHEDRALSURFACE": 15,
    "TIN": 16,
    "TRIANGLE": 17,
}
_POINT: Final = 1
_OF_VERTICES: Final = {2, 8}
_OF_RINGS: Final = {3, 17}
_UNTAGGED: Final = {4: 1, 5: 2, 6: 3, 9: 2, 10: 2, 11: 2, 12: 3, 15: 3, 16: 17}  # members without a name of their own
_DIMENSIONS: Final = {"": None, "Z": (True, False), "M": (False, True), "ZM": (True, True)}
_BY_WIDTH: Final = {2: (False, False), 3: (True, False), 4: (True, True)}


class NotWkt(ValueError):
    """A text that is no geometry."""


def write_wkb(texts: pa.Array, where: str, first: int = 1) -> pa.Array:
    """Write a column whose first row is that of this feature as WKB; a text of nothing but blanks is no geometry."""
    plain = pc.replace_substring_regex(without_blanks(texts), SRID, "")
    _check_depth(plain, where, first)
    values = plain.to_numpy(zero_copy_only=False)
    try:
        shapes = shapely.from_wkt(values)
    except (NotImplementedError, shapely.errors.ShapelyError):
        return pa.array([_one(value, where, first + place) for place, value in enumerate(values)], pa.large_binary())
    return pa.array(shapely.to_wkb(shapes, flavor="iso", byte_order=1), pa.large_binary())


def without_blanks(column: pa.Array) -> pa.Array:
    """Take a text of nothing but blanks for none: some write a cell without a value in quotation marks."""
    texts = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _one(text: str | None, where: str, number: int) -> Any:
    if text is None:
        return None
    try:
        return shapely.to_wkb(shapely.from_wkt(text), flavor="iso", byte_order=1)
    except (NotImplementedError, shapely.errors.ShapelyError):
        pass
    try:
        return parse(text)
    except NotWkt as error:
        what = f"Feature {number} has a value that is not WKT ({error}): {text[:100]}"
        raise rejected(Code.UNREADABLE_ROW, what, f"feature {number}, {where}") from None


def parse(text: str) -> bytes:
    """Write one geometry as WKB, as it is: with curves, and with rings that are not closed."""
    tokens = _Tokens(text)
    made = _tagged(tokens, None)
    tokens.end()
    return made


class _Tokens:
    """The words, numbers and marks of a text."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._next = self._read()

    def peek(self) -> str:
        return self._next

    def take(self) -> str:
        taken, self._next = self._next, self._read()
        return taken

    def expect(self, mark: str) -> None:
        if self.take() != mark:
            raise NotWkt(f"{mark!r} is missing before character {self._at}")

    def end(self) -> None:
        if self._next:
            raise NotWkt(f"more follows at character {self._at}")

    def _read(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise NotWkt(f"character {self._at + 1} is unexpected")
            return ""
        self._at = found.end()
        return found[0].strip().upper()


def _tagged(tokens: _Tokens, inherited: tuple[bool, bool] | None) -> bytes:
    """Read a geometry that begins with the name of its type."""
    word = tokens.take()
    name, dimensions = word, ""
    if word not in _KINDS:  # some write POINTZ
        name = word.rstrip("ZM")
        dimensions = word[len(name) :]
    if name not in _KINDS or dimensions not in _DIMENSIONS:
        raise NotWkt(f"{word[:40] or 'nothing'} is no type of geometry")
    if tokens.peek() in {"Z", "M", "ZM"}:
        dimensions = tokens.take()
    return _body(tokens, _KINDS[name], _DIMENSIONS[dimensions] or inherited)


def _body(tokens: _Tokens, kind: int, dimensions: tuple[bool, bool] | None) -> bytes:
    if tokens.peek() == "EMPTY":
        tokens.take()
        if kind == _POINT:
            return _head(kind, dimensions) + struct.pack("<d", np.nan) * (2 + sum(dimensions or ()))
        return _head(kind, dimensions) + struct.pack("<I", 0)
    if kind == _POINT:
        tokens.expect("(")
        found, dimensions = _numbers(tokens, dimensions)
        tokens.expect(")")
        return _head(kind, dimensions) + struct.pack(f"<{len(found)}d", *found)
    if kind in _OF_VERTICES:
        data, dimensions = _vertices(tokens, dimensions)
        return _head(kind, dimensions) + data
    members = []
    for _ in _listed(tokens):
        if kind in _OF_RINGS:
            data, dimensions = _vertices(tokens, dimensions)
            members.append(data)
        else:
            members.append(_member(tokens, kind, dimensions))
            dimensions = dimensions or _dimensions_of(members[0])
    return _head(kind, dimensions) + struct.pack("<I", len(members)) + b"".join(members)


def _member(tokens: _Tokens, kind: int, dimensions: tuple[bool, bool] | None) -> bytes:
    if tokens.peek().isalpha() and tokens.peek() != "EMPTY":
        return _tagged(tokens, dimensions)
    if kind not in _UNTAGGED:
        raise NotWkt("a member has no type")
    if _UNTAGGED[kind] == _POINT and tokens.peek() not in {"(", "EMPTY"}:  # MULTIPOINT (1 2, 3 4)
        found, dimensions = _numbers(tokens, dimensions)
        return _head(_POINT, dimensions) + struct.pack(f"<{len(found)}d", *found)
    return _body(tokens, _UNTAGGED[kind], dimensions)


def _listed(tokens: _Tokens) -> Iterator[None]:
    """Go through a list in parentheses; who iterates takes its members."""
    tokens.expect("(")
    yield
    while tokens.peek() == ",":
        tokens.take()
        yield
    tokens.expect(")")


def _vertices(tokens: _Tokens, dimensions: tuple[bool, bool] | None) -> tuple[bytes, tuple[bool, bool] | None]:
    if tokens.peek() == "EMPTY":
        tokens.take()
        return struct.pack("<I", 0), dimensions
    rows = []
    for _ in _listed(tokens):
        found, dimensions = _numbers(tokens, dimensions)
        rows.append(found)
    return struct.pack("<I", len(rows)) + np.array(rows, "<f8").tobytes(), dimensions


def _numbers(tokens: _Tokens, dimensions: tuple[bool, bool] | None) -> tuple[list[float], tuple[bool, bool]]:
    """Read one vertex; how many numbers it has tells its dimensions where no name does."""
    found = []
    while tokens.peek() not in {",", ")", ""}:
        word = tokens.take()
        try:
            found.append(float(word))
        except ValueError:
            raise NotWkt(f"{word[:40]!r} is no number") from None
    known = dimensions or _BY_WIDTH.get(len(found))
    if known is None or len(found) != 2 + sum(known):
        raise NotWkt(f"a vertex has {len(found)} numbers")
    return found, known


def _head(kind: int, dimensions: tuple[bool, bool] | None) -> bytes:
    has_z, has_m = dimensions or (False, False)
    return struct.pack("<BI", 1, code_of(kind, has_z=has_z, has_m=has_m))


def _dimensions_of(wkb: bytes) -> tuple[bool, bool]:
    (code,) = struct.unpack_from("<I", wkb, 1)
    return code // 1000 in {1, 3}, code // 1000 in {2, 3}


def _check_depth(texts: pa.Array, where: str, first: int) -> None:
    """Reject what is nested so deep that a reader, which calls itself for each level, would end the process."""
    has_many = pc.fill_null(pc.greater(pc.count_substring(texts, "("), MAX_DEPTH), False)
    for place in np.flatnonzero(has_many.to_numpy(zero_copy_only=False)).tolist():
        characters = np.frombuffer(texts[place].as_py().encode(), np.uint8)
        steps = (characters == ord("(")).astype(np.int64) - (characters == ord(")"))
        if np.cumsum(steps).max() > MAX_DEPTH:
            number = first + place
            what = f"The geometry of feature {number} is nested too deep."
            raise rejected(Code.UNSUPPORTED_GEOMETRY, what, f"feature {number}, {where}")
