"""The states of things, and the transition tables: which step may follow which.

The tables are the only place that says so, and repositories guard every write with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from graticule.core.errors import IllegalTransition


class JobStatus(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class NodeStatus(StrEnum):
    """Where a node of a job stands."""

    PENDING = "pending"
    READY = "ready"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class MessageStatus(StrEnum):
    """Where a message of a queue stands."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    WITHDRAWN = "withdrawn"
    DEAD = "dead"


class ResultStatus(StrEnum):
    """What a worker reports of a task."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ProcessingState(StrEnum):
    """Has the workflow of an asset version finished?"""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class ApprovalState(StrEnum):
    """Has a person reviewed an asset version?"""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"
    FAILED = "failed"  # processing failed, so there is nothing to review; derived when a row is read, never stored


class ClearanceState(StrEnum):
    """Who may see an asset?"""

    UNCLEARED = "uncleared"
    OUO = "ouo"
    PUBLIC = "public"


class RequestStatus(StrEnum):
    """Where a partner's work order stands."""

    ACCEPTED = "accepted"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transitions(Generic[S]):
    """The steps that one kind of thing may take."""

    subject: str
    initial: S
    steps: Mapping[S, frozenset[S]]

    def allows(self, old: S, new: S) -> bool:
        """Tell whether the step from `old` to `new` is in the table."""
        return new in self.steps[old]

    def check(self, old: S, new: S) -> None:
        """Raise `IllegalTransition` unless the step is in the table."""
        if not self.allows(old, new):
            raise IllegalTransition(f"A {self.subject} cannot go from {old} to {new}.")

    def sources(self, new: S) -> tuple[S, ...]:
        """Give the states from which `new` can be reached in one step, in the enum's order."""
        return tuple(old for old in self.steps if new in self.steps[old])

    def final(self) -> tuple[S, ...]:
        """Give the states that no step leaves."""
        return tuple(state for state, targets in self.steps.items() if not targets)


def _steps(table: dict[S, set[S]]) -> Mapping[S, frozenset[S]]:
    return {old: frozenset(new) for old, new in table.items()}


JOB = Transitions(
    subject="job",
    initial=JobStatus.PENDING,
    steps=_steps(
        {
            JobStatus.PENDING: {JobStatus.RUNNING, JobStatus.CANCELLED},
            JobStatus.RUNNING: {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED},
            JobStatus.COMPLETED: set(),
            JobStatus.FAILED: {JobStatus.RUNNING},  # resumed
            JobStatus.CANCELLED: {JobStatus.RUNNING},  # submitted again
        }
    ),
)

NODE = Transitions(
    subject="node",
    initial=NodeStatus.PENDING,
    steps=_steps(
        {
            NodeStatus.PENDING: {NodeStatus.READY, NodeStatus.SKIPPED},
            NodeStatus.READY: {
                NodeStatus.DISPATCHED,
                NodeStatus.RUNNING,  # a fan-out whose children are under way
                NodeStatus.COMPLETED,  # a control node: it never goes to a worker
                NodeStatus.FAILED,  # before dispatch: a template error, an unknown handler or queue
                NodeStatus.SKIPPED,
            },
            NodeStatus.DISPATCHED: {
                NodeStatus.RUNNING,
                NodeStatus.COMPLETED,  # the result overtook the "running" report
                NodeStatus.FAILED,
            },
            NodeStatus.RUNNING: {NodeStatus.COMPLETED, NodeStatus.FAILED},
            NodeStatus.COMPLETED: set(),
            NodeStatus.FAILED: {NodeStatus.READY},  # a retry
            NodeStatus.SKIPPED: set(),
        }
    ),
)

# A resumed job goes on from nodes that it had left: the only steps back, and no other transaction takes them.
NODE_RESUME = Transitions(
    subject="node of a resumed job",
    initial=NodeStatus.PENDING,
    steps=_steps(
        {
            NodeStatus.PENDING: set(),
            NodeStatus.READY: {NodeStatus.PENDING},
            NodeStatus.DISPATCHED: set(),
            NodeStatus.RUNNING: set(),
            NodeStatus.COMPLETED: {NodeStatus.READY, NodeStatus.PENDING},
            NodeStatus.FAILED: {NodeStatus.READY, NodeStatus.PENDING},
            NodeStatus.SKIPPED: {NodeStatus.READY, NodeStatus.PENDING},
        }
    ),
)

PROCESSING = Transitions(
    subject="version's processing",
    initial=ProcessingState.QUEUED,
    steps=_steps(
        {
            ProcessingState.QUEUED: {
                ProcessingState.PROCESSING,
                ProcessingState.COMPLETED,  # a workflow that needs no worker
                ProcessingState.FAILED,
            },
            ProcessingState.PROCESSING: {ProcessingState.COMPLETED, ProcessingState.FAILED},
            ProcessingState.COMPLETED: {ProcessingState.QUEUED},  # a new revision
            ProcessingState.FAILED: {
                ProcessingState.QUEUED,  # a retry, or a new revision
                ProcessingState.PROCESSING,  # its job was resumed
            },
        }
    ),
)

APPROVAL = Transitions(
    subject="version's approval",
    initial=ApprovalState.PENDING_REVIEW,
    steps=_steps(
        {
            ApprovalState.PENDING_REVIEW: {
                ApprovalState.APPROVED,
                ApprovalState.REJECTED,
                ApprovalState.FAILED,  # its processing failed
            },
            ApprovalState.APPROVED: {
                ApprovalState.REJECTED,  # revoked
                ApprovalState.PENDING_REVIEW,  # overwritten
            },
            ApprovalState.REJECTED: {ApprovalState.PENDING_REVIEW},  # overwritten
            ApprovalState.FAILED: {ApprovalState.PENDING_REVIEW},  # retried, overwritten, or its job was resumed
        }
    ),
)

CLEARANCE = Transitions(
    subject="clearance",
    initial=ClearanceState.UNCLEARED,
    steps=_steps(
        {
            ClearanceState.UNCLEARED: {ClearanceState.OUO, ClearanceState.PUBLIC},
            ClearanceState.OUO: {ClearanceState.PUBLIC, ClearanceState.UNCLEARED},
            ClearanceState.PUBLIC: {ClearanceState.OUO, ClearanceState.UNCLEARED},
        }
    ),
)

REQUEST = Transitions(
    subject="request",
    initial=RequestStatus.ACCEPTED,
    steps=_steps(
        {
            RequestStatus.ACCEPTED: {RequestStatus.PROCESSING, RequestStatus.COMPLETED, RequestStatus.FAILED},
            RequestStatus.PROCESSING: {RequestStatus.COMPLETED, RequestStatus.FAILED},
            RequestStatus.COMPLETED: set(),
            RequestStatus.FAILED: {
                RequestStatus.ACCEPTED,  # retried by the same request
                RequestStatus.PROCESSING,  # its job was resumed
            },
        }
    ),
)
