"""`/api/status/…`: jobs, nodes, events and numbers, read from the database. Operators only.

It works with every orchestrator down.
"""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query

from graticule.core.errors import InvalidInput
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.core.models.fields import AssetKey, JobKey, NodeKey, Short
from graticule.core.states import NodeStatus
from graticule.gateway.services import ForOperators, Jobs, Statistics
from graticule.http.callers import CallerWhoOperates
from graticule.http.job_filters import JOBS, WantedJobs
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.repositories.job_views import JobListItem, NodeListItem
from graticule.repositories.operator_views import LookupKey
from graticule.services import statistics
from graticule.services.job_reading import JobDetail
from graticule.services.operator_reading import Lookup

router = APIRouter(prefix="/api/status", tags=["status"], responses=problem_responses(401, 403, 422, 429, 503))

JobPath = Annotated[JobKey, Path(description="The job.")]

_CHILDREN: Final[Cursors[int]] = Cursors(Annotated[int, Query(ge=0, lt=2**31)])
_EVENTS: Final[Cursors[int]] = Cursors(Annotated[int, Query(ge=0, lt=2**63)])
_NO_SUCH_JOB: Final = problem_responses(404)


@router.get("/job/{job_id}", responses=_NO_SUCH_JOB)
async def one_job(job_id: JobPath, jobs: Jobs, caller: CallerWhoOperates) -> JobDetail:
    """Give one job with its progress and its result."""
    return await jobs.job(job_id)


@router.get("/job/{job_id}/nodes", responses=_NO_SUCH_JOB)
async def list_nodes(
    job_id: JobPath,
    jobs: Jobs,
    caller: CallerWhoOperates,
    *,
    parent: Annotated[NodeKey | None, Query(description="The children of this fan-out instead.")] = None,
    status: NodeStatus | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[NodeListItem]:
    """List the nodes of the workflow in graph order, or the children of a fan-out, by index and in pages."""
    if parent is None:
        return Page(items=await jobs.static_nodes(job_id, status))
    after = _CHILDREN.read(cursor)
    found = await jobs.children(
        job_id, parent, status=status, after_index=-1 if after is None else after, limit=limit + 1
    )
    return _CHILDREN.page(found, limit, lambda node: node.fan_out_index or 0)


@router.get("/job/{job_id}/events", responses=_NO_SUCH_JOB)
async def list_events(
    job_id: JobPath,
    jobs: Jobs,
    caller: CallerWhoOperates,
    *,
    event_type: Annotated[list[EventType] | None, Query(description="Only events of these types.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Event]:
    """List the events of a job in order."""
    found = await jobs.events(job_id, _EVENTS.read(cursor) or 0, limit + 1, event_type or ())
    return _EVENTS.page(found, limit, lambda event: event.event_id or 0)


@router.get("/jobs")
async def list_jobs(
    wanted: WantedJobs, jobs: Jobs, caller: CallerWhoOperates, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[JobListItem]:
    """List jobs, newest first; results are left out."""
    found = await jobs.jobs(wanted, JOBS.read(cursor), limit + 1)
    return JOBS.page(found, limit, lambda job: (job.created_at, job.job_id))


@router.get("/stats")
async def stats(service: Statistics, caller: CallerWhoOperates) -> statistics.Statistics:
    """Give the numbers of now and of the last days."""
    return await service.statistics()


@router.get("/lookup")
async def lookup(
    reader: ForOperators,
    caller: CallerWhoOperates,
    *,
    request_id: UUID | None = None,
    asset_id: AssetKey | None = None,
    correlation_id: Annotated[Short | None, Query(min_length=1)] = None,
    idempotency_key: Annotated[Short | None, Query(min_length=1)] = None,
) -> Lookup:
    """Find work orders and jobs by one of these keys; what is not there gives empty lists."""
    given = (request_id, asset_id, correlation_id, idempotency_key)
    if sum(each is not None for each in given) != 1:
        raise InvalidInput(
            "Name one of request_id, asset_id, correlation_id and idempotency_key.", hint="One of them, and one only."
        )
    return await reader.lookup(LookupKey(*given))
