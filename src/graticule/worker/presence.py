"""A worker's row: who it is, what it serves, and that it is alive."""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from graticule import __version__
from graticule.core.errors import GraticuleError
from graticule.core.fault_points import Commit
from graticule.core.ids import WorkerId
from graticule.core.models import Worker
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.processes import WorkerRepository
from graticule.worker.callbacks.client import CallbackClient

_TOLD: Final = ("worker_id", "hostname", "process_id", "program_version", "queues", "handlers", "concurrency")
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


class Presence(ABC):
    """Keeps the row."""

    def __init__(self, row: Worker, beat_seconds: float) -> None:
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
            await self._stop()
        except GraticuleError as error:
            _log.warning("the worker's row could not be closed", error=str(error))

    @abstractmethod
    async def _beat(self) -> None:
        """Write the heartbeat, the first time with the row."""

    @abstractmethod
    async def _stop(self) -> None:
        """Close the row."""


class DatabasePresence(Presence):
    """Keeps the row in the database."""

    def __init__(self, database: Database, row: Worker, beat_seconds: float) -> None:
        super().__init__(row, beat_seconds)
        self._database = database

    async def _beat(self) -> None:
        async with self._database.committing(Commit.WORKER_BEAT) as connection:
            await WorkerRepository(connection).announce(self._row, self._database.now())

    async def _stop(self) -> None:
        async with self._database.committing(Commit.WORKER_STOP) as connection:
            await WorkerRepository(connection).stop(self._row.worker_id)


class HttpPresence(Presence):
    """Keeps the row by way of an orchestrator."""

    def __init__(self, client: CallbackClient, row: Worker, beat_seconds: float) -> None:
        super().__init__(row, beat_seconds)
        self._client = client
        self._told = row.model_dump(include=set(_TOLD))

    async def _beat(self) -> None:
        await self._client.ask("worker", self._told)

    async def _stop(self) -> None:
        await self._client.ask("worker", {**self._told, "stopped": True})
