"""A worker's row: who it is, what it serves, and that it is alive."""

import asyncio
import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from graticule import __version__
from graticule.core.errors import GraticuleError
from graticule.core.fault_points import Commit
from graticule.core.ids import WorkerId
from graticule.core.models import Worker
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.processes import WorkerRepository

_log = get_logger(__name__)


def new_worker_id() -> WorkerId:
    """Give an id that no other worker has, and that tells where to look for this one."""
    return WorkerId(f"{socket.gethostname()[:80]}-{os.getpid()}-{uuid4().hex[:8]}")


def worker_row(worker_id: WorkerId, queues: Sequence[str], handlers: Sequence[str], concurrency: int) -> Worker:
    """Give the row of this process."""
    now = datetime.now(UTC)
    return Worker(
        worker_id=worker_id,
        hostname=socket.gethostname()[:255],
        process_id=os.getpid(),
        program_version=__version__,
        queues=list(queues),
        handlers=sorted(handlers),
        concurrency=concurrency,
        started_at=now,
        heartbeat_at=now,
    )


class Presence:
    """Keeps the row."""

    def __init__(self, database: Database, row: Worker, beat_seconds: float) -> None:
        self._database = database
        self._row = row
        self._beat_seconds = beat_seconds

    async def beat_forever(self) -> None:
        """Write the row, and its heartbeat ever after."""
        pause = 0.2
        while True:
            try:
                await self._beat()
                pause = self._beat_seconds
            except GraticuleError as error:
                _log.warning("the heartbeat cannot be written", error=str(error))
                pause = min(pause * 2, self._beat_seconds)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Say that this worker has ended; if that cannot be said, the missing heartbeat tells it."""
        try:
            async with self._database.committing(Commit.WORKER_STOP) as connection:
                await WorkerRepository(connection).stop(self._row.worker_id)
        except GraticuleError as error:
            _log.warning("the worker's row could not be closed", error=str(error))

    async def _beat(self) -> None:
        async with self._database.committing(Commit.WORKER_BEAT) as connection:
            workers = WorkerRepository(connection)
            if not await workers.beat(self._row.worker_id):
                now = self._database.now()
                await workers.insert(self._row.model_copy(update={"started_at": now, "heartbeat_at": now}))
