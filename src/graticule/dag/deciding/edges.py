"""When a node may run: edges are open until their source has ended, then live or dead."""

from collections.abc import Iterable
from enum import Enum, auto

from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus
from graticule.dag.deciding.context import output_of
from graticule.dag.deciding.step import Step
from graticule.dag.graph import Join, NodeSpec


class Verdict(Enum):
    """What the incoming edges say of a node."""

    WAIT = auto()
    RUN = auto()
    SKIP = auto()


def judge(step: Step, spec: NodeSpec) -> Verdict:
    """Ask a node's incoming edges; a conditional is looked into only where it decides."""
    sources = step.graph.incoming[spec.node_id]
    any_open = any(_is_open(step, source) for source in sources)
    if not sources or (any_open and spec.join is Join.ALL_OF):
        return Verdict.WAIT
    if any(is_live(step, source, spec.node_id) for source in _plain_first(step, sources)):
        return Verdict.RUN
    return Verdict.WAIT if any_open else Verdict.SKIP


def is_live(step: Step, source: str, target: str) -> bool:
    """Tell whether an edge is closed and live."""
    if step.node(source).status is not NodeStatus.COMPLETED:
        return False
    if step.graph.nodes[source].type is not NodeType.CONDITIONAL:
        return True
    chosen = output_of(step, source)
    return isinstance(chosen, dict) and target in (chosen.get("next") or ())  # type: ignore[operator]


def _is_open(step: Step, source: str) -> bool:
    """A failed source keeps its edges open: its job has failed, and a resume may yet complete it."""
    return step.node(source).status not in (NodeStatus.COMPLETED, NodeStatus.SKIPPED)


def _plain_first(step: Step, sources: Iterable[str]) -> list[str]:
    """Put conditionals last: what they chose may have to be read."""
    return sorted(sources, key=lambda source: step.graph.nodes[source].type is NodeType.CONDITIONAL)
