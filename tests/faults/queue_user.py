"""A process that uses the queue by its protocol, as a worker of another make would."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import psycopg
from tests.chaos.member import Action, Fault
from tests.forks import FORKS

from graticule.core.errors import AlreadyExists, Unavailable
from graticule.core.fault_points import Commit, Moment, watch
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.table import DatabaseRole
from graticule.messaging.postgres import PostgresTaskQueue
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database

T = TypeVar("T")
QUEUE = "faults-queue"


@dataclass(frozen=True)
class QueueUser:
    """Someone at the queue."""

    url: str
    job_id: str

    def deed_with(self, fault: Fault) -> int:
        """Do in a process of its own what the commit is about, and give the exit code."""
        process = FORKS.Process(target=_run, args=(self, fault), daemon=True)
        process.start()
        process.join(20)
        assert process.exitcode is not None
        return process.exitcode

    def send(self) -> None:
        asyncio.run(self._with_queue("sender", self.send_both))

    def receive(self) -> list[TaskMessage]:
        """Take all that there is."""
        return asyncio.run(self._with_queue("another", lambda queue: queue.receive(QUEUE, 10)))

    async def deed(self, commit: Commit) -> None:
        async def act(queue: PostgresTaskQueue) -> None:
            messages = [] if commit is Commit.SEND else await queue.receive(QUEUE, 10)
            deeds: dict[Commit, Callable[[], Awaitable[object]]] = {
                Commit.SEND: lambda: self.send_both(queue),
                Commit.COMPLETE: lambda: queue.complete(messages),
                Commit.DEAD_LETTER: lambda: queue.dead_letter(messages[0], "no good"),
            }
            try:
                await deeds[commit]()
            except Unavailable:
                await _again(deeds[commit])

        await self._with_queue("mortal", act)

    async def send_both(self, queue: PostgresTaskQueue) -> None:
        await queue.send_batch([self._message(number) for number in (1, 2)])

    def _message(self, number: int) -> TaskMessage:
        return TaskMessage(
            task_id=TaskId(f"{self.job_id}-{number}"),
            job_id=JobId(self.job_id),
            node_id=NodeId("node"),
            handler="faults_work",
            params={},
            queue=QUEUE,
            timeout_seconds=60,
        )

    async def _with_queue(self, name: str, act: Callable[[PostgresTaskQueue], Awaitable[T]]) -> T:
        async with Database(self.url, DatabaseRole.ORCHESTRATOR, pool_size=1) as database:
            return await act(PostgresTaskQueue(database, database, WorkerId(name), lease_seconds=60))


async def _again(deed: Callable[[], Awaitable[object]]) -> None:
    """Repeat what got no answer; that it was done already is an answer."""
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
