"""The filters, tests and methods of the template language do what Jinja2's do."""

from typing import Any

import pytest
from jinja2.sandbox import SandboxedEnvironment
from pydantic import JsonValue

from graticule.dag.language.filters import FILTERS
from graticule.dag.language.tests import TESTS
from graticule.dag.templates import TemplateError, render_value

CONTEXT: dict[str, Any] = {
    "text": "  Hello big World ",
    "csv": "b,a,,c",
    "lines": "one\ntwo\n\nthree",
    "numbers": [3, 1.5, -2],
    "words": ["pear", "Apple", "fig", "apple"],
    "people": [{"name": "Bo", "age": 30, "in": {"b": 1}}, {"name": "al", "age": 25, "in": {"b": 2}}],
    "mapping": {"b": 1, "a": [2]},
    "nothing": None,
    "flags": [True, False],
}

SAME_AS_JINJA2 = [
    *("numbers | map('abs') | list", "-7 | abs", "words | batch(3) | list", "words | batch(3, 'x') | list"),
    *("text | capitalize", "text | center(30)", "words | count", "mapping | dictsort", "words | first", "words | last"),
    *("'2.5' | float", "'x' | float", "'x' | float(3.0)", "7 | float", "nothing | float", "'12' | int", "'x' | int"),
    *("'x' | int(4)", "'ff' | int(base=16)", "3.9 | int", "'3.9' | int", "'%s is %d (%.2f)' | format('a', 3, 2.5)"),
    *(
        "'%05d|%-5s|%%' | format(42, 'x')",
        "'%(a)s-%(b)s' | format(a=1, b='z')",
        "lines | indent",
        "lines | indent(2, true)",
    ),
    *("lines | indent('> ')", "mapping | items | list", "words | join(', ')", "people | join('/', attribute='name')"),
    *("numbers | join", "words | length", "text | length", "mapping | length", "mapping | list", "'abc' | list"),
    *("text | lower", "text | upper", "text | title", "people | map(attribute='name') | list"),
    *("people | map(attribute='in.b') | list", "people | map(attribute='nick', default='-') | list"),
    *("words | map('upper') | list", "words | map('replace', 'p', 'b') | list", "numbers | min", "numbers | max"),
    *(
        "words | min",
        "words | max(case_sensitive=true)",
        "people | max(attribute='age')",
        "words | reject('eq', 'fig') | list",
    ),
    *("numbers | select('gt', 0) | list", "numbers | select | list", "people | selectattr('age', 'ge', 30) | list"),
    *("people | rejectattr('age', 'ge', 30) | list", "people | selectattr('nick', 'undefined') | list"),
    *(
        "people | selectattr('name') | list",
        "csv | replace(',', ';')",
        "csv | replace(',', ';', 1)",
        "'aaa' | replace('a', '')",
    ),
    *("words | reverse | list", "'abc' | reverse", "2.567 | round", "2.567 | round(2)", "2.567 | round(1, 'ceil')"),
    *("2.567 | round(1, 'floor')", "-2.5 | round(0, 'ceil')", "words | sort", "words | sort(reverse=true)"),
    *("words | sort(case_sensitive=true)", "people | sort(attribute='age')", "numbers | string", "5 | string"),
    *("[words, numbers] | sum(start=[])", "[] | sum(start=[])"),
    *("numbers | sum", "people | sum(attribute='age')", "people | sum(attribute='age', start=10)", "text | trim"),
    *(
        "'xxaxx' | trim('x')",
        "words | unique | list",
        "words | unique(case_sensitive=true) | list",
        "'a b/ü' | urlencode",
    ),
    *("text | wordcount", "text.strip()", "text.lstrip()", "text.rstrip()", "csv.split(',')", "text.split()"),
    *("csv.split(',', 1)", "csv.rsplit(',', 1)", "lines.splitlines()", "csv.startswith('b')", "csv.endswith('x')"),
    *("csv.find('a')", "csv.count(',')", "'7'.zfill(3)", "'7'.isdigit()", "','.join(words)", "csv.removeprefix('b,')"),
    *("csv.removesuffix(',c')", "csv.title()", "csv.upper()", "csv.capitalize()", "mapping.keys() | list"),
    *(
        "mapping.values() | list",
        "mapping.items() | list",
        "mapping.get('a')",
        "mapping.get('z')",
        "words.index('fig')",
    ),
    *(
        "words.count('fig')",
        "range(2, 10, 3) | list",
        "words[1:]",
        "words[::-1]",
        "text[2:4]",
        "text[3]",
        "words[-1][0]",
    ),
    *("7 // 2", "7 % 3", "7 / 2", "2 ** 5", "-(3)", "+3", "1 + 2 * 3", "'a' ~ 1 ~ none", "'ab' * 2", "[1] * 2"),
    *(
        "1 < 2 < 3",
        "1 < 2 > 5",
        "not true",
        "1 and 0",
        "0 or 'x'",
        "'a' in 'cat'",
        "'b' in mapping",
        "3 not in numbers",
    ),
    *("nothing is none", "text is string", "words is sequence", "mapping is mapping", "3 is number", "3 is integer"),
    *(
        "3.0 is float",
        "true is boolean",
        "true is true",
        "false is false",
        "3 is odd",
        "3 is even",
        "9 is divisibleby 3",
    ),
    *("'a' is lower", "'A' is upper", "3 is in [3]", "nope is defined", "nope is undefined", "text is not none"),
    *("3 is gt 2", "3 is le 2", "3 is ne 2", "words is iterable", "'a' if false else 'b'", "nope | default('d')"),
    *(
        "'' | default('d', true)",
        "'' | default('d')",
        "{'a': 1}.a",
        "[1, (2, 3)]",
        "{'k': words}.k[0]",
        "text | string",
    ),
]


@pytest.mark.parametrize("expression", SAME_AS_JINJA2)
def test_it_gives_what_jinja2_gives(expression: str) -> None:
    expected = SandboxedEnvironment().compile_expression(expression, undefined_to_none=False)(**CONTEXT)
    if isinstance(expected, tuple) or (
        isinstance(expected, list) and any(isinstance(part, tuple) for part in expected)
    ):
        expected = [list(part) if isinstance(part, tuple) else part for part in expected]
    found = render_value("{{ " + expression + " }}", CONTEXT)
    assert found == expected
    assert type(found) is type(expected) or isinstance(expected, range)


def test_every_filter_and_test_is_compared_with_jinja2() -> None:
    used = " ".join(SAME_AS_JINJA2)
    assert {name for name in FILTERS if f"| {name}" not in used and f"'{name}'" not in used} == {
        *("flatten", "tojson", "truncate")
    }
    synonyms = {"equalto", "greaterthan", "lessthan", "lt"}
    assert {
        name for name in TESTS if name.isalpha() and f"is {name}" not in used and f"'{name}'" not in used
    } == synonyms


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("mapping | tojson", '{"b": 1, "a": [2]}'),
        ("'<&>' | tojson", '"<&>"'),
        ("'a long text' | truncate(6)", "a l..."),
        ("'short' | truncate(6)", "short"),
        ("words | map('upper')", ["PEAR", "APPLE", "FIG", "APPLE"]),
        ("range(3)", [0, 1, 2]),
    ],
)
def test_where_it_differs_it_gives_plain_json(expression: str, value: Any) -> None:
    assert render_value("{{ " + expression + " }}", CONTEXT) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("words | sum", "sum needs a number"),
        ("(words + numbers) | sort", "cannot compare"),
        ("5 | upper", "upper needs text"),
        ("5 | length", "length needs"),
        ("5 | join", "join needs a list"),
        ("people | sort", "cannot compare a mapping"),
        ("people | unique", "name an attribute"),
        ("people | map(attribute='nick')", "has no 'nick'"),
        ("people | map", "needs the name"),
        ("people | map('nope')", "cannot use a filter 'nope'"),
        ("people | select('nope')", "does not know the test"),
        ("people | selectattr", "name of an attribute"),
        ("words | batch(0)", "at least 1"),
        ("'%q' | format(1)", "does not know"),
        ("'%s' | format", "no value"),
        ("text | replace('a')", "cannot be used with these arguments"),
        ("text | upper(1, 2)", "cannot be used with these arguments"),
        ("range('a')", "whole number"),
        ("range(1.5)", "whole number"),
        ("range()", "cannot be used with these arguments"),
        ("numbers['a']", "has no 'a'"),
        ("mapping | first", "first needs a list"),
        ("3 is divisibleby 0", "divides by zero"),
        ("2.5 | round(1, 'up')", "round knows"),
        ("nothing[1:]", "only a list or text"),
        ("text.upper", "has no 'upper'"),
        ("numbers.upper()", "has no upper()"),
        ("text | default(1, 2, 3)", "'default' takes"),
        ("{1: 2}", "must be text"),
        ("2 ** 3 ** 2", "use one only"),
    ],
)
def test_what_cannot_be_done_is_told(expression: str, reason: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render_value("{{ " + expression + " }}", CONTEXT)
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[[1, [2]], 3, []] | flatten", [1, 2, 3]),
        ("[[1, [2, [3]]]] | flatten(1)", [1, [2, [3]]]),
        ("[[1, [2, [3]]]] | flatten(2)", [1, 2, [3]]),
        ("['ab', {'a': [1]}] | flatten", ["ab", {"a": [1]}]),
        ("[[1], [2]] | flatten(0)", [[1], [2]]),
        ("[[[1]], [[2]]] | map('flatten') | list | sum(start=[])", [1, 2]),
    ],
)
def test_lists_of_lists_become_one(expression: str, expected: JsonValue) -> None:
    assert render_value("{{ " + expression + " }}", {}) == expected


def test_what_is_joined_must_be_lists_and_is_bounded() -> None:
    with pytest.raises(TemplateError, match="sum needs a list, and got a number"):
        render_value("{{ [[1], 2] | sum(start=[]) }}", {})
    with pytest.raises(TemplateError, match="too many steps"):
        render_value("{{ lists | flatten }}", {"lists": [[0] * 10_000] * 1000})
