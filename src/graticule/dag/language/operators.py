"""Operators: arithmetic that stays small, and comparisons that refuse unlike types."""

import operator
from collections.abc import Callable, Mapping
from typing import Final

from graticule.dag.language.values import (
    MAX_BITS,
    Kind,
    Refused,
    Run,
    as_number,
    as_text,
    kind,
    list_of_size,
    pay_for_reading,
    text_of_size,
)

Operator = Callable[[Run, object, object], object]
Comparison = Callable[[Run, object, object], bool]


def add(run: Run, left: object, right: object) -> object:
    """Add numbers, or join two texts or two lists."""
    kinds = kind(left), kind(right)
    if kinds == (Kind.TEXT, Kind.TEXT):
        text_of_size(run, len(left) + len(right))  # type: ignore[arg-type]
        return left + right  # type: ignore[operator]
    if kinds == (Kind.LIST, Kind.LIST):
        list_of_size(run, len(left) + len(right))  # type: ignore[arg-type]
        return [*left, *right]  # type: ignore[misc]
    if Kind.TEXT in kinds and kinds != (Kind.TEXT, Kind.TEXT):
        raise Refused(f"'+' cannot add {kinds[0]} and {kinds[1]}; '~' joins anything as text")
    return _calculate("+", operator.add, left, right)


def subtract(run: Run, left: object, right: object) -> object:
    """Subtract numbers."""
    return _calculate("-", operator.sub, left, right)


def multiply(run: Run, left: object, right: object) -> object:
    """Multiply numbers, or repeat a text or a list."""
    if kind(right) in {Kind.TEXT, Kind.LIST}:
        left, right = right, left
    if kind(left) in {Kind.TEXT, Kind.LIST} and isinstance(right, int) and not isinstance(right, bool):
        size = len(left) * max(right, 0)  # type: ignore[arg-type]
        (text_of_size if kind(left) is Kind.TEXT else list_of_size)(run, size)
        return left * right  # type: ignore[operator]
    _check_bits(_bits(left) + _bits(right))
    return _calculate("*", operator.mul, left, right)


def divide(run: Run, left: object, right: object) -> object:
    """Divide numbers."""
    return _calculate("/", operator.truediv, left, right)


def floor_divide(run: Run, left: object, right: object) -> object:
    """Divide numbers and round down."""
    return _calculate("//", operator.floordiv, left, right)


def modulo(run: Run, left: object, right: object) -> object:
    """Give the remainder of numbers; text is formatted by the filter."""
    if kind(left) is Kind.TEXT:
        raise Refused("'%' works on numbers only; the filter 'format' writes values into a text")
    return _calculate("%", operator.mod, left, right)


def power(run: Run, left: object, right: object) -> object:
    """Raise a number to a power."""
    exponent = as_number(right, "'**'")
    if isinstance(exponent, int) and exponent > 0:
        _check_bits(_bits(left) * exponent)
    return _calculate("**", operator.pow, left, right)


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _check_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise Refused(f"it makes a number of more than {MAX_BITS:,} bits")


def _calculate(sign: str, operation: Callable[[object, object], object], left: object, right: object) -> object:
    try:
        result = operation(as_number(left, f"'{sign}'"), as_number(right, f"'{sign}'"))
    except ZeroDivisionError:
        raise Refused("it divides by zero") from None
    except OverflowError:
        raise Refused(f"the result of '{sign}' is too large") from None
    if isinstance(result, complex):
        raise Refused(f"the result of '{sign}' is not a real number")
    return result


def negate(run: Run, value: object) -> object:
    """Change the sign of a number."""
    return -as_number(value, "'-'")


def positive(run: Run, value: object) -> object:
    """Give a number as it is."""
    return +as_number(value, "'+'")


def equal(run: Run, left: object, right: object) -> bool:
    """Compare two values of one kind; null may be compared with anything."""
    kinds = kind(left), kind(right)
    if Kind.NULL in kinds:
        return kinds[0] is kinds[1]
    if kinds[0] is not kinds[1]:
        raise _unlike(*kinds)
    return _same(run, left, right)


def not_equal(run: Run, left: object, right: object) -> bool:
    """Tell whether two values of one kind differ."""
    return not equal(run, left, right)


def _same(run: Run, left: object, right: object) -> bool:
    """Compare two values of one kind, paying for the smaller of them."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        pay_for_reading(run, left)
        return dict(left) == dict(right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        pay_for_reading(run, left)
        return list(left) == list(right)
    if isinstance(left, str) and isinstance(right, str) and len(left) == len(right):
        pay_for_reading(run, left)
    return left == right


def _ordering(sign: str, compare: Callable[[object, object], bool]) -> Comparison:
    def ordered(run: Run, left: object, right: object) -> bool:
        kinds = kind(left), kind(right)
        if kinds[0] is not kinds[1]:
            raise _unlike(*kinds)
        if kinds[0] not in {Kind.NUMBER, Kind.TEXT}:
            raise Refused(f"'{sign}' compares numbers or texts, and got {kinds[0]} on both sides")
        pay_for_reading(run, left)
        return compare(left, right)

    return ordered


def _unlike(left: Kind, right: Kind) -> Refused:
    return Refused(f"it compares {left} with {right}")


def contained(run: Run, left: object, right: object) -> bool:
    """Tell whether a text is part of a text, a key is in a mapping, or a value is in a list."""
    within = kind(right)
    if within is Kind.TEXT:
        pay_for_reading(run, right)
        return as_text(left, "'in' a text") in right  # type: ignore[operator]
    if within is Kind.MAPPING:
        return as_text(left, "'in' a mapping") in right  # type: ignore[operator]
    if within is Kind.LIST:
        return _in_list(run, left, right)  # type: ignore[arg-type]
    raise Refused(f"'in' needs a list, a mapping or a text on its right, and got {within}")


def _in_list(run: Run, value: object, items: list[object]) -> bool:
    """Look through a list; when nothing in it is of the value's kind, that is a comparison of unlike types."""
    wanted = kind(value)
    run.budget.spend(len(items))
    alike = [item for item in items if kind(item) is wanted]
    if not alike and wanted is not Kind.NULL and any(item is not None for item in items):
        other = next(item for item in items if item is not None)
        raise Refused(f"it looks for {wanted} in a list of {str(kind(other)).removeprefix('a ')}s")
    return any(_same(run, value, item) for item in alike)


def not_contained(run: Run, left: object, right: object) -> bool:
    """Tell whether the right side does not have the left one."""
    return not contained(run, left, right)


less, less_or_equal = _ordering("<", operator.lt), _ordering("<=", operator.le)  # type: ignore[arg-type]
greater, greater_or_equal = _ordering(">", operator.gt), _ordering(">=", operator.ge)  # type: ignore[arg-type]

COMPARISONS: Final[Mapping[str, Comparison]] = {
    "eq": equal,
    "ne": not_equal,
    "lt": less,
    "lteq": less_or_equal,
    "gt": greater,
    "gteq": greater_or_equal,
    "in": contained,
    "notin": not_contained,
}
