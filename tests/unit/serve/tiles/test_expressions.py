"""Which band math is evaluated."""

import pytest

from graticule.core.errors import InvalidInput
from graticule.serve.tiles.expressions import DEEPEST, FUNCTIONS, checked_expression, expression_count


@pytest.mark.parametrize(
    ("text", "bands"),
    [
        ("b1", (1,)),
        ("(b4-b3)/(b4+b3)", (3, 4)),
        ("B12 * 2; b1", (1, 12)),
        ("where((b1 > 3) & ~(b2 <= 4) | (b3 != 0), -b1**2, +b2 // 10 % 3.5)", (1, 2, 3)),
        ("(b1 + 1) ** -0.5", (1,)),
        ("b1 ** 10 * b2 ** 10 + sqrt(b3 ** 2)", (1, 2, 3)),
        (";b1;;b2;", (1, 2)),
        *((f"{name}(b1, b1)" if name == "arctan2" else f"{name}(b1)", (1,)) for name in sorted(FUNCTIONS - {"where"})),
    ],
)
def test_math_is_taken(text: str, bands: tuple[int, ...]) -> None:
    assert checked_expression(text) == bands


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "1 + 1",
        "b0",
        "b123456",
        "band",
        "b1.real",
        "b1[0]",
        "b1 if b2 else b3",
        "[b1 for b1 in b2]",
        "lambda: b1",
        "b1 and b2",
        "b1 << 40",
        "b1 ^ 3",
        "'b1' * 1000000000",
        "b1 + 1j",
        "b1 + True",
        "b1 + 1e300",
        "b1 + " + "9" * 400,
        "9**9**9**9 + b1",
        "2**10 * b1",
        "b1 ** b2",
        "b1 ** 11",
        "b1 ** (2 ** 9)",
        "b1 ** " + "9" * 400,
        "(b1 ** 2) ** 2",
        "((b1**10)**10)**10",
        "((b1 ** 2) * 3 + 1) ** 2",
        "(-(b1 ** 2)) ** 3",
        "sqrt(b1 ** 10) ** 10",
        "where(b1 > 0, b1 ** 2, b2) ** 3",
        "(b1 < b2 ** 2) ** 3",
        "(1 / (1 + b1 ** 10)) ** -10",
        "b1 ** 10 ** 10",
        "b1 ** -(b1 ** 2)",
        "b2; (b1 ** 2) ** 0.5",
        "b1 // b2",
        "b1 % b2",
        "b1 // -1",
        "b1 % 0",
        "b1 // (1 - 2)",
        "sum(b1)",
        "prod(b1)",
        "open(b1)",
        "(b1)(b2)",
        "sqrt(x=b1)",
        "sqrt(*b1)",
        "sqrt",
        "b1 +",
        "b1\0",
        "b1 := 3",
        "+".join(["b1"] * 60),
        "+".join(f"b{number}" for number in range(1, 10)),
        "-" * DEEPEST + "b1",
        ";".join(["b1"] * 9),
        "b1" + " " * 2000,
    ],
)
def test_all_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        checked_expression(text)


def test_expressions_are_counted() -> None:
    assert expression_count("b1;b2; ;b3;") == 3
