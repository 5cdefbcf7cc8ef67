"""One step of a job while it is being decided: the nodes as they are by now, and the decision so far."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import attrgetter

from pydantic import JsonValue

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JOB, NODE, JobStatus, NodeStatus, Transitions
from graticule.dag.graph import Graph, NodeSpec, TaskSpec
from graticule.dag.state import Decision, JobState, NewEvent, NodeChange, NodeState, Policy

UNDER_WAY = frozenset({NodeStatus.DISPATCHED, NodeStatus.RUNNING})
ENDED = frozenset({NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED})
ACTIVE = frozenset({JobStatus.PENDING, JobStatus.RUNNING})

# `dataclasses.replace` takes five times as long, and a batch of results copies a node for each.
_values_of = attrgetter(*(field.name for field in dataclasses.fields(NodeState)))


class Step:
    """Reads the state, never changes it: a node is copied when it is written first."""

    def __init__(self, graph: Graph, state: JobState, now: datetime, policy: Policy) -> None:
        self.graph = graph
        self.job = state
        self.now = now
        self.policy = policy
        self.decision = Decision(job_before=state.status, job_status=state.status)
        self.ends: list[str] = []  # end nodes that completed in this step and were not told of yet
        self._nodes = dict(state.nodes)
        self._before: dict[str, NodeStatus] = {}

    @property
    def active(self) -> bool:
        """Tell whether the job goes on."""
        return self.decision.job_status in ACTIVE

    # Nodes

    def find(self, node_id: str) -> NodeState | None:
        """Give a node as it is by now, or None when the state has no such node."""
        return self._nodes.get(node_id)

    def node(self, node_id: str) -> NodeState:
        """Give a node as it is by now; not to be written to."""
        return self._nodes[node_id]

    def static_nodes(self) -> Iterator[tuple[NodeSpec, NodeState]]:
        """Give the nodes of the workflow itself."""
        return ((spec, self._nodes[spec.node_id]) for spec in self.graph.nodes.values())

    def changed_nodes(self) -> list[NodeSpec]:
        """Give the nodes of the workflow itself that this step has written to."""
        return [self.graph.nodes[node_id] for node_id in self._before if node_id in self.graph.nodes]

    def children(self, fan_out: str | None = None) -> list[NodeState]:
        """Give the children that the state holds: of one fan-out, or of all."""
        nodes = (node for node in self._nodes.values() if node.parent_node_id is not None)
        return [node for node in nodes if fan_out is None or node.parent_node_id == fan_out]

    def task_spec(self, node: NodeState) -> TaskSpec:
        """Give what a task node or a child sends to its queue."""
        spec = self.graph.nodes[node.parent_node_id or node.node_id].task
        if spec is None:
            raise ValueError(f"Node {node.node_id!r} of workflow {self.graph.workflow_id!r} has no task.")
        return spec

    def edit(self, node_id: str) -> NodeState:
        """Give a node to be written to."""
        node = self._nodes[node_id]
        if node_id in self._before:
            return node
        self._before[node_id] = node.status
        copied = self._nodes[node_id] = NodeState(*_values_of(node))
        return copied

    def move(self, node_id: str, status: NodeStatus, table: Transitions[NodeStatus] = NODE) -> NodeState:
        """Take one step of the transition table, and give the node to be written to."""
        table.check(self._nodes[node_id].status, status)
        node = self.edit(node_id)
        node.status = status
        node.ended_at = self.now if status in ENDED else None
        if status not in UNDER_WAY:
            node.deadline_at = None
        return node

    def add_children(self, children: list[NodeState]) -> None:
        """Add the children of a fan-out, which belong to this step alone and are written to directly."""
        self.decision.created += children
        for child in children:
            self._nodes[child.node_id] = child
            self._before[child.node_id] = child.status

    def remove_children(self, fan_out: str) -> None:
        """Forget the children of a fan-out that starts anew."""
        self.decision.removed_children_of.append(fan_out)
        for child in self.children(fan_out):
            del self._nodes[child.node_id]

    def after(self, seconds: float) -> datetime:
        """Give a moment from now."""
        return self.now + timedelta(seconds=seconds)

    # The job and its story

    def move_job(self, status: JobStatus) -> None:
        """Take one step of the job's transition table."""
        JOB.check(self.decision.job_status, status)
        self.decision.job_status = status

    def start_job(self) -> None:
        """Let a pending job run; one that runs already goes on."""
        if self.decision.job_status is JobStatus.PENDING:
            self.move_job(JobStatus.RUNNING)
            self.tell(EventType.JOB_STARTED)

    def tell(
        self,
        event_type: EventType,
        node_id: str | None = None,
        data: dict[str, JsonValue] | None = None,
        *,
        task_id: str | None = None,
        actor: str | None = None,
    ) -> None:
        """Add an event."""
        self.decision.events.append(NewEvent(event_type, node_id, task_id, actor, data or {}))

    def tell_of_ends(self) -> None:
        """Tell of end nodes that completed and did not complete the job."""
        for node_id in self.ends:
            self.tell(EventType.NODE_COMPLETED, node_id)
        self.ends.clear()

    def decide(self) -> Decision:
        """Give the decision with all nodes that were written to."""
        created = {child.node_id for child in self.decision.created}
        self.decision.changes = [
            NodeChange(before, self._nodes[node_id])
            for node_id, before in self._before.items()
            if node_id not in created
        ]
        return self.decision


def new_child(parent: NodeState, index: int, key: str | None, params: dict[str, JsonValue]) -> NodeState:
    """Make a child of a fan-out; its attempts are numbered on from those of children that were there before."""
    return NodeState(
        node_id=child_id(parent.node_id, index),
        node_type=NodeType.TASK,
        retry_count=parent.retry_count,
        retry_base=parent.retry_count,
        parent_node_id=parent.node_id,
        fan_out_index=index,
        fan_out_key=key,
        input_params=params,
    )


def child_id(fan_out: str, index: int) -> str:
    """Give the id of a fan-out's child."""
    return f"{fan_out}__{index}"
