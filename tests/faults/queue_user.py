"""A process that uses the queue by its protocol, as a worker of another make would."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import psycopg
from tests.chaos.member import Action, Fault
from tests.faults.carriers import OF_NO_WORKER
from tests.forks import FORKS

from graticule.config import Settings, Transport
from graticule.core.errors import AlreadyExists, Unavailable
from graticule.core.fault_points import Commit, Moment, watch
from graticule.core.ids import JobId, NodeId, OwnerId, TaskId, WorkerId
from graticule.core.table import DatabaseRole
from graticule.messaging.ledger import DatabaseLedger
from graticule.messaging.postgres import PostgresTaskQueue
from graticule.messaging.protocol import TaskMessage, TaskQueue
from graticule.messaging.servicebus.namespace import Namespace
from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue
from graticule.orchestrator.broker import Broker
from graticule.repositories.database import Database

OWNER = OwnerId("nobody")  # of the job
LEASE_SECONDS = 60
RECEIVE_SECONDS, PAUSE_SECONDS = 15, 0.05
SOME_WAIT = "SELECT FROM dagapp.dag_tasks WHERE job_id = %s AND status = 'queued' LIMIT 1"


@dataclass(frozen=True)
class QueueUser:
    """Someone at the queue, with the settings of the transport that carries it."""

    url: str
    settings: Mapping[str, str]
    job_id: str

    def deed_with(self, fault: Fault) -> int:
        """Do in a process of its own what the commit is about, and give the exit code."""
        process = FORKS.Process(target=_run, args=(self, fault), daemon=True)
        process.start()
        process.join(20)
        assert process.exitcode is not None
        return process.exitcode

    def send(self) -> None:
        """Have two tasks wait."""

        async def send() -> None:
            async with self._database() as database:
                await self._send_both(database)

        asyncio.run(send())

    def receive(self) -> list[TaskMessage]:
        """Take all that there is."""

        async def receive() -> list[TaskMessage]:
            async with self._database() as database, self._queue(database, "another") as queue:
                return await self._received(database, queue)

        return asyncio.run(receive())

    async def deed(self, commit: Commit) -> None:
        async with self._database() as database:
            if commit is Commit.SEND:
                await _answered(lambda: self._send_both(database))
                return
            async with self._queue(database, "mortal") as queue:
                messages = await self._received(database, queue)
                deeds: dict[Commit, Callable[[], Awaitable[object]]] = {
                    Commit.COMPLETE: lambda: queue.complete(messages),
                    Commit.DEAD_LETTER: lambda: queue.dead_letter(messages[0], "no good"),
                }
                await _answered(deeds[commit])

    def _database(self) -> Database:
        return Database(self.url, DatabaseRole.ORCHESTRATOR, pool_size=2)

    def _queue(self, database: Database, name: str) -> AbstractAsyncContextManager[TaskQueue]:
        settings = Settings.model_validate(self.settings)
        carried = _carried_by_rows if settings.transport is Transport.POSTGRES else _carried_by_broker
        return carried(settings, database, WorkerId(name))

    async def _send_both(self, database: Database) -> None:
        queue = PostgresTaskQueue(database, database, WorkerId("sender"), LEASE_SECONDS)
        await queue.send_batch([self._message(number) for number in (1, 2)])

    async def _received(self, database: Database, queue: TaskQueue) -> list[TaskMessage]:
        """Take messages until no task waits."""
        messages: list[TaskMessage] = []
        async with asyncio.timeout(RECEIVE_SECONDS):
            while True:
                messages += await queue.receive(OF_NO_WORKER, 10)
                async with database.connection() as connection:
                    if not (await connection.execute(SOME_WAIT, [self.job_id])).rowcount:
                        return messages
                await asyncio.sleep(PAUSE_SECONDS)

    def _message(self, number: int) -> TaskMessage:
        return TaskMessage(
            task_id=TaskId(f"{self.job_id}-{number}"),
            job_id=JobId(self.job_id),
            node_id=NodeId("node"),
            handler="faults_work",
            params={},
            queue=OF_NO_WORKER,
            timeout_seconds=60,
        )


@asynccontextmanager
async def _carried_by_rows(_: Settings, database: Database, worker_id: WorkerId) -> AsyncIterator[TaskQueue]:
    yield PostgresTaskQueue(database, database, worker_id, LEASE_SECONDS)


@asynccontextmanager
async def _carried_by_broker(settings: Settings, database: Database, worker_id: WorkerId) -> AsyncIterator[TaskQueue]:
    """Give the queue, beside the part of an orchestrator that sends what waits."""
    ledger = DatabaseLedger(database, database, worker_id, LEASE_SECONDS)
    async with (
        Broker(settings, database, OWNER).running(),
        Namespace(settings) as namespace,
        ServiceBusTaskQueue(namespace, ledger, [OF_NO_WORKER]) as queue,
    ):
        yield queue


async def _answered(deed: Callable[[], Awaitable[object]]) -> None:
    """Do something, and repeat it when there is no answer; that it was done already is one."""
    try:
        await deed()
    except Unavailable:
        try:
            await deed()
        except AlreadyExists:
            return


def _run(user: QueueUser, fault: Fault) -> None:
    watch(_watcher(fault))
    asyncio.run(user.deed(fault.commit))


def _watcher(fault: Fault) -> Callable[[Commit, Moment], None]:
    has_happened = False

    def watcher(commit: Commit, moment: Moment) -> None:
        nonlocal has_happened
        if (commit, moment) != (fault.commit, fault.moment) or has_happened:
            return
        has_happened = True
        if fault.action is Action.LOSE_ANSWER:
            raise psycopg.OperationalError("the answer was lost")
        os.kill(os.getpid(), signal.SIGKILL)

    return watcher
