"""The rows of one job in memory: loaded in parts for the evaluator, and written whole or not at all.

It does what the orchestrator's transaction does, so it says what the evaluator expects of that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import JsonValue

from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag import evaluate
from graticule.dag.deciding.fan_out import releasable
from graticule.dag.graph import Graph
from graticule.dag.state import (
    NOT_LOADED,
    ChildOutcome,
    Decision,
    Happening,
    JobState,
    NeedsData,
    NewEvent,
    NewTask,
    NodeState,
    NotLoaded,
    Policy,
    Reported,
    Resumed,
)

UNDER_WAY = (NodeStatus.DISPATCHED, NodeStatus.RUNNING)
MOST_ROUNDS = 100  # of asking for more data: far more than any graph here has nodes


class Stale(AssertionError):
    """A row is no longer what the decision was made from."""


@dataclass
class Store:
    """One job: its nodes, its events, and every task that it ever had."""

    graph: Graph
    inputs: Mapping[str, JsonValue] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    job_id: str = "job"
    status: JobStatus = JobStatus.PENDING
    error_message: str | None = None
    result: JsonValue = None
    rows: dict[str, NodeState] = field(default_factory=dict)
    events: list[NewEvent] = field(default_factory=list)
    tasks: dict[str, NewTask] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    # Which outputs are left out until the evaluator asks for them.
    leaves_out: Callable[[NodeState], bool] = lambda node: False

    def __post_init__(self) -> None:
        self.rows = {spec.node_id: NodeState(spec.node_id, spec.type) for spec in self.graph.nodes.values()}

    # Reading

    def children(self, fan_out: str) -> list[NodeState]:
        found = [row for row in self.rows.values() if row.parent_node_id == fan_out]
        return sorted(found, key=lambda row: row.fan_out_index or 0)

    def load(self, happened: Sequence[Happening], now: datetime) -> JobState:
        """Give the static nodes, and those children that something happens to, that are due or that come next."""
        state = JobState(self.job_id, self.status, self.inputs)
        resumes = any(isinstance(happening, Resumed) for happening in happened)
        for spec in self.graph.nodes.values():
            row = self.rows[spec.node_id]
            state.nodes[spec.node_id] = replace(row, output=NOT_LOADED) if self.leaves_out(row) else row
            if spec.type is NodeType.FAN_OUT and row.children_total:
                wanted = {getattr(happening, "node_id", None) for happening in happened}
                self._load_children(state, row, wanted, now, resumes=resumes)
        return state

    def _load_children(
        self, state: JobState, parent: NodeState, wanted: Collection[str | None], now: datetime, *, resumes: bool
    ) -> None:
        children = self.children(parent.node_id)
        finished = sum(child.node_id in wanted for child in children)
        spec = self.graph.nodes[parent.node_id]
        next_ones = range(
            parent.children_started, parent.children_started + releasable(spec, parent, finished=finished)
        )
        for child in children:
            is_due = child.status is NodeStatus.READY and (child.ready_at is None or child.ready_at <= now)
            is_failed = resumes and child.status is NodeStatus.FAILED
            if child.node_id in wanted or is_due or is_failed or child.fan_out_index in next_ones:
                state.nodes[child.node_id] = child
        if resumes:
            number = max(parent.retry_count, *(child.retry_count + 1 for child in children))
            state.nodes[parent.node_id] = replace(state.nodes[parent.node_id], retry_count=number)

    def decide(self, happened: Sequence[Happening], now: datetime) -> Decision:
        """Ask the evaluator, and read whatever it asks for."""
        state = self.load(happened, now)
        shown = [self._hide(happening) for happening in happened]
        for _ in range(MOST_ROUNDS):
            try:
                return evaluate.advance(self.graph, state, shown, now, self.policy)
            except NeedsData as needed:
                self._supply(state, needed)
                shown = [
                    real if getattr(real, "node_id", None) in needed.outputs else seen
                    for real, seen in zip(happened, shown, strict=True)
                ]
        raise AssertionError("The evaluator never has enough data.")

    def _hide(self, happening: Happening) -> Happening:
        """Leave the outputs of children to the database: it copies them from result to row by itself."""
        if not isinstance(happening, Reported):
            return happening
        row = self.rows.get(happening.node_id)
        hidden = row is not None and row.parent_node_id is not None and self.leaves_out(row)
        return replace(happening, output=NOT_LOADED) if hidden else happening

    def _supply(self, state: JobState, needed: NeedsData) -> None:
        for node_id in needed.outputs:
            if node_id in state.nodes and self.rows[node_id].parent_node_id is None:
                state.nodes[node_id] = replace(state.nodes[node_id], output=self.rows[node_id].output)
        for fan_out in needed.children_of:
            state.children[fan_out] = [_outcome(child) for child in self.children(fan_out)]

    # Writing

    def apply(self, decision: Decision, happened: Sequence[Happening] = ()) -> None:
        """Write a decision, if every row is still what it was made from."""
        if self.status is not decision.job_before:
            raise Stale(f"the job is {self.status}, not {decision.job_before}")
        for change in decision.changes:
            if self.rows[change.node.node_id].status is not change.before:
                raise Stale(f"{change.node.node_id} is {self.rows[change.node.node_id].status}, not {change.before}")
        for fan_out in decision.removed_children_of:
            for child in self.children(fan_out):
                del self.rows[child.node_id]
        outputs = _first_outputs(happened)
        for change in decision.changes:
            self._write(change.node, outputs)
        for child in decision.created:
            if child.node_id in self.rows:
                raise Stale(f"{child.node_id} is there already")
            self.rows[child.node_id] = child
        self._abandon(decision)
        self._queue(decision)
        self.events += decision.events
        if decision.job_status is not decision.job_before:
            self.status, self.error_message = decision.job_status, decision.error_message
            self.result = decision.result

    def _write(self, node: NodeState, outputs: Mapping[str, JsonValue | NotLoaded]) -> None:
        """An output that was not loaded stays, or is copied from the result that completes the node."""
        if isinstance(node.output, NotLoaded):
            old = self.rows[node.node_id].output
            node = replace(node, output=outputs.get(node.task_id or "", old))
        self.rows[node.node_id] = node

    def _abandon(self, decision: Decision) -> None:
        for fan_out in decision.abandoned_children_of:
            for child in self.children(fan_out):
                if child.status in UNDER_WAY:
                    self.rows[child.node_id] = replace(
                        child,
                        status=NodeStatus.FAILED,
                        error_message=decision.abandoned_because,
                        ended_at=max(filter(None, (row.ended_at for row in self.rows.values()))),
                        deadline_at=None,
                    )

    def _queue(self, decision: Decision) -> None:
        for task in decision.tasks:
            if task.task_id in self.tasks:
                raise Stale(f"task {task.task_id} was made twice")
            self.tasks[task.task_id] = task
        self.withdrawn |= set(self.tasks) if decision.withdraw_all else set(decision.withdraw)

    def step(self, happened: Sequence[Happening], now: datetime) -> Decision:
        """Decide and write."""
        decision = self.decide(happened, now)
        self.apply(decision, happened)
        return decision


def _first_outputs(happened: Sequence[Happening]) -> dict[str, JsonValue | NotLoaded]:
    """Of two workers that completed one task, the first counts."""
    outputs: dict[str, JsonValue | NotLoaded] = {}
    for happening in happened:
        if isinstance(happening, Reported) and happening.status is ResultStatus.COMPLETED:
            outputs.setdefault(happening.task_id, happening.output)
    return outputs


def _outcome(child: NodeState) -> ChildOutcome:
    return ChildOutcome(
        index=child.fan_out_index or 0,
        node_id=child.node_id,
        completed=child.status is NodeStatus.COMPLETED,
        output=None if isinstance(child.output, NotLoaded) else child.output,
        error_message=child.error_message,
        key=child.fan_out_key,
    )
