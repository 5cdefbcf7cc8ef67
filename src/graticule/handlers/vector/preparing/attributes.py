"""Attributes of features: which type their column has, and their values as the one Arrow type that stands for it."""

import base64
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graticule.core import json_codec
from graticule.handlers.vector.described import ColumnType
from graticule.handlers.vector.rejecting import WHOLE_FILE, Code, rejected

# A numeric column of PostgreSQL has no limits; this one has room for all of uint64 and for 18 decimals.
NUMERIC: Final = pa.decimal128(38, 18)
_MOST_DIGITS: Final = NUMERIC.precision - NUMERIC.scale  # before the point
ARROW_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "numeric": NUMERIC,
    "real": pa.float32(),
    "double precision": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "bytea": pa.binary(),
    "jsonb": pa.string(),
    "text": pa.string(),
}
_JSON: Final = b"arrow.json"
_TEXT_KINDS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARY_KINDS: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
# The first test that fits decides.
_COLUMN_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], ColumnType], ...]] = (
    (pa.types.is_boolean, "boolean"),
    (lambda kind: kind in {pa.int8(), pa.int16(), pa.uint8()}, "smallint"),
    (lambda kind: kind in {pa.int32(), pa.uint16()}, "integer"),
    (lambda kind: kind in {pa.int64(), pa.uint32()}, "bigint"),
    (lambda kind: pa.types.is_uint64(kind) or pa.types.is_decimal(kind), "numeric"),
    (lambda kind: kind in {pa.float16(), pa.float32()}, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
    (lambda kind: any(fits(kind) for fits in _BINARY_KINDS), "bytea"),
    (pa.types.is_nested, "jsonb"),
)
_DAYS: Final = (-719_162, 2_932_896)  # since 1970: of the years 1 to 9999, as Python and most others have them
_PER_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DECIMALS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_PLAIN_TIMES: Final = {pa.time64("ns"): pa.time64("us"), pa.duration("ns"): pa.duration("us")}
_NUL_ESCAPE: Final = re.compile(r"((?<!\\)(?:\\\\)*)\\u0000")
_HUGE_EXPONENT: Final = re.compile(r"[0-9][eE][+-]?[0-9]{4}")  # PostgreSQL has no room for all of these
_JSON_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


def column_type(field: pa.Field) -> ColumnType:
    """Give the type of the column that a field of a source becomes."""
    if _is_json(field):
        return "jsonb"
    kind = _plain_type(field.type)
    return next((name for fits, name in _COLUMN_TYPES if fits(kind)), "text")


def converted(column: pa.Array, type: ColumnType, where: str = WHOLE_FILE) -> pa.Array:  # noqa: A002 - its name in Column
    """Give the values of a column in the Arrow type that stands for its type; JSON is text.

    What PostgreSQL cannot hold is rejected, and `where` tells the user in which column.
    """
    try:
        return _CONVERSIONS.get(type, _cast)(_plain_array(column), type)
    except _Unfit as unfit:
        raise rejected(Code.UNFIT_VALUE, str(unfit), where) from None
    except UnicodeDecodeError:
        raise rejected(Code.NOT_UTF8, "A text of the features is not in UTF-8.", where) from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:  # of Arrow, or of JSON for odd keys
        raise rejected(Code.UNFIT_VALUE, f"A value does not fit into a column of type {type}.", where) from error


def as_text(column: pa.Array) -> pa.Array:
    """Return converted values as texts, for a column that also has values of another type."""
    if pa.types.is_binary(column.type):
        return _mapped(column.to_pylist(), lambda value: f"\\x{value.hex()}")
    if pa.types.is_decimal(column.type):
        return _mapped(column.to_pylist(), lambda value: f"{value.normalize():f}")
    return column.cast(pa.string())


class _Unfit(ValueError):
    """A value that has no place in PostgreSQL."""


def _is_json(field: pa.Field) -> bool:
    extension = getattr(field.type, "extension_name", None)
    return extension == _JSON.decode() or (field.metadata or {}).get(b"ARROW:extension:name") == _JSON


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type of the values themselves: without an extension or a dictionary."""
    if isinstance(kind, pa.UuidType):
        return pa.string()
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain_array(column: pa.Array) -> pa.Array:
    if isinstance(column.type, pa.UuidType):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    if isinstance(column, pa.ExtensionArray):
        return _plain_array(column.storage)
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _cast(column: pa.Array, type: ColumnType) -> pa.Array:  # noqa: A002
    return column.cast(ARROW_TYPES[type])


def _truncated(column: pa.Array, type: ColumnType) -> pa.Array:  # noqa: A002
    """Cast dates and times; a fraction for which the type has no room is cut off, also before 1970."""
    lowest, highest = _limits(column.type)
    least, most = (each.as_py() for each in pc.min_max(_counted(column)).values())
    if least is not None and (least < lowest or most > highest):
        raise _Unfit(f"A {type} is out of the range of years 1 to 9999, or of a day.")
    return _floored(column).cast(ARROW_TYPES[type], safe=False)


def _floored(column: pa.Array) -> pa.Array:
    """Give dates in days and date-times in microseconds at the finest; Arrow would cut them off towards 1970."""
    if pa.types.is_date64(column.type):
        return _divided(column, _PER_DAY["ms"]).cast(pa.int32()).view(pa.date32())
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return _divided(column, 1000).view(pa.timestamp("us", column.type.tz))
    return column


def _divided(column: pa.Array, by: int) -> pa.Array:
    counts = _counted(column).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(counts, by), mask=column.is_null().to_numpy(zero_copy_only=False))


def _counted(column: pa.Array) -> pa.Array:
    """Give dates and times as the numbers that they are."""
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date32(kind):
        return _DAYS
    per_day = _PER_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    if pa.types.is_time(kind):
        return 0, per_day - 1
    return _DAYS[0] * per_day, (_DAYS[1] + 1) * per_day - 1


def _numbers(column: pa.Array, _: ColumnType) -> pa.Array:
    if not pa.types.is_decimal(column.type):
        return column.cast(NUMERIC)
    if column.type.bit_width < NUMERIC.bit_width:  # of which Arrow knows no least
        column = column.cast(pa.decimal128(NUMERIC.precision, column.type.scale))
    known = [each for each in (limit.as_py() for limit in pc.min_max(column).values()) if each is not None]
    if any(abs(each) >= 10**_MOST_DIGITS for each in known):  # asked before a cast, which would change them
        raise _Unfit(f"A decimal has more than {_MOST_DIGITS} digits before the point.")
    if column.type.scale > NUMERIC.scale:  # decimals beyond ours are cut off, digits before the point never
        column = column.cast(pa.decimal256(76, NUMERIC.scale), safe=False)
    return column.cast(NUMERIC)


def _texts(column: pa.Array, _: ColumnType) -> pa.Array:
    if pa.types.is_interval(column.type):
        return _mapped(column.to_pylist(), str)
    if pa.types.is_duration(column.type):
        decimals = _DECIMALS[column.type.unit]
        return _mapped(_counted(column).to_pylist(), lambda count: _duration(Decimal(count).scaleb(-decimals)))
    return _without_nul(_in_utf8(column).cast(pa.string()))


def _duration(seconds: Decimal) -> str:
    """Give a time that passes, as ISO 8601 has it."""
    text = f"{seconds:f}"
    return f"PT{text.rstrip('0').rstrip('.') if '.' in text else text}S"


def _in_utf8(column: pa.Array) -> pa.Array:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UnicodeDecodeError("utf-8", b"", 0, 0, str(error)) from None
    return column


def _without_nul(column: pa.Array) -> pa.Array:
    """Remove the character that PostgreSQL does not have; nearly no column has it."""
    characters = column.buffers()[2]
    if characters is None or np.frombuffer(characters, np.uint8).all():
        return column
    return pc.replace_substring(column, "\0", "")


def _documents(column: pa.Array, _: ColumnType) -> pa.Array:
    """Give JSON: of text that is JSON already, or of lists, structures and maps."""
    _in_utf8(column)
    if any(fits(column.type) for fits in _TEXT_KINDS):
        return _mapped(column.to_pylist(), _checked_json)
    return _mapped(_plainly_dated(column).to_pylist(maps_as_pydicts="lossy"), _written_json)


def _mapped(values: list[Any], made: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else made(value) for value in values], pa.string())


def _checked_json(text: str) -> str:
    """Give a JSON text as it is; what is none becomes a string of JSON."""
    try:
        json_codec.decode(text)
    except orjson.JSONDecodeError:
        return _written_json(text)
    if _HUGE_EXPONENT.search(text):
        return _written_json(text)
    return _without_nul_escape(text)


def _written_json(value: object) -> str:
    return _without_nul_escape(json_codec.encode(value, default=_in_json, option=_JSON_OPTIONS).decode())


def _without_nul_escape(text: str) -> str:
    return _NUL_ESCAPE.sub(r"\1", text) if "\\u0000" in text else text


def _in_json(value: object) -> object:
    """Give what JSON has no word for; it has NaN and infinities as null already, and dates as text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    if isinstance(value, timedelta):
        return _duration(Decimal(value // timedelta(microseconds=1)).scaleb(-6))
    return str(value)


def _plainly_dated(column: pa.Array) -> pa.Array:
    """Give times within others without nanoseconds, which Python does not have."""
    return column.cast(_plainly_dated_type(column.type), safe=False)


def _plainly_dated_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plainly_dated_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plainly_dated_type(kind.key_type), _plainly_dated_type(kind.item_type))
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):  # a list of any kind
        return pa.large_list(_plainly_dated_type(kind.value_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, kind.tz and "UTC")
    return _PLAIN_TIMES.get(kind, kind)


_CONVERSIONS: Final[dict[ColumnType, Callable[[pa.Array, ColumnType], pa.Array]]] = {
    "date": _truncated,
    "time": _truncated,
    "timestamp": _truncated,
    "timestamptz": _truncated,
    "numeric": _numbers,
    "jsonb": _documents,
    "text": _texts,
}
