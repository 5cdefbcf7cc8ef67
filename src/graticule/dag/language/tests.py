"""The tests of expressions: what may stand after `is`."""

from collections.abc import Callable, Mapping
from typing import Final

from graticule.dag.language.operators import (
    contained,
    equal,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    not_equal,
)
from graticule.dag.language.values import Kind, Missing, Refused, Run, as_text, as_whole, kind

Test = Callable[..., bool]


def is_defined(run: Run, value: object) -> bool:
    """Tell whether the value is there."""
    return not isinstance(value, Missing)


def is_undefined(run: Run, value: object) -> bool:
    """Tell whether the value is missing."""
    return isinstance(value, Missing)


def is_none(run: Run, value: object) -> bool:
    """Tell whether the value is null."""
    return kind(value) is Kind.NULL


def is_true(run: Run, value: object) -> bool:
    """Tell whether the value is `true` itself."""
    return kind(value) is Kind.BOOLEAN and value is True


def is_false(run: Run, value: object) -> bool:
    """Tell whether the value is `false` itself."""
    return kind(value) is Kind.BOOLEAN and value is False


def is_boolean(run: Run, value: object) -> bool:
    """Tell whether the value is a boolean."""
    return kind(value) is Kind.BOOLEAN


def is_number(run: Run, value: object) -> bool:
    """Tell whether the value is a number."""
    return kind(value) is Kind.NUMBER


def is_integer(run: Run, value: object) -> bool:
    """Tell whether the value is a whole number."""
    return kind(value) is Kind.NUMBER and isinstance(value, int)


def is_float(run: Run, value: object) -> bool:
    """Tell whether the value is a number with a fraction."""
    return kind(value) is Kind.NUMBER and isinstance(value, float)


def is_string(run: Run, value: object) -> bool:
    """Tell whether the value is text."""
    return kind(value) is Kind.TEXT


def is_sequence(run: Run, value: object) -> bool:
    """Tell whether the value is a list."""
    return kind(value) is Kind.LIST


def is_mapping(run: Run, value: object) -> bool:
    """Tell whether the value is a mapping."""
    return kind(value) is Kind.MAPPING


def is_iterable(run: Run, value: object) -> bool:
    """Tell whether a loop can go over the value."""
    return kind(value) in {Kind.LIST, Kind.MAPPING}


def is_odd(run: Run, value: object) -> bool:
    """Tell whether a whole number is odd."""
    return as_whole(value, "odd") % 2 == 1


def is_even(run: Run, value: object) -> bool:
    """Tell whether a whole number is even."""
    return as_whole(value, "even") % 2 == 0


def is_divisible(run: Run, value: object, by: object) -> bool:
    """Tell whether a whole number can be divided by another."""
    divisor = as_whole(by, "divisibleby")
    if divisor == 0:
        raise Refused("it divides by zero")
    return as_whole(value, "divisibleby") % divisor == 0


def is_lower(run: Run, value: object) -> bool:
    """Tell whether a text is in small letters."""
    return as_text(value, "lower").islower()


def is_upper(run: Run, value: object) -> bool:
    """Tell whether a text is in capitals."""
    return as_text(value, "upper").isupper()


TESTS: Final[Mapping[str, Test]] = {
    "defined": is_defined,
    "undefined": is_undefined,
    "none": is_none,
    "true": is_true,
    "false": is_false,
    "boolean": is_boolean,
    "number": is_number,
    "integer": is_integer,
    "float": is_float,
    "string": is_string,
    "sequence": is_sequence,
    "mapping": is_mapping,
    "iterable": is_iterable,
    "odd": is_odd,
    "even": is_even,
    "divisibleby": is_divisible,
    "lower": is_lower,
    "upper": is_upper,
    "in": contained,
    **dict.fromkeys(("==", "eq", "equalto"), equal),
    **dict.fromkeys(("!=", "ne"), not_equal),
    **dict.fromkeys((">", "gt", "greaterthan"), greater),
    **dict.fromkeys((">=", "ge"), greater_or_equal),
    **dict.fromkeys(("<", "lt", "lessthan"), less),
    **dict.fromkeys(("<=", "le"), less_or_equal),
}
