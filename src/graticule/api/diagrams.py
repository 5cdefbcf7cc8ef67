"""A graph as an answer: its JSON document, or a Mermaid diagram."""

from enum import StrEnum
from typing import Any, Final

from fastapi.responses import PlainTextResponse

from graticule.dag.graph import Graph
from graticule.dag.mermaid import to_mermaid

MERMAID: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The graph", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


class GraphFormat(StrEnum):
    """How a graph is shown."""

    JSON = "json"
    MERMAID = "mermaid"


def diagram(graph: Graph) -> PlainTextResponse:
    """Answer with the diagram of a graph."""
    return PlainTextResponse(to_mermaid(graph))
