"""Ours: an orchestrator and workers as processes, and jobs that are submitted and followed by the API."""

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from pydantic import JsonValue

from benchmarks import processes
from benchmarks.installation import Place
from benchmarks.machine import CoreTimes
from benchmarks.processes import Process, descendants_cpu_seconds
from graticule.client import AsyncClient, calls
from graticule.core.cancellation import end_tasks
from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.services.jobs import Submission

SAMPLE_SECONDS = 0.5
HANDLER_SECONDS = "graticule_worker_task_duration_seconds"
NO_SETTINGS: Mapping[str, str] = {}


class JobFailed(Exception):
    """A job did not complete."""


@dataclass(frozen=True)
class JobRun:
    """What a job took, from its submission to its end."""

    job_id: str
    seconds: float
    cpu_seconds: float  # of all processes of ours, the database among them
    machine: CoreTimes  # what the cores did, for whomever
    worker_peaks_mb: list[float]  # each with its child processes
    handler_seconds: dict[str, float]  # the time in which handlers ran, all workers together

    @property
    def busy_share(self) -> float:
        """The part of the cores' time in which they worked for us."""
        return self.cpu_seconds / self.machine.total

    @property
    def others_share(self) -> float:
        """The part in which they worked for others: the machine was not quiet."""
        return max(0.0, self.machine.busy / self.machine.total - self.busy_share)


class JobInstallation:
    """The processes, and the way to give them work."""

    def __init__(self, client: AsyncClient, workers: Sequence[Process]) -> None:
        self._client = client
        self._workers = workers

    async def run(self, workflow_id: str, **inputs: JsonValue) -> JobRun:
        """Submit a job, and wait for its end by its events."""
        wanted = Submission(
            workflow_id=workflow_id,
            input_params=inputs,
            idempotency_key=secrets.token_hex(8),  # the same inputs once more are another job
        )
        before = await self._handler_seconds()
        async with _watched_memory(self._workers) as peaks:
            machine, used, began = CoreTimes.now(), descendants_cpu_seconds(), time.perf_counter()
            job_id = (await self._client.send(calls.submit_job(wanted))).job.job_id
            async for _ in self._client.events(job_id):
                pass
            seconds = time.perf_counter() - began
            used, machine = descendants_cpu_seconds() - used, CoreTimes.now().since(machine)
        ended = await self._client.send(calls.get_job(job_id))
        if ended.status is not JobStatus.COMPLETED:
            raise JobFailed(f"{workflow_id} is {ended.status}: {ended.error_message}")
        after = await self._handler_seconds()
        in_handlers = {name: total - before.get(name, 0.0) for name, total in after.items()}
        return JobRun(job_id, seconds, used, machine, list(peaks), in_handlers)

    async def _handler_seconds(self) -> dict[str, float]:
        """Ask the workers how long their handlers ran, by handler."""
        found: dict[str, float] = defaultdict(float)
        async with httpx.AsyncClient(trust_env=False) as client:
            for worker in self._workers:
                text = (await client.get(f"{worker.url}/metrics")).raise_for_status().text
                for family in text_string_to_metric_families(text):
                    for sample in family.samples:
                        if sample.name == f"{HANDLER_SECONDS}_sum":
                            found[sample.labels["handler"]] += sample.value
        return found


@asynccontextmanager
async def job_installation(
    place: Place,
    storage: Path,
    *,
    workers: int,
    options: Sequence[str] = (),
    settings: Mapping[str, str] = NO_SETTINGS,
) -> AsyncIterator[JobInstallation]:
    """Run an orchestrator and so many workers until the block is left; what is stored goes to the folder `storage`."""
    key = secrets.token_urlsafe(32)
    shared = {
        "GRATICULE_HOME": str(place.home),
        "GRATICULE_STORAGE_ROOT": str(storage),
        "GRATICULE_LOG_LEVEL": "WARNING",
        **settings,
    }
    as_orchestrator = {"GRATICULE_DATABASE_URL": place.url(DatabaseRole.ORCHESTRATOR), "GRATICULE_ADMIN_KEY": key}
    as_worker = shared | {"GRATICULE_DATABASE_URL": place.url(DatabaseRole.WORKER)}
    logs = place.home / "logs"
    async with AsyncExitStack() as stack:
        orchestrator = await stack.enter_async_context(
            processes.running("orchestrator", shared | as_orchestrator, logs)
        )
        started = [
            await stack.enter_async_context(processes.running("worker", as_worker, logs, options))
            for _ in range(workers)
        ]
        client = await stack.enter_async_context(AsyncClient(orchestrator.url, api_key=key))
        yield JobInstallation(client, started)


@asynccontextmanager
async def _watched_memory(workers: Sequence[Process]) -> AsyncIterator[list[float]]:
    """Give the peaks of the workers, each with its children; the last look is taken when the block is left."""
    peaks = [0.0] * len(workers)

    def look() -> None:
        peaks[:] = [max(peak, each.peak_memory_with_children_mb()) for peak, each in zip(peaks, workers, strict=True)]

    async def watch() -> None:
        while True:
            look()
            await asyncio.sleep(SAMPLE_SECONDS)

    watching = asyncio.create_task(watch())
    try:
        yield peaks
        look()
    finally:
        await end_tasks(watching)
