"""JSON as every process writes and reads it, with one rule for numbers. docs/reference/numbers.md tells it to users.

- An integer from -2^63 to 2^64 - 1 is written with all its digits, and read as an integer.
- Any other number is a float: its shortest digits that read back the same. PostgreSQL's `jsonb` gives large floats back
  as integers of up to 309 digits; an integer beyond 64 bits is therefore read, and written, as a float.
- NaN and infinities have no form in JSON. Who writes them decides: `nan`, `inf` and `-inf` as texts where a value of
  the data is told, such as nodata (`named_number`), and nothing where a number was computed, such as a mean.
"""

import math
from typing import Any, Final, overload

import orjson

_SMALLEST: Final = -(2**63)
_GREATEST: Final = 2**64 - 1

Number = int | float


def encode(value: Any, *, default: Any = None, option: int | None = None) -> bytes:
    """Write a value as JSON in UTF-8; `default` and `option` are those of orjson."""
    try:
        return orjson.dumps(value, default=default, option=option)
    except TypeError:
        narrowed = _narrowed(value)
        if narrowed is value:
            raise
        return orjson.dumps(narrowed, default=default, option=option)


def decode(text: bytes | bytearray | memoryview | str) -> Any:
    """Read JSON; `ValueError` if it is none."""
    return orjson.loads(text)


@overload
def named_number(value: None) -> None: ...
@overload
def named_number(value: float) -> Number | str: ...
def named_number(value: float | None) -> Number | str | None:
    """Return a number of the data as JSON can hold it: `nan`, `inf` and `-inf` become texts."""
    if value is None or isinstance(value, int) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def finite_number(value: float | None) -> Number | None:
    """Return a computed number, or None where it is not one."""
    return value if value is None or isinstance(value, int) or math.isfinite(value) else None


def _narrowed(value: Any) -> Any:
    """Return the value with floats for integers beyond 64 bits; the value itself when there are none."""
    if isinstance(value, int):
        return value if _SMALLEST <= value <= _GREATEST else _float(value)
    if isinstance(value, dict):
        parts = {key: _narrowed(each) for key, each in value.items()}
        return parts if any(parts[key] is not each for key, each in value.items()) else value
    if isinstance(value, list | tuple):
        found = [_narrowed(each) for each in value]
        return found if any(new is not old for new, old in zip(found, value, strict=True)) else value
    return value


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise TypeError("A number is too large for any reader of JSON") from None
