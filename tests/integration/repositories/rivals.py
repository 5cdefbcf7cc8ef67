"""What two sessions can do to the same rows at the same time.

Both have read the same picture before either began: the same lease, the same version of a job.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from tests.integration.repositories import rows
from tests.integration.repositories.rows import LATER, NOW

from graticule.core.errors import Conflict, StaleVersion
from graticule.core.ids import JobId, OwnerId, TaskId, WorkerId
from graticule.core.models import JobMessage
from graticule.core.states import JobStatus, ResultStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.processes import OrchestratorRepository, WorkerRepository
from graticule.repositories.reports import Reporter, ReportRepository
from graticule.repositories.step_parts import Part
from graticule.repositories.steps import JobRow, StepRepository
from graticule.repositories.tasks import Delivery, FinishedTask, RunningTask, TaskRepository

JOB, TASK, CHILD_TASK, MESSAGE = JobId("job"), TaskId("job_node_0"), TaskId("job_split__0_0"), "message"
OWNER, ME = OwnerId("owner"), WorkerId("me")
HELD = Delivery(TASK, 1)
REPORTER = Reporter(TASK, ME, 1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
OVERDUE: dict[str, Any] = {"status": "leased", "lease_expires_at": LONG_AGO, "delivery_count": 1}


@dataclass
class Session:
    """One of the two: what it takes becomes its own by its name."""

    name: str
    connection: Connection
    result_id: int | None = None  # of the result that came
    owner_id: OwnerId = OWNER  # as which it takes steps
    job: JobRow = field(default_factory=lambda: JobRow(JOB, 1, NOW, rows.HASH, JobStatus.RUNNING))  # as it was read

    @property
    def tasks(self) -> TaskRepository:
        return TaskRepository(self.connection)

    @property
    def messages(self) -> MessageRepository:
        return MessageRepository(self.connection)

    @property
    def ownership(self) -> OwnershipRepository:
        return OwnershipRepository(self.connection)

    @property
    def reports(self) -> ReportRepository:
        return ReportRepository(self.connection)

    @property
    def steps(self) -> StepRepository:
        return StepRepository(self.connection, self.owner_id)


Run = Callable[[Session], Awaitable[object]]


@dataclass(frozen=True)
class Statement:
    """A named statement as a session runs it."""

    query: str
    run: Run


@dataclass(frozen=True)
class Move:
    """What the product does in one transaction: one statement, or several."""

    statements: tuple[Statement, ...]
    role: DatabaseRole = DatabaseRole.ORCHESTRATOR

    async def run(self, session: Session) -> str:
        """Run it to its end, and say what the last statement gave."""
        try:
            async with session.connection.transaction():
                for statement in self.statements:
                    outcome = await statement.run(session)
        except StaleVersion:
            return "stale"
        except Conflict:
            return "refused"
        return said(outcome)


def said(outcome: object) -> str:
    """Say in a word what a statement gave."""
    if outcome is None:
        return "done"
    if isinstance(outcome, StrEnum):
        return outcome.value
    return "moved" if outcome else "nothing"


# What a worker does


async def _renew(session: Session) -> object:
    return (await session.tasks.renew(ME, [HELD], 60))[TASK]


async def _take(session: Session) -> object:
    return (await session.tasks.take(WorkerId(session.name), [TASK], 60))[TASK].is_held


async def _set_aside(session: Session) -> object:
    return await session.tasks.dead_letter(ME, HELD, "broken") is not None


async def _save(session: Session) -> object:
    return await CheckpointRepository(session.connection).save_under_lease(ME, HELD, session.name, {}, [])


def _worker(query: str, run: Run) -> Move:
    return Move((Statement(query, run),), DatabaseRole.WORKER)


WORKERS_MOVES: Final[dict[str, Move]] = {
    "claim": _worker("claim_tasks", lambda s: s.tasks.claim(WorkerId(s.name), "q", 9, 60)),
    "take": _worker("take_tasks", _take),
    "renew": _worker("renew_leases", _renew),
    "finish": _worker("finish_tasks", lambda s: s.tasks.finish(ME, [FinishedTask(HELD, ResultStatus.COMPLETED)])),
    "tell": _worker("report_running", lambda s: s.tasks.report_running(ME, [RunningTask(HELD)])),
    "complete": _worker("complete_tasks", lambda s: s.tasks.complete(ME, [HELD])),
    "abandon": _worker("abandon_tasks", lambda s: s.tasks.abandon(ME, [HELD])),
    "make room": _worker("abandon_tasks", lambda s: s.tasks.abandon(ME, [HELD], counts=False)),
    "give rest": _worker("abandon_other_tasks", lambda s: s.tasks.abandon_all_but(ME, [])),
    "set aside": _worker("dead_letter_task", _set_aside),
    "save": _worker("save_checkpoint_under_lease", _save),
    "worker beats": _worker("beat_worker", lambda s: WorkerRepository(s.connection).beat(ME)),
    "worker stops": _worker("stop_worker", lambda s: WorkerRepository(s.connection).stop(ME)),
}

# What the API and the operator do


def _one(query: str, run: Run) -> Move:
    return Move((Statement(query, run),))


async def _add_job(session: Session) -> object:
    row = {"job_id": f"of {session.name}", "workflow_id": "flow", "workflow_version": "1", "workflow_hash": rows.HASH}
    return await session.steps.add_jobs(
        [{**row, "priority": 0, "share": "", "input_params": {}, "idempotency_key": "key"}], LATER
    )


API_MOVES: Final[dict[str, Move]] = {
    "http result": _one("accept_result", lambda s: s.reports.accept_result(REPORTER, ResultStatus.COMPLETED)),
    "http first": _one("lease_unclaimed", lambda s: s.reports.lease_unclaimed(TASK, WorkerId(s.name))),
    "http progress": _one("accept_progress", lambda s: s.reports.accept_progress(REPORTER, None)),
    "http save": _one("accept_checkpoint", lambda s: s.reports.accept_checkpoint(REPORTER, s.name, "{}", [])),
    "requeue": Move(
        (
            Statement("hold_job_of_task", lambda s: s.tasks.hold_job_of(TASK)),
            Statement("requeue_dead_task", lambda s: s.tasks.requeue(TASK)),
        )
    ),
    "discard": _one("discard_dead_task", lambda s: s.tasks.discard(TASK)),
    "submit": _one("add_jobs", _add_job),
    "send": _one("send_message", lambda s: s.messages.send(rows.message(MESSAGE, priority=len(s.name)))),
    "ask to cancel": _one("request_cancel", lambda s: s.ownership.request_cancel(JOB, s.name, LATER)),
    "take failed": _one("take_ended", lambda s: s.ownership.take_ended(JOB, OwnerId(s.name), LATER)),
}

# What an orchestrator does with messages and among the others

LEASED_MESSAGE: Final[JobMessage] = rows.message(MESSAGE, leased_by=OWNER, **OVERDUE)


def _instances(session: Session) -> OrchestratorRepository:
    return OrchestratorRepository(session.connection)


MESSAGE_MOVES: Final[dict[str, Move]] = {
    "claim": _one("claim_messages", lambda s: s.messages.claim(OwnerId(s.name), "orchestrator-jobs", 9, 60)),
    "claim dead": _one(
        "claim_dead_messages",
        lambda s: s.messages.claim_dead(OwnerId(s.name), "orchestrator-jobs", 9, 60, workflows=["flow"]),
    ),
    "leave": _one("leave_messages", lambda s: s.messages.leave(OWNER, [MESSAGE])),
    "complete": _one("complete_message", lambda s: s.messages.complete(LEASED_MESSAGE)),
    "abandon": _one("abandon_message", lambda s: s.messages.abandon(LEASED_MESSAGE, "why")),
    "give all": _one("abandon_messages_of", lambda s: s.messages.abandon_all(OWNER)),
    "set aside": _one("dead_letter_message", lambda s: s.messages.dead_letter(LEASED_MESSAGE, "broken")),
    "reap": _one("reap_expired_messages", lambda s: s.messages.reap_expired()),
    "requeue": _one("requeue_dead_message", lambda s: s.messages.requeue(MESSAGE)),
    "discard": _one("discard_dead_message", lambda s: s.messages.discard(MESSAGE)),
}


async def _note_sent(session: Session) -> None:
    await session.tasks.note_sent(await session.tasks.unsent(OWNER, 1))


TAKE_ORPHANS = Statement("take_orphans", lambda s: s.ownership.take_orphans(OwnerId(s.name), [OWNER], LATER, 9))
TAKE_LATE = Statement("take_late", lambda s: s.ownership.take_late(OwnerId(s.name), LATER, 9))
CLOSE_DEAD = Statement("close_dead", lambda s: s.ownership.close_dead([OWNER], LATER))
INSTANCE_MOVES: Final[dict[str, Move]] = {
    "reap": _one("reap_expired_leases", lambda s: s.tasks.reap_expired()),
    "note sent": _one("note_sent_tasks", _note_sent),
    "send first": _one("send_first_tasks_again", lambda s: s.tasks.send_first_again(["q"], 9)),
    "send again": _one("send_tasks_again", lambda s: s.tasks.send_again(LATER)),
    "take orphans": Move((TAKE_ORPHANS,)),
    "take late": Move((TAKE_LATE,)),
    "close dead": Move((CLOSE_DEAD,)),
    "take over": Move((TAKE_ORPHANS, TAKE_LATE, CLOSE_DEAD)),
    "hand over": _one("hand_over", lambda s: s.ownership.hand_over(OWNER, LATER)),
    "give away": _one("give_away", lambda s: s.ownership.give_away(OWNER, 9, LATER)),
    "beat": _one("beat_orchestrator", lambda s: _instances(s).beat(OWNER)),
    "rejoin": _one("rejoin_orchestrator", lambda s: _instances(s).rejoin(OWNER)),
    "stop": _one("stop_orchestrator", lambda s: _instances(s).stop(OWNER, LATER)),
}

# A lease that is lost, and a term that is over although owner and version are as before: only the number tells


def _claim_as(worker: WorkerId | None) -> Statement:
    return Statement("claim_tasks", lambda s: s.tasks.claim(worker or WorkerId(s.name), "q", 9, 60))


REAP, MAKE_ROOM = INSTANCE_MOVES["reap"].statements[0], WORKERS_MOVES["make room"].statements[0]
CHANGES_OF_HANDS: Final[dict[str, Move]] = {
    "lose": Move((REAP, _claim_as(None))),
    "have anew": Move((REAP, _claim_as(ME))),
    "pass on": Move((MAKE_ROOM, _claim_as(None))),
    "take back": Move(
        (
            Statement("hand_over", lambda s: s.ownership.hand_over(OWNER, NOW)),
            Statement("take_orphans", lambda s: s.ownership.take_orphans(OWNER, [], NOW, 9)),
        )
    ),
}

# Steps


async def _read(session: Session) -> object:
    """Read the job anew, as a step inside the transaction of a cancel or resume does."""
    found = await session.steps.read([JOB], {}, 1)
    if JOB not in found:
        raise StaleVersion("The job is not ours.")
    session.job = found[JOB][0].job
    return None


def _written(event_type: str, **parts: list[dict[str, Any]]) -> Statement:
    """Write a step with an event, by which it is seen afterwards."""
    told = [{"job_id": JOB, "event_type": event_type, "data": {}}]
    others: list[dict[str, Any]] = [] if "jobs" in parts else [{"job_id": JOB}]

    async def write(session: Session) -> None:
        named = {
            Part(name): [{"result_id": session.result_id, **row} for row in given] for name, given in parts.items()
        }
        moment = LATER.replace(microsecond=len(session.name))
        await session.steps.write([session.job], {**named, Part.EVENTS: told, Part.OTHER_JOBS: others}, moment)

    return Statement("step", write)


def _job_becomes(before: str, status: str) -> list[dict[str, Any]]:
    return [{"job_id": JOB, "before": before, "status": status, "error_message": "why"}]


def _changed(query: str, method: str, *given: object, **row: Any) -> Statement:
    """Run one of the statements that change many rows of a job in its term."""

    async def change(session: Session) -> None:
        fenced = {"job_id": JOB, "owner_epoch": session.job.owner_epoch, **row}
        await getattr(session.steps, method)([fenced], *given)

    return Statement(query, change)


async def _take_ended(session: Session) -> object:
    session.owner_id = OwnerId(session.name)
    if not await session.ownership.take_ended(JOB, session.owner_id, LATER):
        raise StaleVersion("The job is not failed.")
    return None


HOLD = Statement("step", lambda s: s.steps.hold([s.job]))
READ = Statement("read_jobs", _read)
WITHDRAW = _changed("withdraw_tasks", "withdraw_tasks", task_id=None)
FORGET = _changed("forget_checkpoints", "forget_checkpoints", node_id="node")
CHILD: dict[str, Any] = {"parent_node_id": "split", "error_message": "why"}
COUNTS = ("children_total", "children_started", "children_done", "children_failed", "retry_count", "retry_base")
FAILED_NODE: dict[str, Any] = {
    "job_id": JOB,
    "node_id": "node",
    "before": "dispatched",
    "status": "failed",
    "task_id": TASK,
    "error_message": "why",
    "output_from": "kept",
    "ended_at": LATER,
    **dict.fromkeys(COUNTS, 0),
}
COMPLETED_CHILD = [{"job_id": JOB, "node_id": "split__0", "before": "dispatched"}]
STEP_MOVES: Final[dict[str, Move]] = {
    "step": Move((_written("node_ready"),)),
    "hold": Move((HOLD,)),
    "withdraw": Move((HOLD, WITHDRAW)),
    "forget": Move((HOLD, FORGET)),
    "remove children": Move((HOLD, _changed("remove_children", "remove_children", **CHILD))),
    "abandon children": Move((HOLD, _changed("abandon_children", "abandon_children", LATER, **CHILD))),
    "complete child": Move((_written("node_completed", completed_children=COMPLETED_CHILD),)),
    "note": Move((_written("result_ignored", processed_results=[{"job_id": JOB}]),)),
    "complete job": Move((_written("job_completed", jobs=_job_becomes("running", "completed")),)),
    "fail job": Move(
        (HOLD, _written("job_failed", nodes=[FAILED_NODE], jobs=_job_becomes("running", "failed")), WITHDRAW)
    ),
    "cancel": Move(
        (
            Statement("request_cancel", lambda s: s.ownership.request_cancel(JOB, s.name, LATER)),
            READ,
            HOLD,
            _written("job_cancelled", jobs=_job_becomes("running", "cancelled")),
            WITHDRAW,
        )
    ),
    "resume": Move(
        (
            Statement("take_ended", _take_ended),
            READ,
            HOLD,
            FORGET,
            _written("job_resumed", jobs=_job_becomes("failed", "running")),
        )
    ),
    "start over": Move(
        (
            Statement("take_ended", _take_ended),
            Statement("remove_nodes", lambda s: s.ownership.remove_nodes(JOB)),
            READ,
            _written("job_resumed", jobs=_job_becomes("failed", "running")),
        )
    ),
}
