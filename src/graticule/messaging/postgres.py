"""The default transport: the rows of tasks are the queue.

Losing a claim or a renewal in a crash of the server means no more than a second delivery, so their commits
do not wait for the disk. What ends a task does.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from graticule.core.fault_points import Commit
from graticule.core.ids import TaskId, WorkerId
from graticule.core.models import Task
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database
from graticule.repositories.tasks import ClaimedTask, Delivery, LeaseState, TaskRepository


def without_waiting_for_disk(url: str) -> str:
    """Give the address for sessions whose commits may be lost in a crash of the server."""
    given = str(conninfo_to_dict(url).get("options") or "")
    return make_conninfo(url, options=f"{given} -c synchronous_commit=off".strip())


class PostgresTaskQueue:
    """A `TaskQueue` over the table of tasks.

    `leases` serves claims and renewals (see `without_waiting_for_disk`), `database` the rest.
    """

    def __init__(self, database: Database, leases: Database, worker_id: WorkerId, lease_seconds: float) -> None:
        self._database = database
        self._leases = leases
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds

    async def send(self, message: TaskMessage) -> None:
        """Put one message into its queue."""
        await self.send_batch([message])

    async def send_batch(self, messages: Sequence[TaskMessage]) -> None:
        """Put many messages into their queues: all of them, or none."""
        now = self._database.now()
        async with self._database.transaction(Commit.SEND) as connection:
            tasks = TaskRepository(connection)
            await tasks.insert_many([_row(message, now) for message in messages])
            await tasks.notify({message.queue for message in messages})

    async def receive(
        self, queue: str, limit: int, without: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> list[TaskMessage]:
        """Take up to so many messages of a queue, the most urgent first.

        Those for the handlers `without` and those of the partners `passed_over` are left.
        """
        async with self._leases.committing(Commit.CLAIM) as connection:
            tasks = TaskRepository(connection)
            claimed = await tasks.claim(
                self._worker_id, queue, limit, self._lease_seconds, without=without, passed_over=passed_over
            )
        return [_message(task) for task in claimed]

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        """Tell in how many seconds a message that waits for its time can be received; None when none waits."""
        async with self._leases.connection() as connection:
            return await TaskRepository(connection).seconds_to_next(queues)

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases, and tell of each whether it is still held."""
        async with self._leases.committing(Commit.RENEW) as connection:
            return await TaskRepository(connection).renew(self._worker_id, _held(messages), self._lease_seconds)

    async def complete(self, messages: Sequence[TaskMessage]) -> set[TaskId]:
        """End messages, and give those whose lease was still held."""
        async with self._database.committing(Commit.COMPLETE) as connection:
            return await TaskRepository(connection).complete(self._worker_id, _held(messages))

    async def abandon(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Give messages back; a delivery that does not count brings none nearer to its last."""
        async with self._database.committing(Commit.ABANDON) as connection:
            tasks = TaskRepository(connection)
            return await tasks.abandon(self._worker_id, _held(messages), delay_seconds=delay_seconds, counts=counts)

    async def abandon_all_but(self, held: Collection[TaskId]) -> set[TaskId]:
        """Give back the messages that this worker was given and does not know of: the answer was lost."""
        async with self._database.committing(Commit.ABANDON) as connection:
            return await TaskRepository(connection).abandon_all_but(self._worker_id, held)

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a message aside for good; False when its lease was lost."""
        async with self._database.committing(Commit.DEAD_LETTER) as connection:
            return bool(await TaskRepository(connection).dead_letter(self._worker_id, delivery_of(message), reason))

    async def stop_receiving(self) -> None:
        """Do nothing: nothing comes that is not asked for."""

    def release(self, message: TaskMessage, *, is_lost: bool = False) -> None:
        """Do nothing: the row that tells of the result is the message."""


def delivery_of(message: TaskMessage) -> Delivery:
    """Name the lease of a message that was received."""
    return Delivery(message.task_id, message.delivery_count)


def _held(messages: Sequence[TaskMessage]) -> list[Delivery]:
    return [delivery_of(message) for message in messages]


def _message(task: ClaimedTask) -> TaskMessage:
    return TaskMessage(
        task_id=task.task_id,
        job_id=task.job_id,
        node_id=task.node_id,
        handler=task.handler,
        params=task.params,
        queue=task.queue,
        timeout_seconds=task.timeout_seconds,
        retry_count=task.retry_count,
        traceparent=task.traceparent,
        priority=task.priority,
        share=task.share,
        delivery_count=task.delivery_count,
        max_deliveries=task.max_deliveries,
        waited_seconds=task.waited_seconds,
        sources=task.sources,
    )


def _row(message: TaskMessage, now: datetime) -> Task:
    return Task(
        task_id=message.task_id,
        job_id=message.job_id,
        node_id=message.node_id,
        queue=message.queue,
        handler=message.handler,
        params=message.params,
        priority=message.priority,
        retry_count=message.retry_count,
        timeout_seconds=message.timeout_seconds,
        max_deliveries=message.max_deliveries,
        traceparent=message.traceparent,
        available_at=now,
        created_at=now,
    )
