"""`/api/admin/…`: how the installation is, as the gateway sees it. Operators only."""

import asyncio
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, JsonValue

from graticule.core.errors import GraticuleError
from graticule.core.models import Event
from graticule.core.states import JobStatus
from graticule.gateway.proxy import ProxyHealth, TheProxy
from graticule.gateway.services import ForOperators, Jobs, Statistics, TheSettings
from graticule.http.callers import CallerWhoOperates
from graticule.http.job_filters import JOBS
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.repositories.job_views import JobFilter, JobListItem
from graticule.repositories.operations import OrchestratorNow, ProcessState, WorkerNow
from graticule.services.readiness import ReadinessService
from graticule.services.statistics import StatisticsService

ACTIVE: Final = (JobStatus.PENDING, JobStatus.RUNNING)

router = APIRouter(prefix="/api/admin", tags=["admin"], responses=problem_responses(401, 403, 422, 429, 503))

_EVENTS: Final[Cursors[int]] = Cursors(Annotated[int, Query(ge=0, lt=2**63)])


class DatabaseHealth(BaseModel):
    """Whether the database and its schema are there."""

    ok: bool
    detail: dict[str, JsonValue] = Field(default_factory=dict)
    reason: str | None = None


class InstallationHealth(BaseModel):
    """All processes, as the database and their probes tell of them."""

    status: Literal["healthy", "unhealthy"] = Field(
        description="Healthy: database and targets answer, and there is a live orchestrator and a live worker."
    )
    database: DatabaseHealth
    orchestrators: list[OrchestratorNow]
    workers: list[WorkerNow]
    targets: ProxyHealth


@router.get("/health")
async def health(
    request: Request, statistics: Statistics, proxy: TheProxy, caller: CallerWhoOperates
) -> InstallationHealth:
    """Tell how the database, the orchestrators, the workers and the targets are; always 200, see `status`."""
    database, targets = await asyncio.gather(_database(request.app.state.readiness), proxy.health())
    orchestrators, workers = await _processes(statistics) if database.ok else ([], [])
    alive = all(any(each.state is ProcessState.ALIVE for each in found) for found in (orchestrators, workers))
    return InstallationHealth(
        status="healthy" if database.ok and alive and targets.status == "healthy" else "unhealthy",
        database=database,
        orchestrators=orchestrators,
        workers=workers,
        targets=targets,
    )


@router.get("/config")
async def config(settings: TheSettings, caller: CallerWhoOperates) -> dict[str, JsonValue]:
    """Give the gateway's settings; secrets are masked."""
    return settings.shown()


@router.get("/active-jobs")
async def active_jobs(
    jobs: Jobs, caller: CallerWhoOperates, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[JobListItem]:
    """List the jobs that are pending or running, newest first."""
    before = JOBS.read(cursor)
    found = [job for status in ACTIVE for job in await jobs.jobs(JobFilter(status=status), before, limit + 1)]
    found.sort(key=lambda job: (job.created_at, job.job_id), reverse=True)
    return JOBS.page(found, limit, lambda job: (job.created_at, job.job_id))


@router.get("/recent-events")
async def recent_events(
    reader: ForOperators, caller: CallerWhoOperates, *, limit: Limit = 100, cursor: Cursor = None
) -> Page[Event]:
    """List the events of all jobs and assets, newest first."""
    found = await reader.newest_events(_EVENTS.read(cursor), limit + 1)
    return _EVENTS.page(found, limit, lambda event: event.event_id or 0)


async def _database(readiness: ReadinessService) -> DatabaseHealth:
    try:
        return DatabaseHealth(ok=True, detail={**await readiness.database(), **await readiness.schema()})
    except GraticuleError as error:
        return DatabaseHealth(ok=False, reason=str(error))


async def _processes(statistics: StatisticsService) -> tuple[list[OrchestratorNow], list[WorkerNow]]:
    return await statistics.orchestrators(), await statistics.workers()
