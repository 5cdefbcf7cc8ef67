"""The rows of workers that do not reach the database: they say by HTTP that they are there."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from graticule.core.fault_points import Commit
from graticule.core.models import Worker
from graticule.core.models.fields import Label, Name, Short, WorkerKey
from graticule.repositories.database import Database
from graticule.repositories.processes import WorkerRepository


class WorkerPresence(BaseModel):
    """A worker as it tells of itself."""

    model_config = ConfigDict(frozen=True)

    worker_id: WorkerKey = Field(min_length=1, examples=["worker-1-7-0f3a9c21"])
    hostname: Label
    process_id: Annotated[int, Field(ge=0, le=2**31 - 1)]
    program_version: Name
    queues: list[Short] = Field(max_length=1000)
    handlers: list[Name] = Field(default_factory=list, max_length=10_000)
    concurrency: Annotated[int, Field(ge=1, le=1000)]
    stopped: bool = Field(False, description="It ends, and its row is closed.")


class PresenceService:
    """Keeps the rows of workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, worker: WorkerPresence) -> None:
        """Note that a worker is there, or that it ends."""
        if worker.stopped:
            async with self._database.committing(Commit.WORKER_STOP) as connection:
                await WorkerRepository(connection).stop(worker.worker_id)
            return
        now = self._database.now()
        row = Worker(**worker.model_dump(exclude={"stopped"}), started_at=now, heartbeat_at=now)
        async with self._database.committing(Commit.WORKER_BEAT) as connection:
            await WorkerRepository(connection).announce(row, now)
