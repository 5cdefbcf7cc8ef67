"""Parameters of tasks and of the children of a fan-out, and what templates mention."""

from typing import Any

import pytest

from graticule.dag.language.references import Reference
from graticule.dag.templates import ParamsTemplate, TemplateError, condition_references, references

CONTEXT: dict[str, Any] = {"inputs": {"crs": "EPSG:3857", "tags": ["a"]}, "nodes": {"p": {"output": {"x": 1}}}}


def test_parameters_are_rendered_in_their_order() -> None:
    params = ParamsTemplate({"b": "{{ inputs.crs }}", "a": 1, "c": {"d": ["{{ nodes.p.output.x }}", "x{{ 1 }}"]}})
    found = params.render(CONTEXT)
    assert found == {"b": "EPSG:3857", "a": 1, "c": {"d": [1, "x1"]}}
    assert list(found) == ["b", "a", "c"]


def test_each_child_has_its_own_item_and_index() -> None:
    params = ParamsTemplate(
        {
            "tile": "{{ item }}",
            "crs": "{{ inputs.crs }}",
            "i": "{{ index }}",
            "deep": {"id": ["{{ item.id }}", "{{ inputs.crs }}"]},
            "text": "{{ inputs.crs }}/{{ index + 1 }}",
        }
    )
    render = params.for_items(CONTEXT)
    first, second = render({"id": "a"}, 0), render({"id": "b"}, 1)
    assert first == {
        "tile": {"id": "a"},
        "crs": "EPSG:3857",
        "i": 0,
        "deep": {"id": ["a", "EPSG:3857"]},
        "text": "EPSG:3857/1",
    }
    assert second["deep"] == {"id": ["b", "EPSG:3857"]}
    assert second["text"] == "EPSG:3857/2"
    assert list(first) == ["tile", "crs", "i", "deep", "text"]


def test_what_all_children_share_is_rendered_once() -> None:
    class Counted(dict[str, Any]):
        """Counts how often it is read."""

        reads = 0

        def __getitem__(self, key: str) -> Any:
            self.reads += 1
            return super().__getitem__(key)

    counted = Counted(crs="x")
    render = ParamsTemplate({"crs": "{{ inputs.crs }}", "i": "{{ index }}"}).for_items({"inputs": counted})
    for number in range(10):
        assert render(number, number) == {"crs": "x", "i": number}
    assert counted.reads == 1


def test_a_child_cannot_change_what_its_siblings_get() -> None:
    render = ParamsTemplate({"i": "{{ index }}"}).for_items(CONTEXT)
    first = render(None, 0)
    first["more"] = 1
    assert render(None, 1) == {"i": 1}


def test_an_error_names_the_parameter() -> None:
    with pytest.raises(TemplateError, match=r"in params\.tile\.url"):
        ParamsTemplate({"tile": {"url": "{{ inputs.no }}"}}).render(CONTEXT)
    with pytest.raises(TemplateError, match=r"in params\.a\[0\]"):
        ParamsTemplate({"a": ["{{ x"]})
    with pytest.raises(TemplateError, match=r"in params\.a"):
        ParamsTemplate({"a": "{{ item.no }}"}).for_items(CONTEXT)({}, 0)


def test_values_nested_too_deeply_are_refused() -> None:
    value: Any = "{{ 1 }}"
    for _ in range(100):
        value = [value]
    with pytest.raises(TemplateError, match="nested more than"):
        ParamsTemplate({"a": value})


def test_references_are_found_everywhere() -> None:
    found = references(
        {
            "a": ["{{ nodes.x.output.y }}", {"b": "{{ nodes['z'].status }} and {{ inputs.i | join(inputs['j']) }}"}],
            "c": "{% for t in stages.one.results %}{{ t.id }}{{ loop.index }}{{ env.E }}{% endfor %}",
            "d": "{{ item.k if index > 1 else job.job_id }}",
            "e": "no {{ 'nodes.no' }} reference",
            "f": "{{ range(nodes.w.output.n) }}",
        }
    )
    assert found.nodes == {"x", "z", "w"}
    assert found.inputs == {"i", "j"}
    assert found.stages == {"one"}
    assert found.names == {"nodes", "inputs", "stages", "env", "item", "index", "job"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("nodes.a.output.x | default(1)", {Reference("nodes", "a", "output", True)}),
        ("nodes.a | default(1)", {Reference("nodes", "a", None, True)}),
        ("nodes.a.output is defined", {Reference("nodes", "a", "output", True)}),
        (
            "nodes.a.output | default(nodes.b.output)",
            {Reference("nodes", "a", "output", True), Reference("nodes", "b", "output")},
        ),
        (
            "(nodes.a.output or nodes.b.output) | default(1)",
            {Reference("nodes", "a", "output"), Reference("nodes", "b", "output")},
        ),
        ("nodes.a.output[inputs.k] | default(1)", {Reference("nodes", "a", "output", True), Reference("inputs", "k")}),
        ("nodes.a.output[inputs.k].z", {Reference("nodes", "a", "output"), Reference("inputs", "k")}),
        ("nodes[inputs.k].output", {Reference("nodes"), Reference("inputs", "k")}),
        ("nodes | length", {Reference("nodes")}),
        ("nodes.a.output.items()", {Reference("nodes", "a", "output")}),
    ],
)
def test_a_reference_tells_whether_it_can_be_done_without(expression: str, expected: set[Reference]) -> None:
    assert condition_references(expression).found == expected
