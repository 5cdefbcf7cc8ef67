"""Orchestrators of a test: each with its own connections and its loop, and a worker that runs functions."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from tests.conftest import TestDatabase
from tests.integration.services.engine import QUEUE, Bench

from graticule.config import Settings
from graticule.core.channels import queue_channel
from graticule.core.ids import JobId, WorkerId
from graticule.core.states import JobStatus, ResultStatus
from graticule.core.table import DatabaseRole
from graticule.orchestrator.loop import OrchestratorLoop
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener, listening
from graticule.repositories.tasks import ClaimedTask, Delivery, FinishedTask, TaskRepository
from graticule.services.step_reading import Wake

NEVER = 3600.0
ROLE = DatabaseRole.ORCHESTRATOR
# Nothing but notifications moves an instance, unless a test says otherwise.
ONLY_NOTIFIED = {
    "orchestrator_poll_interval": NEVER,
    "heartbeat_interval_seconds": NEVER,
    "orphan_scan_interval_seconds": NEVER,
}
Handler = Callable[[ClaimedTask], JsonValue]


class Instance(Bench):
    """An orchestrator."""

    def __init__(self, pool: Database, url: str, folder: Path, *workflows: str, owner: str, **settings: Any) -> None:
        super().__init__(pool, folder, *workflows, owner=owner)
        self.settings = Settings().model_copy(update={**ONLY_NOTIFIED, **settings})
        self.loop = OrchestratorLoop(self.settings, pool, url, self.steps, self.jobs)
        self.batches: list[set[JobId]] = []
        self._record_batches()

    def _record_batches(self) -> None:
        advance = self.steps.advance

        async def recorded(wakes: dict[JobId, Wake]) -> Any:
            self.batches.append(set(wakes))
            return await advance(wakes)

        self.steps.advance = recorded  # type: ignore[method-assign, assignment]

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Instance"]:
        """Run the loop, and go on once it is a member."""
        async with self.loop.running():
            async with asyncio.timeout(20):
                await self.loop._joined.wait()
            yield self

    def vanishes(self) -> None:
        """Let the end of the loop be a sudden one: nothing is handed over."""
        self.loop._leave = _nothing  # type: ignore[method-assign]

    def looks_away(self) -> None:
        """Let the loop know only what it is told: its look at the beginning may find the same jobs once more."""
        self.loop._look_around = _nothing  # type: ignore[method-assign]

    async def ended(self, *job_ids: JobId) -> list[JobStatus]:
        """Wait until jobs have ended, and give how."""

        async def all_ended() -> bool:
            return all([(await self.job(job_id)).ended_at is not None for job_id in job_ids])

        await until(all_ended)
        return [await self.status(job_id) for job_id in job_ids]


async def _nothing() -> None:
    return


async def until(condition: Callable[[], Awaitable[object]], seconds: float = 20) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - rows give no signal
            await asyncio.sleep(0.01)


@asynccontextmanager
async def working(database: TestDatabase, handler: Handler, queue: str = QUEUE) -> AsyncIterator[None]:
    """Run a worker that answers each task with what a function gives, or fails it with what it raises."""
    async with Database(database.url(ROLE), ROLE, pool_size=1) as pool:
        task = asyncio.create_task(_work(pool, database.url(ROLE), handler, queue))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _work(pool: Database, url: str, handler: Handler, queue: str) -> None:
    worker = WorkerId("worker-1")
    async with listening(Listener(url, ROLE, [queue_channel(queue)])) as heard:
        async for _ in heard:
            async with pool.connection() as connection:
                tasks = TaskRepository(connection)
                while claimed := await tasks.claim(worker, queue, 100, 60):
                    await tasks.finish(worker, [_finished(task, handler) for task in claimed])


def _finished(task: ClaimedTask, handler: Handler) -> FinishedTask:
    delivery = Delivery(task.task_id, task.delivery_count)
    try:
        return FinishedTask(delivery, ResultStatus.COMPLETED, output=json.dumps(handler(task)))
    except LookupError as error:  # a failure that is no mistake of the test
        return FinishedTask(delivery, ResultStatus.FAILED, error_message=str(error))
