"""`/api/v1/callbacks`: what workers ask and tell that do not reach the database. Workers only."""

from typing import Annotated

from fastapi import APIRouter, Query

from graticule.api.access import WorkerOnly
from graticule.api.services import Leases, Presences, Results
from graticule.core.models import Checkpoint
from graticule.core.models.fields import TaskKey
from graticule.http.problems import problem_responses
from graticule.services.leases import (
    GivenBack,
    HeldTasks,
    LeaseStates,
    SetAside,
    SetAsideReceipt,
    TakenTasks,
    TaskIds,
    WantedTasks,
)
from graticule.services.presence import WorkerPresence
from graticule.services.results import (
    BatchReceipt,
    CheckpointReport,
    ProgressReport,
    Receipt,
    ResultBatch,
    ResultReport,
)

router = APIRouter(
    prefix="/api/v1/callbacks",
    tags=["callbacks"],
    dependencies=[WorkerOnly],
    responses=problem_responses(401, 403, 404, 413, 422, 503),
)


@router.post("/task-result", responses=problem_responses(409))
async def task_result(report: ResultReport, results: Results) -> Receipt:
    """Take the result of a task. It counts once, and only from the worker that holds the task; else the answer is 409.

    The same result again is accepted and changes nothing; a different one is refused.

    A worker that names no `delivery_count` need not have asked for a lease: its first report of a task that waits takes
    it. The result may also be written as `success`, `output` and `error_message`.
    """
    return await results.result(report)


@router.post("/task-results")
async def task_results(batch: ResultBatch, results: Results) -> BatchReceipt:
    """Take the results of several tasks of a worker; each counts by itself, as if it had come alone."""
    return await results.results(batch)


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


@router.post("/leases")
async def take_leases(wanted: WantedTasks, leases: Leases) -> TakenTasks:
    """Lease tasks whose messages a worker has received; asked again, it is told the same of those that it holds."""
    return await leases.take(wanted)


@router.post("/leases/renew")
async def renew_leases(held: HeldTasks, leases: Leases) -> LeaseStates:
    """Prolong leases; the answer also tells of tasks whose jobs were cancelled."""
    return await leases.renew(held)


@router.post("/leases/give-back")
async def give_leases_back(given: GivenBack, leases: Leases) -> TaskIds:
    """Let others run tasks that a worker holds; asked again, none of them is held any more."""
    return await leases.give_back(given)


@router.post("/leases/dead-letter")
async def dead_letter(given: SetAside, leases: Leases) -> SetAsideReceipt:
    """Set a task aside that nobody can run: its node fails for good, with the reason."""
    return await leases.dead_letter(given)


@router.post("/worker", status_code=204, responses=problem_responses(409))
async def note_worker(worker: WorkerPresence, presences: Presences) -> None:
    """Note that a worker is there: the first time its row is made; or that it ends."""
    await presences.note(worker)
