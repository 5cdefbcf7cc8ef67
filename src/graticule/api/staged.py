"""The staged form of the older API: `/api/jobs/submit/{workflow_id}`, `/api/jobs/status/{job_id}`. Operators only."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Body, Path, Response

from graticule.api.access import Operator, OperatorOnly
from graticule.api.jobs import IdempotencyKey, JobPath, Resubmit
from graticule.api.services import Jobs, Staged, Warnings
from graticule.core.models.fields import JsonObject, Short
from graticule.core.states import JobStatus
from graticule.http.problems import problem_responses
from graticule.services.jobs import Submission
from graticule.services.staged_jobs import STATUSES, StagedJob, StagedReceipt

router = APIRouter(
    tags=["staged"], dependencies=[OperatorOnly], responses=problem_responses(401, 403, 404, 409, 422, 503)
)


@router.post(
    "/api/jobs/submit/{workflow_id}",
    status_code=201,
    responses={200: {"model": StagedReceipt, "description": "The job was there already."}, **problem_responses(413)},
)
async def submit(
    workflow_id: Annotated[Short, Path(description="The workflow that is to run.")],
    *,
    service: Jobs,
    staged: Staged,
    warnings: Warnings,
    operator: Operator,
    response: Response,
    input_params: Annotated[JsonObject | None, Body(examples=[{"name": "World"}])] = None,
    resubmit: Resubmit = False,
    idempotency_key: IdempotencyKey = None,
) -> StagedReceipt:
    """Submit a job; the body is its input parameters. The same ones again, of a staged workflow, are the same job."""
    submission = Submission(workflow_id=workflow_id, input_params=input_params or {}, idempotency_key=idempotency_key)
    submitted = await service.submit(submission, resubmit=resubmit, actor=operator)
    response.status_code = 201 if submitted.created else 200
    job = submitted.job
    return StagedReceipt(
        job_id=job.job_id,
        workflow_id=job.workflow_id,
        job_type=job.workflow_id,
        status=STATUSES[JobStatus.PENDING if submitted.created else job.status],
        created=submitted.created,
        queue=staged.queue,
        message_id=job.job_id,
        status_url=f"/api/jobs/status/{job.job_id}",
        created_at=job.created_at,
        warnings=[] if job.ended_at else await warnings.about(submitted.queues),
    )


@router.get("/api/jobs/status/{job_id}")
async def status(job_id: JobPath, staged: Staged) -> StagedJob:
    """Return how a job is, stage by stage."""
    return await staged.job(job_id, datetime.now(UTC))
