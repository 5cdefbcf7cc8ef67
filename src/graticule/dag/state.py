"""What the evaluator reads and what it decides: the state of a job, what happened, and the changes that follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus

# Of JSON, all children of a fan-out together: as much as one output may have, for what they give becomes one.
MAX_FAN_BYTES: Final = 64 * 1024 * 1024


class NotLoaded:
    """Stands where an output is that was not read; see `NeedsData`."""

    def __repr__(self) -> str:
        return "NOT_LOADED"


NOT_LOADED: Final = NotLoaded()


class NeedsData(Exception):
    """The decision needs outputs that were left out of the state; read them and ask again.

    The evaluator is pure, so asking again costs nothing but time. Templates let it pass. Outputs of children that
    have more than `at_most` bytes together need not be read: their sizes are enough.
    """

    def __init__(
        self,
        *,
        outputs: frozenset[str] = frozenset(),
        children_of: frozenset[str] = frozenset(),
        at_most: int = MAX_FAN_BYTES,
    ) -> None:
        super().__init__(f"{len(outputs)} outputs, children of {sorted(children_of)}")
        self.outputs = outputs
        self.children_of = children_of
        self.at_most = at_most


@dataclass(slots=True)
class NodeState:
    """One node of a job as its row says; of the children only those that something happened to are there."""

    node_id: str
    node_type: NodeType
    status: NodeStatus = NodeStatus.PENDING
    retry_count: int = 0
    retry_base: int = 0  # the count at which the present retry budget began
    task_id: str | None = None
    worker_id: str | None = None
    output: JsonValue | NotLoaded = None
    output_ref: str | None = None
    error_message: str | None = None
    progress: dict[str, JsonValue] | None = None
    parent_node_id: str | None = None
    fan_out_index: int | None = None
    fan_out_key: str | None = None
    input_params: dict[str, JsonValue] | None = None  # as they were resolved for the first dispatch
    children_total: int = 0
    children_started: int = 0  # released to a queue: always the first so many
    children_done: int = 0
    children_failed: int = 0
    ready_at: datetime | None = None
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    deadline_at: datetime | None = None


@dataclass(slots=True)
class ChildOutcome:
    """How one child of a fan-out ended, as its fan-in sees it."""

    index: int
    node_id: str
    completed: bool
    output: JsonValue | NotLoaded = None
    error_message: str | None = None
    key: str | None = None
    size: int = 0  # bytes of the output as JSON, once it was measured


@dataclass(slots=True)
class JobState:
    """A job as its rows say. `nodes` has every static node and the children that matter to this step."""

    job_id: str
    status: JobStatus
    input_params: Mapping[str, JsonValue]
    priority: int = 0
    traceparent: str | None = None
    nodes: dict[str, NodeState] = field(default_factory=dict)
    # The outcomes of all children of a fan-out in index order, once they were asked for.
    children: dict[str, list[ChildOutcome]] = field(default_factory=dict)


# What happened


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job is new; its static nodes are all pending."""

    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker reported of a task."""

    task_id: str
    node_id: str
    status: ResultStatus
    output: JsonValue | NotLoaded = None
    output_ref: str | None = None
    error_message: str | None = None
    retryable: bool = True
    worker_id: str | None = None
    progress: dict[str, JsonValue] | None = None
    checkpoint: str | None = None  # the phase that was saved
    metrics: dict[str, JsonValue] | None = None
    result_id: int | None = None
    waited_seconds: float = 0.0  # from the report until it was read


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The node's `deadline_at` is over. `taken`: a worker holds the task, although it has not said so yet."""

    node_id: str
    taken: bool = False


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Someone wants the job to end now."""

    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """Someone wants an ended job to go on: from its failed nodes, or from one node and all that is downstream."""

    node_id: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class StartedOver:
    """Someone wants an ended job to run as its workflow is defined now. Its static nodes are new, and all pending.

    Their retry counts are beyond those of all attempts that the job has had, so that no late result is taken for one
    of theirs.
    """

    actor: str | None = None


Happening = Submitted | Reported | DeadlinePassed | CancelRequested | Resumed | StartedOver


# What follows


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be queued."""

    task_id: str
    node_id: str
    handler: str
    queue: str
    params: dict[str, JsonValue]
    timeout_seconds: int
    retry_count: int


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be written, in order."""

    event_type: EventType
    node_id: str | None = None
    task_id: str | None = None
    actor: str | None = None
    data: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that exists and is to be written; only if its row is still in the status that was read."""

    before: NodeStatus
    node: NodeState


@dataclass(slots=True)
class Decision:
    """All that follows from what happened; written in one transaction."""

    job_before: JobStatus
    job_status: JobStatus  # the same as before when the job did not move
    error_message: str | None = None  # of a job that failed
    result: JsonValue = None  # of a job that completed
    changes: list[NodeChange] = field(default_factory=list)
    created: list[NodeState] = field(default_factory=list)  # children of fan-outs
    removed_children_of: list[str] = field(default_factory=list)  # fan-outs that a resume resets; before `created`
    started_over: list[str] = field(default_factory=list)  # nodes whose checkpoints, and their children's, are void
    # The job ended: after the changes, every child of these fan-outs that is dispatched or running fails, because of …
    abandoned_children_of: list[str] = field(default_factory=list)
    abandoned_because: str | None = None
    tasks: list[NewTask] = field(default_factory=list)
    withdraw: list[str] = field(default_factory=list)  # tasks that nobody is to run any more
    withdraw_all: bool = False  # the job ended: every task of it that is queued or leased
    events: list[NewEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the evaluator is told once: limits and the environment that templates may see."""

    dispatch_timeout_seconds: float = 3600.0  # 0: never
    queue_dispatch_timeouts: Mapping[str, float] = field(default_factory=dict)  # of queues that have their own
    running_grace_seconds: float = 60.0  # beyond a task's own timeout, which its worker enforces
    max_children: int = 100_000
    max_children_params_bytes: int = MAX_FAN_BYTES
    max_gathered_bytes: int = MAX_FAN_BYTES  # that a fan-in takes
    environment: Mapping[str, str] = field(default_factory=dict)

    def dispatch_timeout(self, queue: str) -> float:
        """Tell how many seconds a task may wait in a queue; 0: as long as it takes."""
        return self.queue_dispatch_timeouts.get(queue, self.dispatch_timeout_seconds)
