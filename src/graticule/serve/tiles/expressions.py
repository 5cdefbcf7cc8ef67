"""Which band math is evaluated: arithmetic that is quick, and cannot end the process.

numexpr computes powers of constants while it compiles, however long that takes. It writes other powers out as
products, in which the base stands many times: so there is no power of a power, however far within. Its integer division
is the processor's, which ends the process when the smallest number is divided by -1: so divisors of `//` and `%` are
positive constants.
"""

import ast
import re
from functools import lru_cache
from typing import Final

from graticule.core.errors import InvalidInput
from graticule.serve.tiles.limits import LONGEST_EXPRESSION

MOST_EXPRESSIONS: Final = 8
MOST_NODES: Final = 100
DEEPEST: Final = 20
MOST_BANDS_USED: Final = 8  # the library tries the extremes of all bands with each other
LARGEST_EXPONENT: Final = 10
LARGEST_NUMBER: Final = 1e15
FUNCTIONS: Final = frozenset(
    {
        *("where", "sqrt", "abs", "floor", "ceil"),
        *("exp", "expm1", "log", "log10", "log1p"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh"),
    }
)

_BAND: Final = re.compile(r"b([1-9][0-9]{0,4})")
_OPERATORS: Final = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.BitAnd, ast.BitOr, ast.Invert, ast.USub, ast.UAdd),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
_NODES: Final = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Name, ast.Call, ast.Load)
_HINT: Final = f"There are numbers, bands b1, b2, …, the usual operators, and {', '.join(sorted(FUNCTIONS))}."


@lru_cache(maxsize=256)
def checked_expression(text: str) -> tuple[int, ...]:
    """Give the bands that an expression uses, in order; one that might do harm is refused."""
    parts = [part for part in text.split(";") if part.strip()]
    if len(text) > LONGEST_EXPRESSION or not 1 <= len(parts) <= MOST_EXPRESSIONS:
        raise InvalidInput(f"expression: there are 1 to {MOST_EXPRESSIONS}, together {LONGEST_EXPRESSION} characters.")
    bands = sorted({band for part in parts for band in _checked_part(part)})
    if not 1 <= len(bands) <= MOST_BANDS_USED:
        raise _refused(f"it uses 1 to {MOST_BANDS_USED} bands")
    return tuple(bands)


def expression_count(text: str) -> int:
    """Give how many bands come out."""
    return sum(1 for part in text.split(";") if part.strip())


def _checked_part(text: str) -> set[int]:
    try:
        tree = ast.parse(text.strip().lower(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused("it cannot be read") from None
    _check_depth(tree)
    nodes = list(ast.walk(tree))
    if sum(not isinstance(node, _OPERATORS) for node in nodes) > MOST_NODES:
        raise _refused(f"it has more than {MOST_NODES} parts")
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        _check(node)
    return {_band(node.id) for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def _check_depth(tree: ast.AST) -> None:
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise _refused(f"it is nested more than {DEEPEST} times")


def _check(node: ast.AST) -> None:
    match node:
        case ast.Constant(value=value):
            if isinstance(value, bool) or not (isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER):
                raise _refused("it has a constant that is no ordinary number")
        case ast.Call(func=function, keywords=keywords):
            if not isinstance(function, ast.Name) or function.id not in FUNCTIONS or keywords:
                raise _refused("it has a function that is not known here")
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            _check_power(base, exponent)
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=divisor):
            if not _number(divisor) > 0:
                raise _refused("behind '//' and '%' stands a number above 0")
        case _ if not isinstance(node, _NODES + _OPERATORS):
            raise _refused("it has something that is not known here")


def _check_power(base: ast.expr, exponent: ast.expr) -> None:
    if not _uses_a_band(base) or not abs(_number(exponent)) <= LARGEST_EXPONENT:
        raise _refused(f"a power is of a band, to a number of at most {LARGEST_EXPONENT}")
    if any(isinstance(each, ast.Pow) for each in ast.walk(base)):
        raise _refused("it has a power of a power")


def _number(node: ast.expr) -> float:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) else float("nan")


def _uses_a_band(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and _BAND.fullmatch(each.id) for each in ast.walk(node))


def _band(name: str) -> int:
    found = _BAND.fullmatch(name)
    if found is None:
        raise _refused(f"{name[:40]!r} is no band")
    return int(found[1])


def _refused(why: str) -> InvalidInput:
    return InvalidInput(f"The expression is not evaluated: {why}.", hint=_HINT)
