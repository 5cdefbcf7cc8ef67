"""`/api/v1/callbacks`: what workers report that do not reach the database. Workers only."""

from typing import Annotated

from fastapi import APIRouter, Query

from graticule.api.access import WorkerOnly
from graticule.api.services import Results
from graticule.core.models import Checkpoint
from graticule.core.models.fields import TaskKey
from graticule.http.problems import problem_responses
from graticule.services.results import CheckpointReport, ProgressReport, Receipt, ResultReport

router = APIRouter(
    prefix="/api/v1/callbacks",
    tags=["callbacks"],
    dependencies=[WorkerOnly],
    responses=problem_responses(401, 403, 404, 413, 422, 503),
)


@router.post("/task-result")
async def task_result(report: ResultReport, results: Results) -> Receipt:
    """Take the result of a task; it counts once, and only from the worker that holds the task."""
    return await results.result(report)


@router.post("/task-progress")
async def task_progress(report: ProgressReport, results: Results) -> Receipt:
    """Note how far a task is; the answer tells the worker whether it is to go on."""
    return await results.progress(report)


@router.post("/checkpoint")
async def save_checkpoint(report: CheckpointReport, results: Results) -> Receipt:
    """Keep a phase that a task has finished."""
    return await results.checkpoint(report)


@router.get("/checkpoint")
async def last_checkpoint(task_id: Annotated[TaskKey, Query()], results: Results) -> Checkpoint | None:
    """Give what the node of a task has saved last, in whichever attempt; null when it has saved nothing."""
    return await results.last_checkpoint(task_id)
