"""Small workflows written as they are drawn, and a job that is led through them by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import JsonValue
from tests.simulation.store import Store

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag.graph import Branch, Graph, Join, NodeSpec, RetryPolicy, TaskSpec
from graticule.dag.state import DeadlinePassed, Decision, Happening, Policy, Reported, Resumed, Submitted

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
NO_JITTER = RetryPolicy(max_attempts=3, jitter=False)


def start(*following: str) -> NodeSpec:
    return NodeSpec(node_id="start", type=NodeType.START, next=following)


def end(node_id: str = "end", join: Join = Join.ALL_OF) -> NodeSpec:
    return NodeSpec(node_id=node_id, type=NodeType.END, join=join)


def task(node_id: str, *following: str, join: Join = Join.ALL_OF, stage: str | None = None, **spec: Any) -> NodeSpec:
    return NodeSpec(node_id=node_id, type=NodeType.TASK, next=following, join=join, stage=stage, task=task_spec(**spec))


def task_spec(**spec: Any) -> TaskSpec:
    return TaskSpec(**{"handler": "echo", "queue": "light", "retry": NO_JITTER, **spec})


def conditional(node_id: str, *branches: tuple[str | None, str | tuple[str, ...]]) -> NodeSpec:
    made = tuple(
        Branch(condition=condition, next=(following,) if isinstance(following, str) else following)
        for condition, following in branches
    )
    targets = tuple(dict.fromkeys(target for branch in made for target in branch.next))
    return NodeSpec(node_id=node_id, type=NodeType.CONDITIONAL, next=targets, branches=made)


def fan_out(node_id: str, *following: str, source: JsonValue, task: TaskSpec | None = None, **more: Any) -> NodeSpec:
    return NodeSpec(
        node_id=node_id,
        type=NodeType.FAN_OUT,
        next=following,
        source=source,
        task=task or task_spec(params={"item": "{{ item }}"}),
        **more,
    )


def fan_in(node_id: str, *following: str, of: str = "split", **more: Any) -> NodeSpec:
    return NodeSpec(node_id=node_id, type=NodeType.FAN_IN, next=following, fan_out=of, **more)


def graph(*nodes: NodeSpec) -> Graph:
    return Graph(workflow_id="drawn", name="Drawn", version="1", nodes={node.node_id: node for node in nodes})


def split_graph(items: JsonValue, *, aggregation: str = "collect", **more: Any) -> Graph:
    """Draw start → split → merge → end."""
    return graph(
        start("split"),
        fan_out("split", "merge", source=items, **more),
        fan_in("merge", "end", aggregation=aggregation),
        end(),
    )


class PlayedJob:
    """A job whose workers are the test."""

    def __init__(
        self, drawn: Graph, *, inputs: Mapping[str, JsonValue] | None = None, policy: Policy | None = None
    ) -> None:
        self.store = Store(drawn, inputs or {}, policy or Policy())
        self.now = BEGINNING

    # What happens

    def happen(self, *happened: Happening) -> Decision:
        return self.store.step(happened, self.now)

    def submit(self) -> Decision:
        return self.happen(Submitted())

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def report(self, node_id: str, status: ResultStatus = ResultStatus.COMPLETED, **more: Any) -> Reported:
        """Make a report of the node's present attempt."""
        task_id = more.pop("task_id", None) or self.store.rows[node_id].task_id or "none"
        return Reported(task_id, node_id, status, **{"worker_id": "w1", **more})

    def run(self, node_id: str, **more: Any) -> Decision:
        return self.happen(self.report(node_id, ResultStatus.RUNNING, **more))

    def complete(self, *node_ids: str, output: JsonValue = None) -> Decision:
        return self.happen(*(self.report(node_id, output=output) for node_id in node_ids))

    def fail(self, node_id: str, error: str = "boom", *, retryable: bool = False) -> Decision:
        return self.happen(self.report(node_id, ResultStatus.FAILED, error_message=error, retryable=retryable))

    def pass_deadline(self, node_id: str, *, taken: bool = False) -> Decision:
        return self.happen(DeadlinePassed(node_id, taken=taken))

    def resume(self, node_id: str | None = None) -> Decision:
        return self.happen(Resumed(node_id, actor="operator"))

    # What is seen

    @property
    def status(self) -> JobStatus:
        return self.store.status

    def node_status(self, node_id: str) -> NodeStatus:
        return self.store.rows[node_id].status

    @property
    def statuses(self) -> dict[str, str]:
        """The static nodes."""
        return {node_id: str(self.store.rows[node_id].status) for node_id in self.store.graph.nodes}


def told(decision: Decision, *event_types: EventType) -> list[tuple[str, str | None]]:
    """Give the events of a decision in short: all, or those of some types."""
    return [
        (str(event.event_type), event.node_id)
        for event in decision.events
        if not event_types or event.event_type in event_types
    ]
