"""Tables of features, made up: what partners send, in all its kinds. What a format cannot hold, it says itself."""

import math
import struct
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

import shapely
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

KINDS: Final = (
    *("boolean", "int16", "int32", "int64", "float32", "float64", "text"),
    *("date", "time", "timestamp", "timestamptz", "binary", "json", "integers", "texts"),
)
NAMES: Final = (
    *("geom", "id", "select", "FID", "fid", "ogc_fid", "Geometry", "geometry", "wkb_geometry", "ctid", "user", "type"),
    *("Größe (m²)", "größe_m2", "GRÖSSE_M2", "名前", "имя", "a b", "A-B", "a_b", "1st", "", " ", "_", '"', "%s", "{x}"),
    *("n" * 200, "N" * 200, "ü" * 200, "é" * 63, "🗺" * 50, "comma,name", "semi;name", "new\nline", "tab\tname", "'"),
)
TEXTS: Final = (
    "",
    " ",
    "\\N",
    "\\.",
    "\t",
    "a\nb\r\nc",
    "NULL",
    "null",
    "NaN",
    "'; --",
    '"',
    "007",
    "Zürich 地図 🗺",
    "\x7f",
)
LONGEST_YEARS: Final = (2, 9998)  # a zone must not move a date-time out of the years that there are
KINDS_OF_SHAPES: Final = ("Point", "LineString", "Polygon")


@dataclass(frozen=True)
class Column:
    """A column as it is written: its values are those of Python, of one kind, or None."""

    name: str
    kind: str
    values: list[Any]


@dataclass(frozen=True)
class Table:
    """Features: columns, and a geometry or None for each row, in degrees."""

    columns: list[Column]
    shapes: list[BaseGeometry | None]
    has_z: bool = False

    @property
    def kinds_of_shapes(self) -> set[str]:
        """Give the kinds without regard to how many parts they have."""
        return {shape.geom_type.removeprefix("Multi") for shape in self.shapes if shape is not None}

    @property
    def geometry_type(self) -> str:
        """Give the type of the layer in the words of GDAL."""
        (only, *others) = sorted({shape.geom_type for shape in self.shapes if shape is not None})
        if others:
            kinds = self.kinds_of_shapes
            only = f"Multi{kinds.pop()}" if len(kinds) == 1 else "Unknown"
        return f"{only} Z" if self.has_z and only != "Unknown" else only


class ServedNumber(float):
    """A number with a point as it was served; a double alone would not tell all of its digits."""

    text: str

    @classmethod
    def of(cls, text: str) -> "ServedNumber":
        """Read it."""
        number = cls(text)
        number.text = text
        return number


@dataclass(frozen=True)
class Abilities:
    """What a format can hold. All that is left out has its reason beside it, where the format is."""

    kinds: Sequence[str] = KINDS
    is_name: Callable[[str], bool] = lambda _: True
    is_text: Callable[[str], bool] = lambda _: True
    name_key: Callable[[str], str] = lambda name: name  # names of one key cannot stand side by side
    shapes: Sequence[str] = KINDS_OF_SHAPES
    mixes_shapes: bool = True
    parts: Sequence[Sequence[int]] = ((1,), (3,), (1, 2, 3))  # of the shapes of a table
    has_null_shapes: bool = True
    has_heights: bool = True
    mixes_heights: bool = True  # shapes with heights may be of several types
    fewest_columns: int = 0
    longest_integers: tuple[int, int] = (-(2**63), 2**63 - 1)
    microseconds: int = 1000  # the smallest part of a second
    is_dated_by_gdal: bool = False  # which writes a part of the last second of a minute before 1970 as the next minute
    extra: dict[str, st.SearchStrategy[Any]] = field(default_factory=dict)  # kinds of its own


def tables(able: Abilities) -> st.SearchStrategy[Table]:
    """Make up tables of what a format can hold."""
    return st.integers(1, 8).flatmap(lambda count: _tables(able, count))


@st.composite
def _tables(draw: Callable[..., Any], able: Abilities, count: int) -> Table:
    names = draw(st.lists(_names(able), min_size=able.fewest_columns, max_size=10, unique_by=able.name_key))
    columns = [draw(_columns(able, name, count)) for name in names]
    kinds = draw(st.sets(st.sampled_from(able.shapes), min_size=1, max_size=3 if able.mixes_shapes else 1))
    several = draw(st.sampled_from(able.parts))
    is_one = len(kinds) == len(several) == 1
    has_z = able.has_heights and (able.mixes_heights or is_one) and draw(st.booleans())
    shape = st.builds(lambda kind, parts, at: made(kind, parts, at, has_z), _one(sorted(kinds)), _one(several), _places)
    shapes = [draw(shape), *(draw(shape | st.none() if able.has_null_shapes else shape) for _ in range(count - 1))]
    return Table(columns, draw(st.permutations(shapes)), has_z)


def _one(choices: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


def _names(able: Abilities) -> st.SearchStrategy[str]:
    wild = st.sampled_from(NAMES) | _any_text(st.text(_letters, min_size=1, max_size=80))
    return wild.filter(able.is_name)


_letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def _any_text(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return texts | st.text("abcdefgh_ABC", min_size=1, max_size=12)


@st.composite
def _columns(draw: Callable[..., Any], able: Abilities, name: str, count: int) -> Column:
    kind = draw(st.sampled_from([*able.kinds, *able.extra]))
    values = able.extra[kind] if kind in able.extra else values_of(kind, able)
    nulls = draw(st.sampled_from([values, values | st.none()]))
    drawn = [draw(nulls) for _ in range(count)]
    if all(value is None for value in drawn):  # a column without a value has no type in half of the formats
        drawn[0] = draw(values)
    return Column(name, kind, drawn)


def values_of(kind: str, able: Abilities) -> st.SearchStrategy[Any]:
    """Give the values of a kind."""
    text = (st.sampled_from(TEXTS) | st.text(_letters, max_size=30)).filter(able.is_text)
    return {
        "boolean": st.booleans(),
        "int16": _integers(16),
        "int32": _integers(32),
        "int64": _long_integers(able),
        "float32": st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False),
        "float64": st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from([5e-324, 1.7976931348623157e308, -0.0, 0.1, 2.0**53 + 2]),
        "text": text,
        "date": st.dates(date(1, 1, 1)),
        "time": st.times().map(lambda value: _rounded(value, able)),
        "timestamp": _moments(able),
        "timestamptz": st.builds(lambda when, zone: when.replace(tzinfo=zone), _moments(able), _zones),
        "binary": st.binary(max_size=40),
        "json": _json(text, _long_integers(able)),
        "integers": st.lists(_long_integers(able), max_size=4),
        "texts": st.lists(text, max_size=4),
    }[kind]


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from([low, high, 0, -1])


def _long_integers(able: Abilities) -> st.SearchStrategy[int]:
    low, high = able.longest_integers
    return st.integers(low, high) | st.sampled_from([low, high, 0, -1, 2**53 + 1, -(2**53) - 1])


def _moments(able: Abilities) -> st.SearchStrategy[datetime]:
    first, last = LONGEST_YEARS
    moments = st.datetimes(datetime(first, 1, 1), datetime(last, 12, 31))  # noqa: DTZ001 - zones come later
    return moments.map(lambda value: _rounded(_writable(value, able), able))


def _writable(value: datetime, able: Abilities) -> datetime:
    is_old = value < datetime(1970, 1, 2)  # noqa: DTZ001 - whatever the zone
    is_misdated = able.is_dated_by_gdal and is_old and value.second == 59
    return value.replace(microsecond=0) if is_misdated else value


def _rounded(value: Any, able: Abilities) -> Any:
    return value.replace(microsecond=value.microsecond // able.microseconds * able.microseconds)


_zones = st.sampled_from([UTC, *(timezone(timedelta(minutes=minutes)) for minutes in (345, -210, 60, -720, 840))])


def _json(text: st.SearchStrategy[str], integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | integers | st.floats(-1e6, 1e6, width=32) | text
    nested = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
    )
    return st.dictionaries(text, nested, min_size=1, max_size=3)


# Shapes lie on a grid of 1e-7 degrees, and none comes near the antimeridian: that is another test's matter.
_places = st.tuples(
    st.integers(-1700, 1700), st.integers(-800, 800), st.lists(st.integers(1, 999), min_size=8, max_size=8)
)


def made(kind: str, parts: int, place: tuple[int, int, list[int]], has_z: bool) -> BaseGeometry:
    """Make a valid shape of one or several parts, which lie side by side."""
    west, south, numbers = place
    singles = [_single(kind, west / 10 + part / 2, south / 10, numbers, has_z) for part in range(parts)]
    if parts == 1:
        return singles[0]
    return getattr(shapely, f"Multi{kind}")(singles)  # type: ignore[no-any-return]


def _single(kind: str, west: float, south: float, numbers: list[int], has_z: bool) -> BaseGeometry:
    """Make a star about a place; its points become what is wanted."""
    star = [_position(west, south, turn, 0.05 + number / 10_000, has_z) for turn, number in enumerate(numbers)]
    if kind == "Point":
        return shapely.Point(star[0])
    if kind == "LineString":
        return shapely.LineString(star[: 2 + numbers[0] % 7])
    hole = [_position(west, south, turn, 0.02, has_z) for turn in range(8)]
    return shapely.Polygon(star, [hole] if numbers[1] % 2 else [])


def _position(west: float, south: float, turn: int, length: float, has_z: bool) -> tuple[float, ...]:
    angle = math.tau * turn / 8
    flat = round(west + length * math.cos(angle), 7), round(south + length * math.sin(angle), 7)
    return (*flat, round(turn * 12.5 - 30, 3)) if has_z else flat


def promoted(shape: BaseGeometry | None) -> BaseGeometry | None:
    """Give a shape as the table has it: of several parts."""
    if shape is None or shape.geom_type.startswith(("Multi", "GeometryCollection")):
        return shape
    return getattr(shapely, f"Multi{shape.geom_type}")([shape])  # type: ignore[no-any-return]


def single_precision(value: float) -> float:
    """Give the number that 32 bits hold."""
    (found,) = struct.unpack("<f", struct.pack("<f", value))
    return float(found)


def is_xml(text: str) -> bool:
    """Tell whether XML can hold a text; it has no control characters, and no end of line but one."""
    return not any(unicodedata.category(letter) in {"Cc", "Cn"} or letter in "\ufffe\uffff" for letter in text)
