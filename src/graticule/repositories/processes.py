"""The processes that run: one row and one heartbeat each."""

from datetime import datetime
from typing import ClassVar

from graticule.core.ids import OwnerId, WorkerId
from graticule.core.models import Orchestrator, Worker
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries

QUERIES = load_queries("processes.sql")


class OrchestratorRepository(Repository[Orchestrator]):
    """Reads and writes the rows of orchestrators."""

    model = Orchestrator
    subject: ClassVar = "orchestrator"
    queries: ClassVar = QUERIES

    async def beat(self, owner_id: OwnerId) -> bool:
        """Write a heartbeat by the database's clock; False when the row is gone or was closed."""
        return await self._execute("beat_orchestrator", {"owner_id": owner_id}) == 1

    async def rejoin(self, owner_id: OwnerId) -> bool:
        """Open the row of an instance again that was taken for dead; False when there is none."""
        return await self._execute("rejoin_orchestrator", {"owner_id": owner_id}) == 1

    async def stop(self, owner_id: OwnerId, now: datetime) -> bool:
        """Close the row of an instance that ends."""
        return await self._execute("stop_orchestrator", {"owner_id": owner_id, "now": now}) == 1

    async def running(self) -> list[Orchestrator]:
        """Give the instances that did not stop, oldest first."""
        return await self._all("running_orchestrators", {})


class WorkerRepository(Repository[Worker]):
    """Reads and writes the rows of workers."""

    model = Worker
    subject: ClassVar = "worker"
    queries: ClassVar = QUERIES

    async def beat(self, worker_id: WorkerId) -> bool:
        """Write a heartbeat; False when the row is gone or was closed."""
        return await self._execute("beat_worker", {"worker_id": worker_id}) == 1

    async def announce(self, row: Worker, now: datetime) -> None:
        """Write a heartbeat, and the row of a worker that has none yet."""
        if not await self.beat(row.worker_id):
            await self.insert(row.model_copy(update={"started_at": now, "heartbeat_at": now}))

    async def stop(self, worker_id: WorkerId) -> bool:
        """Close the row of a worker that ends."""
        return await self._execute("stop_worker", {"worker_id": worker_id}) == 1

    async def running(self) -> list[Worker]:
        """Give the workers that did not stop, oldest first."""
        return await self._all("running_workers", {})

    async def silent(self, seconds: float, long_seconds: float) -> list[Worker]:
        """Give those that did not stop and have said nothing for some seconds, but for those long gone."""
        return await self._all("silent_workers", {"seconds": seconds, "long_seconds": long_seconds})
