"""A graph drawn as a Mermaid flowchart."""

# ruff: noqa: E501 - a node is one line of YAML

from tests.unit.dag.workflow_texts import graph_of_nodes

from graticule.dag.mermaid import to_mermaid

NODES = """\
start: {next: c}
c: {type: conditional, condition: "{{ inputs.size }} > 1 and 'a|b' != \\"<x>\\"", on_true: s, on_false: t}
s: {type: fan_out, source: [1], task: {handler: chunk_processor}, next: m}
m: {type: fan_in, next: j}
t: {handler: echo, next: j}
j: {handler: echo, depends_on: {any_of: [m, t]}, next: end}
"""


def test_each_type_has_its_shape_and_each_edge_its_line() -> None:
    assert to_mermaid(graph_of_nodes(NODES)).splitlines() == [
        "flowchart TD",
        '    n0(["start"])',
        '    n1{"c"}',
        '    n2[/"s<br/>each: chunk_processor"\\]',
        '    n3["t<br/>echo"]',
        '    n4[\\"m"/]',
        '    n5["j<br/>echo"]',
        '    n6(["end"])',
        "    n0 --> n1",
        "    n1 -->|\"(inputs.size) #gt; 1 and 'a|b' != #quot;#lt;x#gt;#quot;\"| n2",
        '    n1 -->|"otherwise"| n3',
        "    n2 --> n4",
        "    n3 -.-> n5",
        "    n4 -.-> n5",
        "    n5 --> n6",
    ]


def test_a_long_condition_is_cut() -> None:
    nodes = f"start: {{next: c}}\nc: {{type: conditional, condition: \"inputs.names == ['{'x' * 200}']\", on_true: end, on_false: end}}"
    chart = to_mermaid(graph_of_nodes(nodes))
    assert "x" * 100 not in chart
    assert "…" in chart
