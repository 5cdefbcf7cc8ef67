"""Tasks: the attempts that were sent to queues, and how a worker takes, keeps and ends them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

import orjson
from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.ids import JobId, NodeId, OwnerId, TaskId, WorkerId
from graticule.core.models import Task
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.base import Parameters, Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries


@dataclass(frozen=True, slots=True)
class Delivery:
    """Names a lease: a task, and which of its deliveries is meant."""

    task_id: TaskId
    delivery_count: int


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task that a worker holds."""

    task_id: TaskId
    job_id: JobId
    node_id: NodeId
    queue: str
    handler: str
    params: dict[str, JsonValue]
    timeout_seconds: int
    retry_count: int
    delivery_count: int
    max_deliveries: int
    priority: int
    share: str
    turn: int
    traceparent: str | None
    available_at: datetime
    waited_seconds: float  # since then
    sources: Sequence[str] | None = None  # of the partner whose asset it is for; None: of no asset


@dataclass(frozen=True, slots=True)
class TakenTask:
    """How a task stands for a worker that asked for its lease, and what it is to do under it."""

    is_held: bool  # False: it has ended, it waits for its time, or another worker has it
    job_id: JobId
    node_id: NodeId
    queue: str
    handler: str
    timeout_seconds: int
    retry_count: int
    delivery_count: int
    max_deliveries: int
    priority: int
    traceparent: str | None = None
    params: dict[str, JsonValue] | None = None  # of a task that is held
    waited_seconds: float | None = None  # of a task that was leased now: since it could be
    sources: Sequence[str] | None = None  # of the partner whose asset it is for; None: of no asset


@dataclass(frozen=True, slots=True)
class UnsentTask:
    """A task that a broker is to carry."""

    task_id: TaskId
    job_id: JobId
    node_id: NodeId
    queue: str
    handler: str
    params: dict[str, JsonValue]
    timeout_seconds: int
    retry_count: int
    traceparent: str | None
    available_at: datetime
    version: str  # of the row that was read


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """How a task ended; output, metrics and progress are JSON texts."""

    delivery: Delivery
    status: ResultStatus
    output: str | None = None
    output_ref: str | None = None
    error_message: str | None = None
    retryable: bool = True
    metrics: str | None = None
    progress: str | None = None


@dataclass(frozen=True, slots=True)
class RunningTask:
    """What a task that still runs has to tell; progress is a JSON text."""

    delivery: Delivery
    progress: str | None = None
    checkpoint: str | None = None


class LeaseState(StrEnum):
    """What became of a lease that a worker wanted to renew."""

    HELD = "held"
    WITHDRAWN = "withdrawn"  # the job was cancelled, or failed
    LOST = "lost"


class RequeueOutcome(StrEnum):
    """What became of the wish to try a dead letter again."""

    REQUEUED = "requeued"
    NOT_FOUND = "not_found"
    NOT_DEAD = "not_dead"
    JOB_FAILED = "job_failed"  # its node failed with it, and the job with the node: it can be resumed
    NOT_AWAITED = "not_awaited"  # its node has ended, or has another attempt under way


@dataclass(frozen=True, slots=True)
class ReapedTask:
    """A task whose lease ran out: queued again, or dead."""

    task_id: TaskId
    queue: str
    status: MessageStatus


class TaskRepository(Repository[Task]):
    """Reads and writes tasks."""

    model = Task
    subject: ClassVar = "task"
    queries: ClassVar = load_queries("tasks.sql")

    async def of_job(self, job_id: JobId) -> list[Task]:
        """Give all attempts of a job, oldest first."""
        return await self._all("tasks_of_job", {"job_id": job_id})

    # What a worker does

    async def claim(
        self,
        worker_id: WorkerId,
        queue: str,
        limit: int,
        lease_seconds: float,
        *,
        without: Iterable[str] = (),
        passed_over: Iterable[str] = (),
    ) -> list[ClaimedTask]:
        """Lease the most urgent tasks of a queue, except those of handlers `without` and of partners `passed_over`."""
        given = {
            "worker_id": worker_id,
            "queue": queue,
            "limit": limit,
            "lease_seconds": lease_seconds,
            "without": list(without),
            "passed_over": list(passed_over),
        }
        claimed = [ClaimedTask(**row) for row in await self._rows("claim_tasks", given)]
        return sorted(claimed, key=lambda task: (-task.priority, task.turn, task.available_at, task.task_id))

    async def take(
        self, worker_id: WorkerId, task_ids: Iterable[TaskId], lease_seconds: float
    ) -> dict[TaskId, TakenTask]:
        """Lease named tasks that nobody has, and tell how each that exists stands.

        One that this worker holds is told as held, in the delivery that it is.
        """
        given = {"worker_id": worker_id, "task_ids": sorted(set(task_ids)), "lease_seconds": lease_seconds}
        rows = await self._rows("take_tasks", given)
        return {TaskId(row.pop("task_id")): TakenTask(**row) for row in rows}

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        """Tell in how many seconds the first task that waits for its time can be claimed; None when none waits."""
        (row,) = await self._rows("next_available", {"queues": list(queues)})
        seconds: float | None = row["seconds"]
        return seconds

    async def renew(
        self, worker_id: WorkerId, held: Iterable[Delivery], lease_seconds: float
    ) -> dict[TaskId, LeaseState]:
        """Prolong leases, and tell of each whether it is still held."""
        given = {**_named(worker_id, held), "lease_seconds": lease_seconds}
        renewed = await self._task_ids("renew_leases", given)
        missing = [task_id for task_id in given["task_ids"] if task_id not in renewed]
        withdrawn = await self._task_ids("withdrawn_tasks", {"task_ids": missing}) if missing else set()
        return (
            dict.fromkeys(missing, LeaseState.LOST)  # another worker's, or gone along with its job
            | dict.fromkeys(withdrawn, LeaseState.WITHDRAWN)
            | dict.fromkeys(renewed, LeaseState.HELD)
        )

    async def finish(self, worker_id: WorkerId, tasks: Sequence[FinishedTask]) -> set[TaskId]:
        """End tasks with their results, and give those that were held or withdrawn: the others changed nothing."""
        reports = {
            task.delivery.task_id: {
                "delivery_count": task.delivery.delivery_count,
                "status": task.status,
                "output": _fragment(task.output),
                "output_ref": task.output_ref,
                "error_message": task.error_message,
                "retryable": task.retryable,
                "metrics": _fragment(task.metrics),
                "progress": _fragment(task.progress),
            }
            for task in tasks
        }
        return await self._task_ids("finish_tasks", _reported(worker_id, reports))

    async def report_running(self, worker_id: WorkerId, tasks: Sequence[RunningTask]) -> set[TaskId]:
        """Tell of tasks that still run, and give those whose lease is held."""
        reports = {
            task.delivery.task_id: {
                "delivery_count": task.delivery.delivery_count,
                "progress": _fragment(task.progress),
                "checkpoint": task.checkpoint,
            }
            for task in tasks
        }
        return await self._task_ids("report_running", _reported(worker_id, reports))

    async def complete(self, worker_id: WorkerId, held: Iterable[Delivery]) -> set[TaskId]:
        """End tasks whose results went another way."""
        return await self._task_ids("complete_tasks", _named(worker_id, held))

    async def abandon(
        self, worker_id: WorkerId, held: Iterable[Delivery], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Give tasks back to their queues; a delivery that does not count was never made."""
        given = {**_named(worker_id, held), "delay_seconds": delay_seconds, "counts": counts}
        return await self._task_ids("abandon_tasks", given)

    async def abandon_all_but(self, worker_id: WorkerId, held: Iterable[TaskId]) -> set[TaskId]:
        """Give back what a worker was given and does not know of."""
        return await self._task_ids("abandon_other_tasks", {"worker_id": worker_id, "held": list(held)})

    async def dead_letter(self, worker_id: WorkerId, delivery: Delivery, reason: str) -> str | None:
        """Set a task aside for good, and give its queue; its node fails with the reason. None: its lease was lost."""
        given = {
            "worker_id": worker_id,
            "task_id": delivery.task_id,
            "delivery_count": delivery.delivery_count,
            "reason": reason,
        }
        rows = await self._rows("dead_letter_task", given)
        return rows[0]["queue"] if rows else None

    # What an orchestrator does

    async def reap_expired(self, now: datetime | None = None, limit: int = 1000) -> list[ReapedTask]:
        """Give the tasks of silent workers back to their queues; those delivered too often die, and their nodes fail.

        Without `now`, the database's clock decides.
        """
        rows = await self._rows("reap_expired_leases", {"now": now, "limit": limit})
        return [ReapedTask(TaskId(row["task_id"]), row["queue"], MessageStatus(row["status"])) for row in rows]

    async def unsent(
        self, owner_id: OwnerId, limit: int, *, but: Iterable[UnsentTask] = (), without: Iterable[str] = ()
    ) -> list[UnsentTask]:
        """Give tasks of an owner's jobs that no broker has yet, the oldest first.

        Those of the queues `without` are left out, and those of `but` unless they were changed since.
        """
        given = {
            "owner_id": owner_id,
            "limit": limit,
            "without": list(without),
            **_versions(but),
        }
        return [UnsentTask(**row) for row in await self._rows("unsent_tasks", given)]

    async def note_sent(self, tasks: Iterable[UnsentTask]) -> None:
        """Note that a broker has these tasks, but for those that were changed since they were read."""
        await self._execute("note_sent_tasks", _versions(tasks))

    async def send_again(self, sent_before: datetime) -> int:
        """Let tasks be sent anew that a broker was given before this time and nobody took; tell how many."""
        return await self._execute("send_tasks_again", {"sent_before": sent_before})

    async def send_first_again(self, queues: Iterable[str], limit: int) -> int:
        """Let those tasks be sent anew that a broker was given first and nobody took, so many of each queue."""
        return await self._execute("send_first_tasks_again", {"queues": sorted(set(queues)), "limit": limit})

    async def notify(self, queues: Iterable[str]) -> None:
        """Tell the workers of these queues that there are tasks."""
        await self._execute("notify_queues", {"queues": list(queues)})

    async def dead(
        self, queue: str | None = None, limit: int = 100, *, before: tuple[datetime, TaskId] | None = None
    ) -> list[Task]:
        """Give the dead letters, newest first, after the one that `before` names."""
        created_at, task_id = before or (None, None)
        given = {"queue": queue, "before_created_at": created_at, "before_task_id": task_id, "limit": limit}
        return await self._all("dead_tasks", given)

    async def hold_job_of(self, task_id: TaskId) -> None:
        """Let no step of the task's job be written until the caller's transaction ends."""
        await self._rows("hold_job_of_task", {"task_id": task_id})

    async def requeue(self, task_id: TaskId) -> RequeueOutcome:
        """Try a dead letter again with all its deliveries, if its node still waits for it; its job is held."""
        rows = await self._rows("requeue_dead_task", {"task_id": task_id})
        return RequeueOutcome(rows[0]["outcome"]) if rows else RequeueOutcome.NOT_FOUND

    async def discard(self, task_id: TaskId) -> bool:
        """Take a dead letter off the list; False when there is none of this id."""
        return await self._execute("discard_dead_task", {"task_id": task_id}) == 1

    async def _rows(self, query: str, given: Parameters) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(self.queries[query], given)).fetchall()

    async def _task_ids(self, query: str, given: Parameters) -> set[TaskId]:
        return {TaskId(row["task_id"]) for row in await self._rows(query, given)}


def _named(worker_id: WorkerId, held: Iterable[Delivery]) -> dict[str, Any]:
    """Name leases, always in the same order: two statements that lock the same rows must not wait for each other."""
    deliveries = {delivery.task_id: delivery.delivery_count for delivery in held}
    return {
        "worker_id": worker_id,
        "task_ids": sorted(deliveries),
        "deliveries": json_codec.encode(deliveries).decode(),
    }


def _versions(tasks: Iterable[UnsentTask]) -> dict[str, Any]:
    """Name rows as they were read, in the order of `_named`."""
    versions = sorted((task.task_id, task.version) for task in tasks)
    return {"task_ids": [task_id for task_id, _ in versions], "versions": [version for _, version in versions]}


def _reported(worker_id: WorkerId, reports: Mapping[TaskId, Any]) -> dict[str, Any]:
    return {"worker_id": worker_id, "task_ids": sorted(reports), "reports": json_codec.encode(reports).decode()}


def _fragment(text: str | None) -> orjson.Fragment | None:
    """Let a JSON text be part of a document as it is."""
    return None if text is None else orjson.Fragment(text)
