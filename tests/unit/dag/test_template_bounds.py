"""A template cannot leave its sandbox, and cannot keep anyone: it ends early, whatever it says."""

import contextlib
import resource
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.dag.templates import ParamsTemplate, TemplateError, evaluate_condition, references, render_value

CONTEXT: dict[str, Any] = {
    "inputs": {"n": 5, "s": "abc", "l": [1, "b", None], "m": {"k": {"x": 1}}, "f": 1.5, "b": True},
    "nodes": {"a": {"output": {"items": list(range(50))}, "status": "completed"}},
}

BLOW_UPS = [
    "{{ range(10**9) }}",
    "{{ range(10**30) }}",
    "{{ range(0, -10**9, -1) }}",
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) if false %}x{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}" + "{% set x = inputs.n %}" * 200 + "{% endfor %}",
    "{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}",
    "{% for i in range(99999) %}{{ ('a' * 1000000) | upper | length }}{% endfor %}",
    "{% for i in range(99999) %}{{ ('a' * 1000000) == ('a' * 999999 ~ 'b') }}{% endfor %}",
    "{% for i in range(99999) %}{{ nodes.a.output == nodes.a.output }}{% endfor %}",
    "{% for i in range(99999) %}{{ range(9999) | sum }}{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [1] * 10**9 }}",
    "{{ [[1] * 99999] * 99999 }}",
    "{{ ['a' * 1000000] * 99999 }}",
    "{{ [('a' * 1000000)] * 99999 | length }}",
    "{{ 2 ** 10**9 }}",
    "{{ 2 ** (10**9) }}",
    "{{ (9 ** 999) * (9 ** 999) * (9 ** 999) }}",
    "{{ 'a' | center(10**9) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%.1000000000f' | format(1.0) }}",
    "{{ '%*d' | format(10**9, 1) }}",
    "{{ ('%(a)s' * 5000) | format(a='x' * 1000) }}",
    "{{ 'a\nb' | indent(10**9) }}",
    "{{ ('\n' * 1000000) | indent('x' * 1000) }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
    "{{ ('a' * 1000000) ~ ('a' * 1000000) }}",
    "{{ ('a' * 1048570) ~ inputs }}",
    "{{ range(99999) | join('b' * 1000) }}",
    "{{ ('b' * 1000).join(range(99999)) }}",
    "{{ ('a,' * 500000).split(',') }}",
    "{{ 'a'.zfill(10**9) }}",
    "{{ 'a'.format(1) }}",
    "{{ [1] | batch(10**9, 0) }}",
    "{{ [('a' * 1000000)] * 1000 | sort }}",
    "{{ ([('a' * 1000000)] * 1000) | sort }}",
    "{{ ([('a' * 1000000)] * 1000) | unique }}",
    "{{ ([('a' * 1000000)] * 1000) | map('upper') }}",
    "{{ ([('a' * 100000)] * 1000) | tojson }}",
    "{{ ([('a' * 100000)] * 1000) | string }}",
    "{{ ('é' * 1000000) | urlencode }}",
    "{{ '" + "a" * 70000 + "' }}",
    "{{ " + "(" * 20000 + "1" + ")" * 20000 + " }}",
    "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "{{ " + "not " * 9000 + "true }}",
    "{{ " + "-" * 9000 + "1 }}",
    "{{ 1" + " + 1" * 9000 + " }}",
    "{{ inputs" + ".m" * 9000 + " }}",
    "{{ inputs" + " | string" * 5000 + " }}",
    "{{ 1 if 1 else " * 3000 + "1" + " }}" * 3000,
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{{ 9" + "9" * 5000 + " }}",
    "{{ 1e999 }}",
]


@pytest.mark.timeout(20)  # far more than any of them takes: a hang is what is meant
@pytest.mark.parametrize("source", BLOW_UPS, ids=[f"{source[:40]}…{len(source)}" for source in BLOW_UPS])
def test_what_would_grow_without_end_ends_early(source: str) -> None:
    before = peak_kib()
    with pytest.raises(TemplateError):
        render_value(source, CONTEXT)
    assert peak_kib() - before < 200 << 10


def peak_kib() -> int:
    """Give the most memory that this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(
    "source",
    [
        "{{ inputs.__class__ }}",
        "{{ inputs['__class__'] }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ inputs.s['__class__'] }}",
        "{{ inputs | attr('__class__') }}",
        "{{ inputs.l | map(attribute='__class__') }}",
        "{{ [inputs] | map(attribute='m.__class__') }}",
        "{{ [inputs] | selectattr('__class__') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '%(__class__)s' | format(1) }}",
        "{{ self }}",
        "{{ self.__init__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum() }}",
        "{{ namespace() }}",
        "{{ dict(a=1) }}",
        "{{ inputs._id }}",
        "{{ inputs.m.pop('k') }}",
        "{{ inputs.l.append(1) }}",
        "{{ inputs.m.update({}) }}",
        "{{ range.__call__(3) }}",
        "{{ inputs() }}",
        "{{ inputs.l.sort() }}",
        "{{ open('/etc/passwd') }}",
        "{{ (1).real }}",
        "{{ inputs.f.hex() }}",
        "{{ caller() }}",
        "{{ inputs.l | random }}",
        "{{ [1] | foo }}",
        "{{ 1 is callable }}",
        "{{ range(*[1, 2]) }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% extends 'x' %}",
        "{% block a %}{% endblock %}",
        "{% macro f() %}{% endmacro %}",
        "{% call f() %}{% endcall %}",
        "{% filter upper %}a{% endfilter %}",
        "{% set x %}a{% endset %}",
        "{% with a = 1 %}{% endwith %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% set inputs = 1 %}",
        "{% set item = 1 %}",
        "{% set _x = 1 %}",
        "{% set inputs.n = 1 %}",
        "{% for nodes in [1] %}{% endfor %}",
        "{% for i in [[1]] recursive %}{{ loop(i) }}{% endfor %}",
        "{% for a, b in [1] %}{% endfor %}",
        "{% for c in 'text' %}{% endfor %}",
        "{% do x %}",
        "{% unknown %}",
        "{{ x",
        "{% if %}",
        "{{ }}",
    ],
)
def test_nothing_but_values_can_be_reached(source: str) -> None:
    with pytest.raises(TemplateError):
        render_value(source, CONTEXT)
    assert CONTEXT["inputs"]["l"] == [1, "b", None]
    assert CONTEXT["inputs"]["m"] == {"k": {"x": 1}}


def test_a_value_that_is_only_referred_to_may_be_large() -> None:
    large = [{"id": number, "text": "x" * 200} for number in range(100_000)]
    assert render_value("{{ nodes.a.output.items }}", {"nodes": {"a": {"output": {"items": large}}}}) is large


def test_work_on_as_many_items_as_a_fan_out_may_have_is_allowed() -> None:
    items = [{"id": f"tile-{number}", "ok": number % 2 == 0} for number in range(100_000)]
    context = {"items": items}
    assert len(render_value("{{ items | map(attribute='id') | list }}", context)) == 100_000  # type: ignore[arg-type]
    assert len(render_value("{{ items | selectattr('ok') }}", context)) == 50_000  # type: ignore[arg-type]
    assert len(render_value("{{ items | batch(10) }}", context)) == 10_000  # type: ignore[arg-type]


def test_the_children_of_a_fan_out_share_one_budget() -> None:
    render = ParamsTemplate({"x": "{% for i in range(50000) %}{% endfor %}{{ item }}"}).for_items({})
    with pytest.raises(TemplateError, match="too many steps"):
        list(map(render, range(100_000), range(100_000)))


PIECES = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "{#", "#}", " ", "\n", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", "~"),
        *(
            "+",
            "-",
            "*",
            "**",
            "/",
            "//",
            "%",
            "==",
            "!=",
            "<",
            ">=",
            "=",
            "'",
            '"',
            "\\",
            "'a'",
            "1",
            "0",
            "1.5",
            "10**9",
        ),
        *("inputs", "nodes", "item", "index", "loop", "range", "n", "s", "l", "m", "f", "b", "_x", "__class__", "x"),
        *("if", "else", "elif", "endif", "for", "in", "endfor", "set", "is", "not", "and", "or", "none", "true", "raw"),
        *("default", "join", "map", "sort", "length", "format", "replace", "center", "int", "round", "batch", "tojson"),
        *("inputs.n", "inputs.l", "inputs.m", "inputs.s", "| list", "| first", "defined", "select", "attribute="),
    ]
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(PIECES, max_size=30).map(" ".join) | st.lists(PIECES, max_size=30).map("".join) | st.text())
def test_random_text_raises_nothing_but_a_template_error(text: str) -> None:
    for source in (text, "{{ " + text + " }}", "{{ inputs." + text + "}}"):
        with contextlib.suppress(TemplateError):
            render_value(source, CONTEXT)
        with contextlib.suppress(TemplateError):
            references(source)
    with contextlib.suppress(TemplateError):
        assert evaluate_condition(text, CONTEXT) in {True, False}
