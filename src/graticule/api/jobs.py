"""`/api/v1/jobs`: submit jobs, look at them, cancel and retry them. Operators only."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from graticule.api.access import Operator, OperatorOnly
from graticule.api.diagrams import MERMAID, GraphFormat, diagram
from graticule.api.services import Jobs, Reader, Warnings
from graticule.core.errors import InvalidInput
from graticule.core.ids import NodeId
from graticule.core.models import Event, Job
from graticule.core.models.engine import EventType
from graticule.core.models.fields import JobKey, JsonObject, NodeKey, Short
from graticule.core.states import NodeStatus
from graticule.dag.graph import Graph
from graticule.http.job_filters import JOBS, WantedJobs
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.repositories.job_views import JobListItem, NodeListItem
from graticule.services.job_reading import JobDetail, NodeDetail, Timeline
from graticule.services.jobs import JobReceipt, Submission

router = APIRouter(
    prefix="/api/v1/jobs",
    tags=["jobs"],
    dependencies=[OperatorOnly],
    responses=problem_responses(401, 403, 422, 503),
)
JobPath = Annotated[JobKey, Path(description="The job.")]
IdempotencyKey = Annotated[
    Short | None, Header(description="A second submission with the same key gives the job of the first.", min_length=1)
]
Resubmit = Annotated[bool, Query(description="Let the job that is found go on, if it failed or was cancelled.")]
After = Annotated[int, Query(ge=0, lt=2**63, description="Only events with a greater id.")]


_CHILDREN: Cursors[int] = Cursors(int)
_EVENTS: Cursors[int] = Cursors(int)
_SUBMITTED = {
    200: {"model": JobReceipt, "description": "The job was there already."},
    **problem_responses(404, 409, 413),
}
_NO_SUCH_JOB = problem_responses(404)


class Retry(BaseModel):
    """From where a failed job goes on."""

    model_config = ConfigDict(extra="forbid")

    node_id: NodeKey | None = Field(None, examples=["validate"])


@router.post("", status_code=201, responses=_SUBMITTED)
async def submit(
    submission: Submission,
    service: Jobs,
    warnings: Warnings,
    operator: Operator,
    response: Response,
    *,
    resubmit: Resubmit = False,
    idempotency_key: IdempotencyKey = None,
) -> JobReceipt:
    """Submit a job; 200 when an earlier submission with the same key, or the same inputs, has made it."""
    submitted = await service.submit(_with_key(submission, idempotency_key), resubmit=resubmit, actor=operator)
    response.status_code = 201 if submitted.created else 200
    response.headers["Location"] = f"{router.prefix}/{submitted.job.job_id}"
    about = [] if submitted.job.ended_at else await warnings.about(submitted.queues)
    return JobReceipt(**dict(submitted.job), warnings=about)


def _with_key(submission: Submission, key: str | None) -> Submission:
    """Give the submission the key of the header."""
    if key is None or key == submission.idempotency_key:
        return submission
    if submission.idempotency_key is not None:
        raise InvalidInput("The header Idempotency-Key and `idempotency_key` differ.", hint="Send one of them.")
    return submission.model_copy(update={"idempotency_key": key})


@router.get("", responses=problem_responses(422))
async def list_jobs(
    wanted: WantedJobs, reader: Reader, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[JobListItem]:
    """List jobs, newest first; results are left out."""
    found = await reader.jobs(wanted, JOBS.read(cursor), limit + 1)
    return JOBS.page(found, limit, lambda job: (job.created_at, job.job_id))


@router.get("/{job_id}", responses=_NO_SUCH_JOB)
async def one_job(job_id: JobPath, reader: Reader) -> JobDetail:
    """Give one job with its progress and its result."""
    return await reader.job(job_id)


@router.get("/{job_id}/nodes", responses=_NO_SUCH_JOB)
async def list_nodes(
    job_id: JobPath,
    reader: Reader,
    *,
    parent: Annotated[NodeKey | None, Query(description="The children of this fan-out instead.")] = None,
    status: NodeStatus | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[NodeListItem]:
    """List the nodes of the workflow in graph order, or the children of a fan-out, by index and in pages."""
    if parent is None:
        return Page(items=await reader.static_nodes(job_id, status))
    after = _CHILDREN.read(cursor)
    found = await reader.children(
        job_id, parent, status=status, after_index=-1 if after is None else after, limit=limit + 1
    )
    return _CHILDREN.page(found, limit, lambda node: node.fan_out_index or 0)


@router.get("/{job_id}/nodes/{node_id}", responses=_NO_SUCH_JOB)
async def one_node(job_id: JobPath, node_id: NodeKey, reader: Reader) -> NodeDetail:
    """Give one node with its output, its attempts and its checkpoint."""
    return await reader.node(job_id, NodeId(node_id))


@router.get("/{job_id}/events", responses=_NO_SUCH_JOB)
async def list_events(
    job_id: JobPath,
    reader: Reader,
    *,
    after: After = 0,
    event_type: Annotated[list[EventType] | None, Query(description="Only events of these types.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Event]:
    """List the events of a job in order."""
    found = await reader.events(job_id, max(after, _EVENTS.read(cursor) or 0), limit + 1, event_type or ())
    return _EVENTS.page(found, limit, lambda event: event.event_id or 0)


@router.get("/{job_id}/timeline", responses=_NO_SUCH_JOB)
async def timeline(job_id: JobPath, reader: Reader) -> Timeline:
    """Give when each node was ready, dispatched, started and ended."""
    return await reader.timeline(job_id)


@router.get("/{job_id}/graph", response_model=JsonObject, responses={**MERMAID, **_NO_SUCH_JOB})
async def graph(
    job_id: JobPath, reader: Reader, shape: Annotated[GraphFormat, Query(alias="format")] = GraphFormat.JSON
) -> JsonObject | PlainTextResponse:
    """Give the graph that the job runs, whatever became of its workflow since."""
    workflow = await reader.definition(job_id)
    if shape is GraphFormat.MERMAID:
        return diagram(Graph.model_validate(workflow.definition))
    return workflow.definition


@router.post("/{job_id}/cancel", responses={202: {"model": Job, "description": "It will end."}, **_NO_SUCH_JOB})
async def cancel(job_id: JobPath, service: Jobs, operator: Operator, response: Response) -> Job:
    """End a job; one that has ended already stays as it is."""
    job = await service.cancel(job_id, actor=operator)
    response.status_code = 200 if job.ended_at is not None else 202
    return job


@router.post("/{job_id}/retry", responses=problem_responses(404, 409))
async def retry(job_id: JobPath, service: Jobs, operator: Operator, wanted: Retry | None = None) -> Job:
    """Let a failed job go on from its failed nodes, or from one node and all that is downstream of it."""
    return await service.resume(job_id, node_id=wanted.node_id if wanted else None, actor=operator)
