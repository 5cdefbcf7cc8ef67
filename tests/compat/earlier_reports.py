"""A worker of the earlier kind in the test's own process: it takes no leases and reports in the earlier shape.

The handlers are the real ones. Only the catalogue is left out.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.integration.api.running import RunningApi
from tests.integration.handlers.raster.desk import Desk

from graticule.core.ids import JobId
from graticule.handlers.compatibility import HANDLER_ALIASES
from graticule.handlers.stac.inputs import ItemInputs

REGISTER = "raster.stac_register_item"


@dataclass
class EarlierWorker:
    """Runs what waits, in any queue."""

    api: RunningApi
    desk: Desk
    ran: list[str] = field(default_factory=list)  # handlers, in order

    async def finish(self, job_id: JobId) -> dict[str, Any]:
        """Run the tasks of a job until it has ended, and return the job."""
        async with asyncio.timeout(100):
            while (job := await self.api.get(f"/api/v1/jobs/{job_id}"))["ended_at"] is None:
                for task in await self.api.tasks(job_id):
                    self.ran.append(task.handler)
                    output = await asyncio.to_thread(self._run, job_id, task.handler, dict(task.params))
                    await self._report(task.task_id, output)
                await asyncio.sleep(0.02)
        return dict(job)

    def _run(self, job_id: JobId, handler: str, params: dict[str, Any]) -> Any:
        name = HANDLER_ALIASES.get(handler, handler)
        if name == REGISTER:
            given = ItemInputs.model_validate(params)
            return {"stac_item_id": given.stac_item_id, "stac_collection_id": given.stac_collection_id}
        if name == "echo":
            return {"echoed_params": params}
        self.desk.job_id = job_id
        return self.desk.run(name, **params)

    async def _report(self, task_id: str, output: Any) -> None:
        body = {"task_id": task_id, "status": "completed", "output": output, "worker_id": "worker-xyz"}
        answer = await self.api.client.post("/api/v1/callbacks/task-result", json=body)
        assert answer.status_code == 200, answer.text
