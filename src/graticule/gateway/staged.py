"""`/api/jobs/…`: the staged form of the older API, passed on to the orchestrator. Operators only."""

from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Response
from pydantic import RootModel

from graticule.core.models.fields import JobKey, JsonObject, WorkflowKey
from graticule.gateway.forwarding import Forward, parsed
from graticule.gateway.submissions import IdempotencyKey, Resubmit
from graticule.http.callers import CallerWhoOperates
from graticule.http.problems import problem_responses
from graticule.services.staged_jobs import StagedJob, StagedReceipt

STAGED: Final = "/api/jobs"  # the same at the orchestrator

router = APIRouter(
    prefix=STAGED, tags=["staged"], responses=problem_responses(400, 401, 403, 404, 413, 422, 429, 502, 503)
)


@router.post(
    "/submit/{workflow_id}",
    status_code=201,
    responses={200: {"model": StagedReceipt, "description": "The job was there already."}, **problem_responses(409)},
)
async def submit_staged_job(
    workflow_id: Annotated[WorkflowKey, Path(description="The workflow to run.")],
    forward: Forward,
    caller: CallerWhoOperates,
    response: Response,
    *,
    input_params: Annotated[JsonObject | None, Body(examples=[{"name": "World"}])] = None,
    resubmit: Resubmit = False,
    idempotency_key: IdempotencyKey = None,
) -> StagedReceipt:
    """Submit a job; the body is its input parameters. The same ones again, of a staged workflow, are the same job."""
    answer = await forward.ask(
        "POST",
        f"{STAGED}/submit/{workflow_id}",
        caller=caller,
        body=RootModel[JsonObject](input_params or {}),
        params={"resubmit": "true"} if resubmit else None,
        headers={} if idempotency_key is None else {"Idempotency-Key": idempotency_key},
    )
    response.status_code = answer.status_code
    receipt = parsed(answer, StagedReceipt)
    response.headers["Location"] = receipt.status_url
    return receipt


@router.get("/status/{job_id}")
async def staged_job_status(
    job_id: Annotated[JobKey, Path(pattern="^[A-Za-z0-9_-]+$", description="The job.")],
    forward: Forward,
    caller: CallerWhoOperates,
) -> StagedJob:
    """Return how a job is, stage by stage."""
    return await forward.send("GET", f"{STAGED}/status/{job_id}", StagedJob, caller=caller)
