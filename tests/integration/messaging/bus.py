"""A namespace on this machine with what both sides of it are made of: orchestrators that send, workers that receive."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from unittest.mock import patch

import psycopg
from fastapi import FastAPI
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.servicebus_emulator import Emulator, Queue
from tests.servicebus_emulator.frames import described
from tests.servicebus_emulator.message import Message, Section
from tests.servicebus_emulator.queue import Entry
from tests.servicebus_emulator.refusal import server_busy
from tests.servicebus_emulator.types import encode

from graticule.config import Settings
from graticule.core.fault_points import Commit, Moment, Watcher
from graticule.core.ids import TaskId, WorkerId
from graticule.core.models import Task
from graticule.core.table import DatabaseRole
from graticule.messaging.ledger import DatabaseLedger
from graticule.messaging.protocol import TaskMessage
from graticule.messaging.servicebus.namespace import Namespace
from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue
from graticule.orchestrator.broker import Broker
from graticule.repositories.database import Connection, Database
from graticule.repositories.tasks import TaskRepository
from graticule.worker.app import create_worker

QUEUE: Final = "q"
JOBS: Final = "orchestrator-jobs"
_PATIENCE: Final = 15.0


class Gate:
    """Holds whoever is about to commit something, until it is opened."""

    def __init__(self, database: Database, commit: Commit) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self._committing = database.committing
        self._commit = commit

    @asynccontextmanager
    async def committing(self, commit: Commit) -> AsyncIterator[Connection]:
        """Stand in for the database's method of this name."""
        if commit is self._commit:
            self.reached.set()
            await self.opened.wait()
        async with self._committing(commit) as connection:
            yield connection


@dataclass(frozen=True)
class Bus:
    """A namespace, a database, and who talks to both."""

    emulator: Emulator
    settings: Settings
    database: TestDatabase
    orchestrators: Database
    workers: Database

    @property
    def queue(self) -> Queue:
        """The queue of tasks."""
        return self.emulator.queues[QUEUE]

    @property
    def jobs(self) -> Queue:
        """The queue of messages that ask for jobs."""
        return self.emulator.queues[JOBS]

    @asynccontextmanager
    async def broker(self, **changes: Any) -> AsyncIterator[Broker]:
        """Run the part of an orchestrator that sends tasks and takes messages."""
        broker = Broker(self.settings.model_copy(update=changes), self.orchestrators, rows.OWNER)
        async with broker.running():
            yield broker

    @asynccontextmanager
    async def receiver(
        self, worker: str = "me", *, queues: Iterable[str] = (QUEUE,), lease_seconds: float = 60, **changes: Any
    ) -> AsyncIterator[ServiceBusTaskQueue]:
        """Receive as a worker does."""
        ledger = DatabaseLedger(self.workers, self.workers, WorkerId(worker), lease_seconds)
        async with (
            Namespace(self.settings.model_copy(update=changes)) as namespace,
            ServiceBusTaskQueue(namespace, ledger, list(queues)) as queue,
        ):
            yield queue

    @asynccontextmanager
    async def worker(self, queues: Iterable[str] = (QUEUE,), **changes: Any) -> AsyncIterator[FastAPI]:
        """Run a whole worker."""
        settings = self.settings.model_copy(update={"worker_grace_seconds": 1, **changes})
        app = create_worker(settings, self.database.url(DatabaseRole.WORKER), queues=list(queues), concurrency=4)
        async with app.router.lifespan_context(app):
            yield app

    async def give(self, *task_ids: str, **changes: Any) -> list[TaskId]:
        """Write tasks that are to be sent."""
        given = [TaskId(task_id) for task_id in task_ids]
        async with self.orchestrators.connection() as connection:
            await TaskRepository(connection).insert_many(
                [rows.task(task_id, **{"queue": QUEUE, **changes}) for task_id in given]
            )
        return given

    async def task(self, task_id: str) -> Task:
        """Give the row of a task."""
        async with self.orchestrators.connection() as connection:
            return await TaskRepository(connection).get(task_id=task_id)

    async def until_sent(self, *task_ids: str) -> None:
        """Wait until the rows of tasks say that the broker has them."""
        await until(lambda: self._are_sent(task_ids))

    async def _are_sent(self, task_ids: Iterable[str]) -> bool:
        return all([(await self.task(task_id)).sent_at for task_id in task_ids])

    async def reap(self) -> None:
        """Give back what silent workers held, as an orchestrator does when the leases have run out."""
        async with self.orchestrators.connection() as connection:
            now = await connection.execute("SELECT now() + interval '1 hour' AS now")
            await TaskRepository(connection).reap_expired(((await now.fetchone()) or {})["now"])


async def received(queue: ServiceBusTaskQueue, count: int, name: str = QUEUE) -> list[TaskMessage]:
    """Receive so many messages, as soon as they come."""
    found: list[TaskMessage] = []
    async with asyncio.timeout(_PATIENCE):
        heard = queue.heard()
        found += await queue.receive(name, count)
        while len(found) < count:
            await anext(heard)
            found += await queue.receive(name, count - len(found))
    return found


async def discarded(receiver: ServiceBusTaskQueue, queue: Queue, *, left: int) -> None:
    """Receive until only so many messages are left at the broker, and see that none of the others is a task."""

    async def question() -> bool:
        assert await receiver.receive(queue.name, 10) == []
        return len(queue.messages) == left

    await until(question)


async def until(question: Callable[[], Any], seconds: float = _PATIENCE) -> None:
    """Wait until the answer is yes."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        await asyncio.sleep(0.03)


@contextmanager
def refusing(queue: Queue) -> Iterator[None]:
    """Let a queue take no messages, as one does that is full."""

    def refuse(_: Message) -> NoReturn:
        raise server_busy()

    with patch.object(queue, "put", refuse):
        yield


def failing(commit: Commit, moment: Moment, times: int = 1) -> Watcher:
    """Lose the database's answer at one place of the code, the first times that it is reached."""
    left = [True] * times

    def watcher(*reached: object) -> None:
        if reached == (commit, moment) and left and left.pop():
            raise psycopg.OperationalError("the answer was lost")

    return watcher


def put(queue: Queue, body: bytes, message_id: str | None, *, section: Section = Section.DATA) -> None:
    """Put a message into a queue of the emulator, as anyone may who can send there."""
    properties = b"" if message_id is None else encode(described(Section.PROPERTIES, [message_id]))
    queue.put(Message(id=message_id, properties=properties, rest=encode(described(section, body))))


def dead_letters(queue: Queue) -> list[Entry]:
    """Give what was set aside."""
    assert queue.dead_letters is not None
    return queue.dead_letters.messages


def twice(queue: Queue, task_id: str) -> None:
    """Put a message into its queue once more, as a sender does that heard no answer."""
    (entry,) = [each for each in queue.messages if each.id == task_id][:1]
    queue.put(entry.message)
