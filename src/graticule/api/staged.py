"""The staged form of the older API: `/api/jobs/submit/{workflow_id}`, `/api/jobs/status/{job_id}`. Operators only."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Response
from pydantic import BaseModel

from graticule.api.access import Operator, OperatorOnly
from graticule.api.jobs import IdempotencyKey, JobPath, Resubmit
from graticule.api.services import Jobs, Reader
from graticule.core.ids import JobId, WorkflowId
from graticule.core.models.fields import JsonObject, Short
from graticule.core.states import JobStatus
from graticule.http.problems import problem_responses
from graticule.services.job_reading import JobInBrief
from graticule.services.jobs import Submission

router = APIRouter(
    tags=["staged"], dependencies=[OperatorOnly], responses=problem_responses(401, 403, 404, 409, 422, 503)
)


class Accepted(BaseModel):
    """The job of a submission, and where its status is."""

    job_id: JobId
    workflow_id: WorkflowId
    status: JobStatus
    created: bool
    status_url: str


@router.post(
    "/api/jobs/submit/{workflow_id}",
    status_code=201,
    responses={200: {"model": Accepted, "description": "The job was there already."}, **problem_responses(413)},
)
async def submit(
    workflow_id: Annotated[Short, Path(description="The workflow that is to run.")],
    service: Jobs,
    operator: Operator,
    response: Response,
    *,
    input_params: Annotated[JsonObject | None, Body(examples=[{"name": "World"}])] = None,
    resubmit: Resubmit = False,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Submit a job; the body is its input parameters."""
    submission = Submission(workflow_id=workflow_id, input_params=input_params or {}, idempotency_key=idempotency_key)
    submitted = await service.submit(submission, resubmit=resubmit, actor=operator)
    response.status_code = 201 if submitted.created else 200
    job = submitted.job
    return Accepted(
        job_id=job.job_id,
        workflow_id=job.workflow_id,
        status=job.status,
        created=submitted.created,
        status_url=f"/api/jobs/status/{job.job_id}",
    )


@router.get("/api/jobs/status/{job_id}")
async def status(job_id: JobPath, reader: Reader) -> JobInBrief:
    """Tell how a job is."""
    return JobInBrief.of(await reader.job(job_id))
