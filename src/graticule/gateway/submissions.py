"""`/api/gateway/submit`: jobs of any workflow, one or many at once. Operators only."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from graticule.core.errors import Unavailable
from graticule.core.models.fields import Short
from graticule.core.permissions import Caller
from graticule.gateway.forwarding import PRINTABLE, Forward, ForwardedProblem, Forwarder, parsed
from graticule.http.callers import CallerWhoOperates
from graticule.http.problems import Problem, invalid_input, problem_of, problem_responses
from graticule.logs import get_logger
from graticule.services.jobs import JobReceipt, Submission

JOBS: Final = "/api/v1/jobs"
MOST_IN_A_BATCH: Final = 100
AT_ONCE: Final = 8

_log = get_logger(__name__)

router = APIRouter(
    prefix="/api/gateway", tags=["submissions"], responses=problem_responses(400, 401, 403, 413, 422, 429, 502, 503)
)

IdempotencyKey = Annotated[
    Short | None,
    Header(
        min_length=1, pattern=PRINTABLE, description="A second submission with the same key gives the job of the first."
    ),
]
Resubmit = Annotated[bool, Query(description="Let the job that is found go on, if it failed or was cancelled.")]


class _DocumentedAsSubmission:
    """Documents a value as the submission that it will be checked to be, each item for itself."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(Submission.__pydantic_core_schema__)


class Batch(BaseModel):
    """Jobs to submit, each for itself: one that is refused does not keep the others from being made."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    items: list[Annotated[dict[str, JsonValue], _DocumentedAsSubmission()]] = Field(
        min_length=1, max_length=MOST_IN_A_BATCH
    )


class BatchItem(BaseModel):
    """What became of one item: the job, or the problem with it."""

    index: int
    status: int = Field(description="The status that it would have had alone: 201, 200 when it was there already, …")
    job: JobReceipt | None = None
    problem: Problem | None = None


class BatchReport(BaseModel):
    """What became of a batch, in its order."""

    items: list[BatchItem]
    accepted: int
    refused: int


@router.post(
    "/submit",
    status_code=201,
    responses={
        200: {"model": JobReceipt, "description": "The job was there already."},
        **problem_responses(404, 409),
    },
)
async def submit_job(
    submission: Submission,
    forward: Forward,
    caller: CallerWhoOperates,
    response: Response,
    *,
    resubmit: Resubmit = False,
    idempotency_key: IdempotencyKey = None,
) -> JobReceipt:
    """Submit a job; 200 when an earlier submission with the same key, or the same inputs, has made it."""
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    params = {"resubmit": "true"} if resubmit else None
    answer = await forward.ask("POST", JOBS, caller=caller, body=submission, params=params, headers=headers)
    response.status_code = answer.status_code
    job = parsed(answer, JobReceipt)
    response.headers["Location"] = f"/api/status/job/{job.job_id}"
    return job


@router.post("/submit/batch")
async def submit_batch(batch: Batch, forward: Forward, caller: CallerWhoOperates) -> BatchReport:
    """Submit up to 100 jobs and tell what became of each; 503 when the orchestrator took none of them."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def submitted(index: int, item: dict[str, JsonValue]) -> BatchItem:
        async with gate:
            return await _submitted(index, item, forward, caller)

    items = await asyncio.gather(*(submitted(index, item) for index, item in enumerate(batch.items)))
    if all(item.status == 503 for item in items):
        problem = items[0].problem
        raise Unavailable(problem.detail if problem else "Nothing was submitted.", hint="Submit the batch again.")
    accepted = sum(item.job is not None for item in items)
    return BatchReport(items=items, accepted=accepted, refused=len(items) - accepted)


async def _submitted(index: int, item: dict[str, JsonValue], forward: Forwarder, caller: Caller) -> BatchItem:
    try:
        submission = Submission.model_validate(item)
        answer = await forward.ask("POST", JOBS, caller=caller, body=submission)
        return BatchItem(index=index, status=answer.status_code, job=parsed(answer, JobReceipt))
    except Exception as error:  # whatever happens to one, the others are told of
        problem = _problem_of(error)
        return BatchItem(index=index, status=problem.status, problem=problem)


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, ForwardedProblem):
        return error.problem.model_copy(update={"instance": None})
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return invalid_input("The item does not have the form that is expected here.", faults)
    problem = problem_of(error)
    if problem.status == 500:
        _log.error("an item of a batch failed", exc_info=error)
    return problem
