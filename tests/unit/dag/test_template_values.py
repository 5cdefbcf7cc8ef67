"""What a template gives: the value itself, or text; what is there, and what is missing."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graticule.dag.state import NeedsData
from graticule.dag.templates import TemplateError, render_value

CONTEXT: dict[str, Any] = {
    "inputs": {"name": "38272", "number": 5, "flag": True, "nothing": None, "list": [1, "a"], "_id": 7},
    "nodes": {
        "scan": {"status": "completed", "output": {"items": [1, 2, {"x": 1}], "keys": "mine", "size": 10.5}},
        "skipped": {"status": "skipped", "output": None},
    },
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_exactly_one_expression_keeps_the_value_and_its_type(value: Any) -> None:
    for source in ("{{ x }}", "{{x}}", "{{   x\t}}", "{{ a.b }}", "{{ a['b'] }}", "{{ l[0] }}", "{{ x }}\n"):
        found = render_value(source, {"x": value, "a": {"b": value}, "l": [value]})
        assert found == value
        assert type(found) is type(value)


@given(st.text())
def test_text_without_braces_is_left_as_it_is(text: str) -> None:
    if not any(sign in text for sign in ("{{", "{%", "{#")):
        assert render_value(text, {}) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (" {{ inputs.number }}", " 5"),
        ("{{ inputs.number }} ", "5 "),
        ("{{ inputs.number }}{{ inputs.number }}", "55"),
        ("a-{{ inputs.name }}-{{ nodes.scan.output.size }}", "a-38272-10.5"),
        ("{{ inputs.flag }}/{{ inputs.nothing }}", "True/None"),
        ("{% raw %}{{ no }}{% endraw %}", "{{ no }}"),
        ("{% if inputs.flag %}yes{% else %}no{% endif %}", "yes"),
        ("{% for i in inputs.list %}{{ loop.index }}={{ i }}{% if not loop.last %},{% endif %}{% endfor %}", "1=1,2=a"),
        ("{% for k, v in nodes.scan.output.items() %}{{ k }} {% endfor %}", "items keys size "),
        ("{% for i in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for i in [1, 2, 3] if i != 2 %}{{ i }}{% endfor %}", "13"),
        ("{% set x = 3 %}{{ x + 1 }}", "4"),
        ("line\n", "line\n"),
        ("{{ inputs.name }} line\n", "38272 line\n"),
    ],
)
def test_any_other_string_is_rendered_as_text(source: str, text: str) -> None:
    assert render_value(source, CONTEXT) == text


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ nodes.scan.output.items }}", [1, 2, {"x": 1}]),
        ("{{ nodes.scan.output['items'] }}", [1, 2, {"x": 1}]),
        ("{{ nodes.scan.output.items[2].x }}", 1),
        ("{{ nodes.scan.output.items.2.x }}", 1),
        ("{{ nodes.scan.output.keys }}", "mine"),
        ("{{ nodes.scan.output.keys() }}", ["items", "keys", "size"]),
        ("{{ nodes.scan.output.get('none', 4) }}", 4),
        ("{{ nodes.scan.status }}", "completed"),
        ("{{ inputs.list[-1] }}", "a"),
        ("{{ inputs.list[:1] }}", [1]),
        ("{{ inputs['_id'] }}", 7),
        ("{{ {'a': [1, (2, 3)], 'b': {'c': none}} }}", {"a": [1, [2, 3]], "b": {"c": None}}),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ 'a' if inputs.flag else 'b' }}", "a"),
        ("{{ inputs.nothing or 'x' }}", "x"),
        ("{{ 7 // 2 * 2 + 1 - 2 ** 2 }}", 3),
        ("{{ inputs.name ~ 1 }}", "382721"),
        ("{{ [1] + [2] }}", [1, 2]),
    ],
)
def test_a_key_of_a_mapping_is_found_before_any_method(source: str, value: Any) -> None:
    assert render_value(source, CONTEXT) == value


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("{{ inputs.none }}", "inputs (a mapping) has no 'none'"),
        ("{{ inputs.none.deeper }}", "inputs (a mapping) has no 'none'"),
        ("{{ nothing }}", "'nothing' is not defined"),
        ("{{ nodes.skipped.output.x }}", "nodes.skipped.output is null"),
        ("{{ inputs.list[9] }}", "inputs.list (a list) has no 9"),
        ("{{ inputs.name.first }}", "inputs.name (text) has no 'first'"),
        ("{{ inputs.list.append }}", "has no 'append'"),
        ("{{ nodes.scan.output.values }}", "has no 'values'"),
        ("a {{ inputs.none }}", "has no 'none'"),
        ("{{ [inputs.none] }}", "has no 'none'"),
        ("{{ inputs.none | upper }}", "has no 'none'"),
        ("{{ inputs.none == 1 }}", "has no 'none'"),
        ("{{ not inputs.none }}", "has no 'none'"),
        ("{{ 'a' if false }}", "no 'else'"),
        ("{{ [] | first }}", "has no first item"),
    ],
)
def test_a_missing_value_is_an_error_that_names_the_place_and_the_expression(source: str, named: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render_value(source, CONTEXT, "params.tile.url")
    assert caught.value.expression == source
    assert named in caught.value.reason
    for part in (source, named, "params.tile.url"):
        assert part in str(caught.value)
    assert caught.value.code == "template_error"


@pytest.mark.parametrize(
    "source",
    [
        "{{ inputs.none | default(3) }}",
        "{{ inputs.none.deeper.still | d(3) }}",
        "{{ nodes.skipped.output.x | default(3) }}",
        "{{ nodes.gone.output.x | default(3) }}",
        "{{ inputs.nothing | default(3, true) }}",
        "{{ [] | first | default(3) }}",
        "{{ inputs.none if inputs.none is defined else 3 }}",
        "{{ 3 if inputs.none is undefined else 4 }}",
    ],
)
def test_default_makes_a_value_optional(source: str) -> None:
    assert render_value(source, CONTEXT) == 3


def test_a_default_is_not_taken_for_what_is_there() -> None:
    assert render_value("{{ inputs.nothing | default(3) }}", CONTEXT) is None
    assert render_value("{{ inputs.number | default(3) }}", CONTEXT) == 5


class Lazy(Mapping[str, Any]):
    """A mapping that is no dict, and loads on demand."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        if isinstance(value, Exception):
            raise value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def test_mappings_that_load_on_demand_are_mappings() -> None:
    context = {"nodes": Lazy({"a": Lazy({"output": {"items": [1]}, "status": "completed"})})}
    assert render_value("{{ nodes.a.output.items }}", context) == [1]
    assert render_value("{{ nodes.b.output | default(2) }}", context) == 2
    found = render_value("{{ nodes.a }}", context)
    assert found == {"output": {"items": [1]}, "status": "completed"}
    assert type(found) is dict
    assert render_value("{{ nodes.a.keys() | join(',') }}", context) == "output,status"
    assert render_value("{{ nodes.a == nodes.a }}", context) is True


@pytest.mark.parametrize(
    "source", ["{{ nodes.a.output }}", "x{{ nodes.a.output.x | default(1) }}", "{{ nodes.a }}", "{{ nodes | tojson }}"]
)
def test_a_request_for_data_passes_through(source: str) -> None:
    needs = NeedsData(outputs=frozenset({"a"}))
    with pytest.raises(NeedsData) as caught:
        render_value(source, {"nodes": {"a": Lazy({"output": needs})}})
    assert caught.value is needs


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        ([float("-inf")], "finite"),
        ({1, 2}, "type set"),
        (object(), "type object"),
        (len, "type builtin_function_or_method"),
        ({"a": b"x"}, "type bytes"),
        ({1: 2}, "only text can be a key"),
    ],
)
def test_only_json_comes_out(value: Any, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        render_value("{{ x }}", {"x": value})


def test_templates_are_found_inside_lists_and_mappings_and_their_place_is_told() -> None:
    value: Any = {"a": ["{{ inputs.number }}", {"b": "x{{ inputs.name }}"}], "c": 1, "{{ key }}": None}
    assert render_value(value, CONTEXT) == {"a": [5, {"b": "x38272"}], "c": 1, "{{ key }}": None}
    with pytest.raises(TemplateError, match=r"source\.a\[1\]\.b"):
        render_value({"a": [1, {"b": "{{ no }}"}]}, CONTEXT, "source")


def test_what_one_text_sets_the_next_does_not_see() -> None:
    with pytest.raises(TemplateError, match="'x' is not defined"):
        render_value(["{% set x = 1 %}{{ x }}", "{{ x }}"], {})
