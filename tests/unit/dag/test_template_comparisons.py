"""Conditions and comparisons: like with like, and a result that is true or false."""

from typing import Any

import pytest

from graticule.dag.templates import TemplateError, evaluate_condition, render_value

CONTEXT: dict[str, Any] = {
    "inputs": {"mb": 99.5, "n": 5, "name": "b", "flag": True, "off": False, "nothing": None, "list": [1, 2], "map": {}},
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("inputs.mb < 100", True),
        ("(inputs.mb) > 100", False),
        ("inputs.n == 5.0", True),
        ("1 < inputs.n <= 5", True),
        ("1 < inputs.n < 3", False),
        ("inputs.name > 'a' and inputs.name < 'c'", True),
        ("inputs.name == 'b' or inputs.none", True),
        ("not inputs.flag", False),
        ("inputs.flag", True),
        ("inputs.off", False),
        ("inputs.flag == true", True),
        ("inputs.nothing == none", True),
        ("inputs.nothing == 1", False),
        ("inputs.n != none", True),
        ("inputs.nothing is none", True),
        ("inputs.name in ['a', 'b']", True),
        ("inputs.n not in [1, 'x', none]", True),
        ("none in [1, none]", True),
        ("inputs.name in []", False),
        ("'b' in inputs.name", True),
        ("'x' in inputs.map", False),
        ("inputs.list == [1, 2.0]", True),
        ("inputs.list != [1]", True),
        ("inputs.map == {}", True),
        ("inputs.list and inputs.name", True),
        ("inputs.map or ''", False),
        ("inputs.none is defined", False),
        ("inputs.n is divisibleby 5 and inputs.n is odd", True),
        ("inputs.list | length > 1", True),
    ],
)
def test_a_condition_is_decided(condition: str, expected: bool) -> None:
    assert evaluate_condition(condition, CONTEXT) is expected


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("'a' < 1", "compares text with a number"),
        ("'1' == 1", "compares text with a number"),
        ("inputs.n != '5'", "compares a number with text"),
        ("inputs.flag == 1", "compares a boolean with a number"),
        ("inputs.n == true", "compares a number with a boolean"),
        ("inputs.list == 'x'", "compares a list with text"),
        ("inputs.nothing < 1", "compares null with a number"),
        ("inputs.list < [3]", "compares numbers or texts"),
        ("inputs.flag < inputs.off", "compares numbers or texts"),
        ("inputs.name in [1, 2]", "looks for text in a list of numbers"),
        ("1 in 'abc'", "'in' a text needs text"),
        ("1 in 5", "needs a list"),
        ("inputs.list is gt 'a'", "compares a list with text"),
        ("1 < 2 < 'a'", "compares a number with text"),
    ],
)
def test_a_comparison_of_unlike_types_is_an_error(condition: str, reason: str) -> None:
    with pytest.raises(TemplateError) as caught:
        evaluate_condition(condition, CONTEXT)
    assert reason in caught.value.reason
    with pytest.raises(TemplateError) as caught:
        render_value("{{ " + condition + " }}", CONTEXT)
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("inputs.name", "text"),
        ("inputs.n", "a number"),
        ("inputs.nothing", "null"),
        ("inputs.list", "a list"),
        ("1 + 1", "a number"),
    ],
)
def test_a_bare_value_that_is_no_boolean_is_no_condition(condition: str, found: str) -> None:
    with pytest.raises(TemplateError, match=f"must be true or false, and it is {found}"):
        evaluate_condition(condition, CONTEXT)


@pytest.mark.parametrize(
    "condition", ["", "inputs.n >", "inputs.n = 5", "a b", "{{ inputs.n }}", "1 }} {{ 2", "inputs.n > 1) or (true"]
)
def test_a_condition_is_one_whole_expression(condition: str) -> None:
    with pytest.raises(TemplateError):
        evaluate_condition(condition, CONTEXT)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ 'a' + 1 }}", "cannot add text and a number"),
        ("{{ true + 1 }}", "needs a number, and got a boolean"),
        ("{{ none * 2 }}", "needs a number"),
        ("{{ -'a' }}", "needs a number"),
        ("{{ 1 / 0 }}", "divides by zero"),
        ("{{ 'a%s' % 1 }}", "filter 'format'"),
        ("{{ (-8) ** 0.5 }}", "not a real number"),
        ("{{ 1e308 * 10 }}", "finite"),
    ],
)
def test_arithmetic_is_for_numbers(source: str, reason: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render_value(source, {})
    assert reason in caught.value.reason
