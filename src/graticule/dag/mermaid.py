"""A graph as a Mermaid flowchart."""

from collections.abc import Iterator
from typing import Final

from graticule.core.models.engine import NodeType
from graticule.dag.graph import Graph, Join, NodeSpec

_SHAPES: Final[dict[NodeType, tuple[str, str]]] = {
    NodeType.START: ("([", "])"),
    NodeType.END: ("([", "])"),
    NodeType.TASK: ("[", "]"),
    NodeType.CONDITIONAL: ("{", "}"),
    NodeType.FAN_OUT: ("[/", "\\]"),
    NodeType.FAN_IN: ("[\\", "/]"),
}
_ESCAPED: Final = {
    '"': "#quot;",
    "#": "#35;",
    "<": "#lt;",
    ">": "#gt;",
    "&": "#amp;",
    "\n": " ",
    "\r": " ",
    "`": "#96;",
}
_LABEL: Final = 80


def to_mermaid(graph: Graph) -> str:
    """Draw the nodes, each type with its own shape, and the edges, with the conditions on them."""
    ids = {node_id: f"n{place}" for place, node_id in enumerate(graph.nodes)}  # `end` is a word of Mermaid's own
    lines = ["flowchart TD"]
    lines += [f"    {ids[node.node_id]}{_shape(node)}" for node in graph.nodes.values()]
    lines += [f"    {edge}" for node in graph.nodes.values() for edge in _edges(graph, node, ids)]
    return "\n".join(lines) + "\n"


def _shape(node: NodeSpec) -> str:
    left, right = _SHAPES[node.type]
    label = _escaped(node.node_id)
    if node.task is not None:
        each = "each: " if node.type is NodeType.FAN_OUT else ""
        label += f"<br/>{each}{_escaped(node.task.handler)}"
    return f'{left}"{label}"{right}'


def _edges(graph: Graph, node: NodeSpec, ids: dict[str, str]) -> Iterator[str]:
    if node.branches:
        for branch in node.branches:
            label = _escaped("otherwise" if branch.condition is None else branch.condition)
            for target in branch.next:
                yield f'{ids[node.node_id]} -->|"{label}"| {ids[target]}'
        return
    for target in node.next:
        # A dotted edge need not be waited for.
        arrow = "-.->" if graph.nodes[target].join is Join.ANY_OF else "-->"
        yield f"{ids[node.node_id]} {arrow} {ids[target]}"


def _escaped(text: str) -> str:
    shown = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return "".join(_ESCAPED.get(letter, letter) for letter in shown)
