"""A worker of the earlier kind in the test's own process: it takes no leases and reports in the earlier shape.

The handlers and the catalog are the real ones.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from tests.conftest import TestDatabase
from tests.integration.api.running import RunningApi
from tests.integration.handlers.raster.desk import Desk

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.models import Task
from graticule.core.table import DatabaseRole
from graticule.handlers import HandlerContext
from graticule.handlers.compatibility import HANDLER_ALIASES
from graticule.handlers.context import Checkpoints, Signals
from graticule.handlers.raster.catalogue import stac_register_item
from graticule.handlers.stac.inputs import ItemInputs
from graticule.logs import get_logger
from graticule.repositories.catalogue import Document, reading
from graticule.repositories.database import Database
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import document, validated


@dataclass
class EarlierWorker:
    """Runs what waits, in any queue."""

    api: RunningApi
    desk: Desk
    database: Database
    ran: list[str] = field(default_factory=list)  # handlers, in order

    async def finish(self, job_id: JobId) -> dict[str, Any]:
        """Run the tasks of a job until it has ended, and return the job."""
        async with asyncio.timeout(100):
            while (job := await self.api.get(f"/api/v1/jobs/{job_id}"))["ended_at"] is None:
                for task in await self.api.tasks(job_id):
                    self.ran.append(task.handler)
                    await self._report(task.task_id, await self._run(task))
                await asyncio.sleep(0.02)
        return dict(job)

    async def item(self, collection_id: str, item_id: str) -> Document:
        """Return an item of the catalog."""
        async with reading(self.database) as catalog:
            item = await catalog.item(collection_id, item_id)
        assert item is not None
        return item

    async def _run(self, task: Task) -> Any:
        name, params = HANDLER_ALIASES.get(task.handler, task.handler), dict(task.params)
        if name == "echo":
            return {"echoed_params": params}
        if name == "raster.stac_register_item":
            return await self._register(task, params)
        self.desk.job_id = JobId(task.job_id)
        return await asyncio.to_thread(self.desk.run, name, **params)

    async def _register(self, task: Task, params: dict[str, Any]) -> Any:
        context = HandlerContext(
            task_id=TaskId(task.task_id),
            job_id=JobId(task.job_id),
            node_id=NodeId(task.node_id),
            retry_count=task.retry_count,
            params=validated(ItemInputs, params),
            logger=get_logger("test"),
            signals=Signals(),
            report_progress=lambda _: None,
            storage=LocalStorage(self.desk.root),
            checkpoint=cast("Checkpoints", None),  # registrations save none
            database=self.database,
        )
        result = await stac_register_item(context)
        assert result.error_message is None, result.error_message
        return orjson.loads(document(result.output))

    async def _report(self, task_id: str, output: Any) -> None:
        body = {"task_id": task_id, "status": "completed", "output": output, "worker_id": "worker-xyz"}
        answer = await self.api.client.post("/api/v1/callbacks/task-result", json=body)
        assert answer.status_code == 200, answer.text


@asynccontextmanager
async def running_worker(api: RunningApi, desk: Desk, database: TestDatabase) -> AsyncIterator[EarlierWorker]:
    """Run a worker with the rights of one in the database."""
    async with Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=2) as opened:
        yield EarlierWorker(api, desk, opened)
