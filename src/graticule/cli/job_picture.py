"""What is known of a job while it is watched: its rows as they were last read, and what the events told since."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from graticule.client import Document

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
CHILD: Final = "__"  # stands in the name of a fan-out's child, and in no other


@dataclass(frozen=True, slots=True)
class Retry:
    """A node that failed and is tried again."""

    node_id: str
    number: int
    ready_at: datetime
    error: str

    def waits(self, now: datetime) -> float:
        """Give the seconds until it is sent again; 0 when it was."""
        return max(0.0, (self.ready_at - now).total_seconds())


@dataclass(slots=True)
class Children:
    """What the events told of the children of one fan-out."""

    total: int = 0
    done: int = 0
    failed: int = 0
    retries: int = 0


@dataclass(slots=True)
class JobPicture:
    """A job, its nodes in graph order, and the retries that are under way."""

    job: Document
    nodes: list[Document] = field(default_factory=list)
    retrying: dict[str, Retry] = field(default_factory=dict)
    retries: dict[str, int] = field(default_factory=dict)  # of each static node, its children's included
    _errors: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """Where the job stands."""
        return str(self.job["status"])

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self.status in ENDED

    def elapsed(self, now: datetime | None = None) -> float:
        """Give the seconds from the submission to the end, or to now."""
        return seconds_between(self.job["created_at"], self.job["ended_at"], now)

    def take(self, event: Document) -> None:
        """Learn from an event what the rows do not say: which retries wait, and why."""
        node_id, told = str(event["node_id"]), event["data"]
        match event["event_type"]:
            case "node_failed":
                self._errors[node_id] = str(told.get("error", ""))
                self.retrying.pop(node_id, None)
            case "node_retry":
                ready_at = datetime.fromisoformat(told["ready_at"])
                self.retrying[node_id] = Retry(node_id, told["retry_count"], ready_at, self._errors.get(node_id, ""))
                static = static_node(node_id)
                self.retries[static] = self.retries.get(static, 0) + 1
            case "node_completed":
                self.retrying.pop(node_id, None)
            case "job_failed" | "job_cancelled" | "job_resumed":
                self.retrying.clear()

    def retrying_of(self, node_id: str, now: datetime) -> list[Retry]:
        """Give the retries of a node, or of a fan-out's children, that wait for their time; the next one first."""
        found = [each for each in self.retrying.values() if static_node(each.node_id) == node_id and each.waits(now)]
        return sorted(found, key=lambda each: each.ready_at)


def static_node(node_id: str) -> str:
    """Give the node of the workflow that a node is, or is a child of."""
    return node_id.partition(CHILD)[0]


def seconds_between(begin: str | None, end: str | None, now: datetime | None = None) -> float:
    """Give the seconds between two times of documents; without an end, up to now."""
    if begin is None:
        return 0.0
    until = datetime.fromisoformat(end) if end else now or datetime.now(UTC)
    return max(0.0, (until - datetime.fromisoformat(begin)).total_seconds())


def told_seconds(seconds: float) -> str:
    """Write a time as people say it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
