"""Warnings about queues without workers, and the events of nodes that wait for one."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from graticule.core.errors import GraticuleError
from graticule.core.ids import JobId, OwnerId
from graticule.core.worker_command import missing_worker, worker_command
from graticule.dag.graph import Graph
from graticule.repositories.database import Database
from graticule.repositories.job_views import JobViews
from graticule.repositories.unserved_queues import UnservedQueueRepository, WaitingTask

WAITING_SECONDS: Final = 60.0
SERVED_HOLDS_SECONDS: Final = 5.0
MAX_TASKS: Final = 1000  # that are looked at together
FULL_LOOK_SECONDS: Final = 60.0
FULL_LOOK_SHARE: Final = 20  # a full look begins no sooner than so many times as long as the last one took
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


def queues_of(graph: Graph) -> frozenset[str]:
    """Return the queues that a workflow sends tasks to."""
    return frozenset(node.task.queue for node in graph.nodes.values() if node.task is not None)


class QueueWarnings:
    """Tells submitters of queues that no live worker serves, by what was read a few seconds ago."""

    def __init__(self, database: Database, *, threshold_seconds: float) -> None:
        self._database = database
        self._threshold = threshold_seconds
        self._served: frozenset[str] = frozenset()
        self._read_at: float | None = None

    async def about(self, queues: frozenset[str]) -> list[str]:
        """Return one sentence for each queue without a worker."""
        if queues and self._is_outdated():
            try:
                await self._read()
            except GraticuleError:  # the job is made, and that is what counts
                return []
        return [missing_worker(queue) for queue in sorted(queues - self._served)]

    async def about_job(self, job_id: JobId) -> list[str]:
        """Return one sentence for each queue without a worker that a job sends tasks to."""
        try:
            async with self._database.connection() as connection:
                workflow = await JobViews(connection).definition(job_id)
            queues = frozenset[str]() if workflow is None else queues_of(Graph.model_validate(workflow.definition))
        except (GraticuleError, ValidationError):  # it is away, or of a newer release; the submission is accepted
            return []
        return await self.about(queues)

    def _is_outdated(self) -> bool:
        return self._read_at is None or asyncio.get_running_loop().time() - self._read_at > SERVED_HOLDS_SECONDS

    async def _read(self) -> None:
        async with self._database.connection() as connection:
            self._served = await UnservedQueueRepository(connection).served(self._threshold)
        self._read_at = asyncio.get_running_loop().time()


class WaitingNodes:
    """Writes an event for each node that has waited for a worker for a minute.

    Most looks are at tasks that became available since the last one. Tasks that a dead worker gave back, and those of a
    job that has come from another owner, are among the earlier ones: every now and then, all are looked at again.
    """

    def __init__(self, database: Database, owner_id: OwnerId, *, threshold_seconds: float) -> None:
        self._database = database
        self._owner_id = owner_id
        self._threshold = threshold_seconds
        self._seen: dict[str, datetime] = {}  # by queue: since when the last task has waited that was looked at
        self._full_look_at = 0.0

    async def note(self) -> int:
        """Look at the queues without workers, and return how many events were written."""
        clock = asyncio.get_running_loop().time
        began = clock()
        is_full = began >= self._full_look_at
        async with self._database.connection() as connection:
            unserved = await UnservedQueueRepository(connection).unserved(self._threshold)
        known = {} if is_full else self._seen
        self._seen = {queue: known.get(queue, _BEGINNING) for queue in unserved}
        events = sum([await self._note_queue(queue) for queue in unserved])
        if is_full:
            self._full_look_at = began + max(FULL_LOOK_SECONDS, FULL_LOOK_SHARE * (clock() - began))
        return events

    async def _note_queue(self, queue: str) -> int:
        events, since, until = 0, self._seen[queue], self._database.now() - timedelta(seconds=WAITING_SECONDS)
        after, seen = None, since
        while tasks := await self._next(queue, since, until, after):
            async with self._database.connection() as connection:
                rows = UnservedQueueRepository(connection)
                events += await rows.note(self._owner_id, queue, tasks, worker_command(queue), self._database.now())
            after, seen = tasks[-1], max(seen, *(task.available_at for task in tasks))
        self._seen[queue] = seen
        return events

    async def _next(self, queue: str, since: datetime, until: datetime, after: WaitingTask | None) -> list[WaitingTask]:
        async with self._database.connection() as connection:
            rows = UnservedQueueRepository(connection)
            return await rows.waiting(queue, since, until, after=after, limit=MAX_TASKS)
