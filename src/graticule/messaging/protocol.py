"""What a transport of tasks can do, whatever carries them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.repositories.tasks import LeaseState

DEFAULT_MAX_DELIVERIES = 10
LARGEST_CLAIM = 500  # messages that a worker takes at once


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """One attempt of one node, as it travels to a worker.

    `delivery_count` is 0 until the message is received; after that it names the lease.
    """

    task_id: TaskId
    job_id: JobId
    node_id: NodeId
    handler: str
    params: dict[str, JsonValue]
    queue: str
    timeout_seconds: int = 3600
    retry_count: int = 0
    traceparent: str | None = None
    priority: int = 0
    share: str = ""  # the partner, and its own priority after a slash; empty for no partner, or where it is not known
    delivery_count: int = 0
    max_deliveries: int = DEFAULT_MAX_DELIVERIES
    waited_seconds: float | None = field(default=None, compare=False)  # until it was received, where that is known
    sources: Sequence[str] | None = None  # where files of partners may be read; None: wherever the storage reaches


class TaskQueue(Protocol):
    """Carries tasks to workers, at least once. What is received is leased: it must be renewed, and ended."""

    async def receive(
        self, queue: str, limit: int, without: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> list[TaskMessage]:
        """Take up to so many messages of a queue, the most urgent first; none when it is empty.

        Those for the handlers `without` and those of the partners `passed_over` are left, where the transport can tell.
        """

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        """Tell in how many seconds a message that waits for its time can be received; None when none is known."""

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases, and tell of each whether it is still held."""

    async def complete(self, messages: Sequence[TaskMessage]) -> set[TaskId]:
        """End messages, and give those whose lease was still held."""

    async def abandon(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Give messages back; a delivery that does not count brings none nearer to its last."""

    async def abandon_all_but(self, held: Collection[TaskId]) -> set[TaskId]:
        """Give back the messages that this worker was given and does not know of: the answer was lost."""

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a message aside for good; False when its lease was lost."""

    async def stop_receiving(self) -> None:
        """Take no more messages; those that were received are still held."""

    def release(self, message: TaskMessage, *, is_lost: bool = False) -> None:
        """Let go of a message whose result is written; nothing more is done with it here.

        One whose lease was lost need not be another's: a server that crashes may forget that it gave the lease.
        """
