"""Who holds which task, where a broker carries the messages: the rows say so, and the broker only delivers.

A message is a hint that a task waits. The worker that receives it asks the ledger for the task's lease; whoever gets
none has a message too many, and ends it. So a message that is sent twice, delivered twice or kept by a worker that died
does no harm, and a task whose lease runs out is sent anew.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from graticule.core.fault_points import Commit
from graticule.core.ids import TaskId, WorkerId
from graticule.messaging.postgres import delivery_of
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database
from graticule.repositories.tasks import LeaseState, TakenTask, TaskRepository


class TaskLedger(Protocol):
    """Gives leases of tasks to one worker."""

    async def take(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, TakenTask]:
        """Lease the tasks that wait, and tell how each stands.

        A task that this worker holds already is told as held: the answer to an earlier question may have been lost.
        One that is not in the answer does not exist.
        """

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases, and tell of each whether it is still held."""

    async def give_back(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Let tasks be sent anew, and give those whose lease was held."""

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a task aside for good; False when its lease was lost."""


class DatabaseLedger:
    """The ledger of a worker that reaches the database.

    `leases` serves what may be lost in a crash of the server (see `without_waiting_for_disk`), `database` the rest.
    """

    def __init__(self, database: Database, leases: Database, worker_id: WorkerId, lease_seconds: float) -> None:
        self._database = database
        self._leases = leases
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds

    async def take(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, TakenTask]:
        """Lease the tasks that wait, and tell how each stands."""
        async with self._leases.committing(Commit.CLAIM) as connection:
            return await TaskRepository(connection).take(self._worker_id, task_ids, self._lease_seconds)

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases, and tell of each whether it is still held."""
        held = [delivery_of(message) for message in messages]
        async with self._leases.committing(Commit.RENEW) as connection:
            return await TaskRepository(connection).renew(self._worker_id, held, self._lease_seconds)

    async def give_back(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Let tasks be sent anew, and give those whose lease was held."""
        held = [delivery_of(message) for message in messages]
        async with self._database.committing(Commit.ABANDON) as connection:
            tasks = TaskRepository(connection)
            return await tasks.abandon(self._worker_id, held, delay_seconds=delay_seconds, counts=counts)

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a task aside for good; False when its lease was lost."""
        async with self._database.committing(Commit.DEAD_LETTER) as connection:
            return bool(await TaskRepository(connection).dead_letter(self._worker_id, delivery_of(message), reason))
