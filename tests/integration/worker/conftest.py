"""A worker on a real database, and the tasks that it is given."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.worker import hostile
from tests.servicebus_emulator import Emulator, QueueOptions

from graticule.config import Settings, Transport
from graticule.core.ids import JobId, TaskId
from graticule.core.models import Checkpoint, Task, TaskResult
from graticule.core.states import ResultStatus
from graticule.core.table import DatabaseRole
from graticule.orchestrator.broker import Broker
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import TaskRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.worker.app import create_worker

QUEUE = "tasks"
JOB = JobId("job")
REPOSITORY = Path(hostile.__file__).parents[3]
StartWorker = Callable[..., AbstractAsyncContextManager[FastAPI]]


class Board:
    """What the orchestrator would do: it gives tasks out and sees what comes back."""

    def __init__(self, connection: Connection, announce: Callable[[], None]) -> None:
        self._connection = connection
        self._announce = announce
        self._tasks = TaskRepository(connection)
        self._number = 0

    async def give(self, handler: str, task_id: str | None = None, **changes: Any) -> TaskId:
        """Queue a task, with what is not a column as its parameters."""
        self._number += 1
        columns = {name: changes.pop(name) for name in list(changes) if name in Task.model_fields}
        values = {"node_id": f"n{self._number}", "queue": QUEUE, "params": changes, **columns}
        chosen = TaskId(task_id or f"task_{self._number}")
        async with self._connection.transaction():
            await self._tasks.insert(rows.task(chosen, handler=handler, **values))
            await self._tasks.notify([QUEUE])
        self._announce()
        return chosen

    async def ended(self, task_id: TaskId, seconds: float = 30) -> TaskResult:
        """Wait for a task's result."""
        result: TaskResult = await self.until(
            lambda: self._first(lambda each: each.task_id == task_id and each.status is not ResultStatus.RUNNING),
            f"a result of {task_id}",
            seconds,
        )
        return result

    async def run(self, handler: str, **changes: Any) -> TaskResult:
        """Queue a task and wait for its result."""
        return await self.ended(await self.give(handler, **changes))

    async def reports(self, task_id: TaskId) -> list[TaskResult]:
        """Give all that was said of a task."""
        return [each for each in await ResultRepository(self._connection).unprocessed(JOB) if each.task_id == task_id]

    async def task(self, task_id: TaskId) -> Task:
        return await self._tasks.get(task_id=task_id)

    async def checkpoint(self, node_id: str) -> Checkpoint | None:
        return await CheckpointRepository(self._connection).find(job_id=JOB, node_id=node_id)

    async def withdraw(self, task_id: TaskId, *, tell: bool = True) -> None:
        """Do what an orchestrator does when a job is cancelled."""
        async with self._connection.transaction():
            await self._connection.execute(
                "UPDATE dagapp.dag_tasks SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL"
                " WHERE task_id = %s",
                [task_id],
            )
            if tell:
                await self._connection.execute("SELECT pg_notify('graticule_cancel', 'job')")

    async def steal(self, task_id: TaskId) -> None:
        """Let another worker hold the task."""
        await self._connection.execute(
            "UPDATE dagapp.dag_tasks SET leased_by = 'thief', delivery_count = delivery_count + 1 WHERE task_id = %s",
            [task_id],
        )

    async def leased(self, task_id: TaskId) -> Task:
        task: Task = await self.until(lambda: self._in_status(task_id, "leased"), f"{task_id} in a worker's hands")
        return task

    async def until(self, question: Callable[[], Any], what: str, seconds: float = 30) -> Any:
        """Ask until the answer is something."""
        deadline, pause = time.monotonic() + seconds, 0.02
        while True:
            answer = question()
            answer = await answer if inspect.isawaitable(answer) else answer
            if answer:
                return answer
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
            await asyncio.sleep(pause)
            pause = min(1.3 * pause, 0.08)  # to ask costs processor time that the worker needs

    async def _first(self, fits: Callable[[TaskResult], bool]) -> TaskResult | None:
        return next(filter(fits, await ResultRepository(self._connection).unprocessed(JOB, limit=100_000)), None)

    async def _in_status(self, task_id: TaskId, status: str) -> Task | None:
        task = await self.task(task_id)
        return task if task.status == status else None


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@dataclass(frozen=True)
class Carrier:
    """What carries tasks to the workers of a test."""

    settings: dict[str, Any] = field(default_factory=dict)
    announce: Callable[[], None] = lambda: None
    emulator: Emulator | None = None


@pytest.fixture
def transport() -> Transport:
    """Name the transport; `on_both_transports` runs a test on each."""
    return Transport.POSTGRES


on_both_transports = pytest.mark.parametrize("transport", list(Transport))


@pytest.fixture
async def carrier(transport: Transport, pool: Database, tmp_path: Path) -> AsyncIterator[Carrier]:
    """Give the transport: for a broker, that and the part of an orchestrator that sends tasks to it."""
    if transport is Transport.POSTGRES:
        yield Carrier()
        return
    queues = dict.fromkeys((QUEUE, "orchestrator-jobs"), QueueOptions(lock_seconds=300))
    async with Emulator(queues) as emulator:
        settings = {"transport": transport, "service_bus_connection_string": emulator.connection_string}
        broker = Broker(Settings(home=tmp_path, orchestrator_poll_interval=0.2, **settings), pool, rows.OWNER)  # type: ignore[arg-type]
        async with broker.running():
            yield Carrier(settings, broker.announce, emulator)


@pytest.fixture
async def board(connection: Connection, carrier: Carrier) -> Board:
    await WorkflowRepository(connection).insert(rows.workflow())
    await JobRepository(connection).insert(rows.job(JOB, owner_id=rows.OWNER, owner_epoch=1))
    return Board(connection, carrier.announce)


@pytest.fixture
def start_worker(
    database: TestDatabase, carrier: Carrier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StartWorker:
    """Start a worker of the test's own queue; it stops at the end of the block."""
    monkeypatch.syspath_prepend(str(REPOSITORY))  # child processes import the tests' handlers

    @asynccontextmanager
    async def start(concurrency: int = 8, **settings: Any) -> AsyncIterator[FastAPI]:
        given = Settings(home=tmp_path, **{"worker_grace_seconds": 1, **carrier.settings, **settings})
        app = create_worker(given, database.url(DatabaseRole.WORKER), queues=[QUEUE], concurrency=concurrency)
        async with app.router.lifespan_context(app):
            yield app

    return start


@pytest.fixture
async def worker(board: Board, start_worker: StartWorker) -> AsyncIterator[FastAPI]:
    """Give a running worker."""
    async with start_worker() as app:
        yield app


def text_of(file: Path) -> str:
    """Give what a handler has written, or nothing so far."""
    return file.read_text() if file.exists() else ""


def is_gone(pid: str) -> bool:
    """Tell whether a process has ended."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or " Z " in status.read_text()
