"""The state of a job told by its events alone: what the audit trail says must be what the rows say."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.deciding.step import UNDER_WAY, child_id
from graticule.dag.graph import Graph


class ToldEvent(Protocol):
    """An event as it is decided on, or as its row says."""

    @property
    def event_type(self) -> EventType:
        """What it tells of."""

    @property
    def node_id(self) -> str | None:
        """The node that it is about."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What belongs to its type."""


@dataclass(slots=True)
class Replayed:
    """Where the job and its nodes stand after the events."""

    job_status: JobStatus = JobStatus.PENDING
    node_statuses: dict[str, NodeStatus] = field(default_factory=dict)


def replay(graph: Graph, events: Iterable[ToldEvent]) -> Replayed:
    """Follow the events of one job in order. Events that change no status are passed over."""
    replayed = Replayed(node_statuses=dict.fromkeys(graph.nodes, NodeStatus.PENDING))
    for event in events:
        reaction = _REACTIONS.get(event.event_type)
        if reaction is not None:
            reaction(replayed, event)
    return replayed


def _job(status: JobStatus) -> Callable[[Replayed, ToldEvent], None]:
    def reaction(replayed: Replayed, event: ToldEvent) -> None:
        replayed.job_status = status
        for node_id in event.data.get("nodes_completed", ()):
            replayed.node_statuses[node_id] = NodeStatus.COMPLETED

    return reaction


def _resumed(replayed: Replayed, event: ToldEvent) -> None:
    replayed.job_status = JobStatus.RUNNING
    if "workflow_hash" in event.data:  # with other nodes than before
        replayed.node_statuses.clear()
    for fan_out in event.data.get("removed_children_of", ()):
        for child in _children(replayed, fan_out):
            del replayed.node_statuses[child]
    replayed.node_statuses |= dict.fromkeys(event.data.get("reset", ()), NodeStatus.PENDING)
    replayed.node_statuses |= dict.fromkeys(event.data.get("ready", ()), NodeStatus.READY)
    replayed.node_statuses |= dict.fromkeys(event.data.get("nodes_completed", ()), NodeStatus.COMPLETED)


def _node(status: NodeStatus) -> Callable[[Replayed, ToldEvent], None]:
    def reaction(replayed: Replayed, event: ToldEvent) -> None:
        replayed.node_statuses |= dict.fromkeys(_told_of(event), status)

    return reaction


def _told_of(event: ToldEvent) -> Iterable[str]:
    """Give the nodes that an event is about: one, or a run of a fan-out's children."""
    node_id = event.node_id or ""
    if "from" not in event.data:
        return (node_id,)
    return (child_id(node_id, index) for index in range(event.data["from"], event.data["to"] + 1))


def _running(replayed: Replayed, event: ToldEvent) -> None:
    node_id = event.node_id or ""
    replayed.node_statuses[node_id] = NodeStatus.RUNNING
    for index in range(event.data.get("children", 0)):
        replayed.node_statuses.setdefault(child_id(node_id, index), NodeStatus.PENDING)


def _failed(replayed: Replayed, event: ToldEvent) -> None:
    node_id = event.node_id or ""
    replayed.node_statuses[node_id] = NodeStatus.FAILED
    if event.data.get("cancelled_children"):
        under_way = (child for child in _children(replayed, node_id) if replayed.node_statuses[child] in UNDER_WAY)
        replayed.node_statuses |= dict.fromkeys(under_way, NodeStatus.FAILED)


def _children(replayed: Replayed, fan_out: str) -> list[str]:
    return [node_id for node_id in replayed.node_statuses if node_id.startswith(child_id(fan_out, 0)[:-1])]


_REACTIONS: Mapping[EventType, Callable[[Replayed, ToldEvent], None]] = {
    EventType.JOB_CREATED: _job(JobStatus.PENDING),
    EventType.JOB_STARTED: _job(JobStatus.RUNNING),
    EventType.JOB_COMPLETED: _job(JobStatus.COMPLETED),
    EventType.JOB_FAILED: _job(JobStatus.FAILED),
    EventType.JOB_CANCELLED: _job(JobStatus.CANCELLED),
    EventType.JOB_RESUMED: _resumed,
    EventType.NODE_READY: _node(NodeStatus.READY),
    EventType.NODE_DISPATCHED: _node(NodeStatus.DISPATCHED),
    EventType.NODE_RUNNING: _running,
    EventType.NODE_COMPLETED: _node(NodeStatus.COMPLETED),
    EventType.NODE_FAILED: _failed,
    EventType.NODE_RETRY: _node(NodeStatus.READY),
    EventType.NODE_SKIPPED: _node(NodeStatus.SKIPPED),
}
