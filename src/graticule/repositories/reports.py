"""What workers report by HTTP; see `reports.sql` for when a report counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.models import Checkpoint
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries


@dataclass(frozen=True, slots=True)
class Reporter:
    """The task that is reported of, and who reports, in which of its deliveries."""

    task_id: TaskId
    worker_id: WorkerId | None
    delivery_count: int | None


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task that there is."""

    job_id: JobId
    node_id: NodeId
    retry_count: int
    status: MessageStatus
    report_hash: str | None = None  # of the report that counted, if one did by itself


class ReportRepository:
    """Writes what is reported and tells the owners of the jobs. JSON values are given as texts."""

    queries: ClassVar = load_queries("reports.sql")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def lease_unclaimed(self, task_id: TaskId, worker_id: WorkerId) -> None:
        """Lease a task that waits to a worker that reports of it without having asked for a lease."""
        with domain_errors("lease unclaimed"):
            await self._connection.execute(
                self.queries["lease_unclaimed"], {"task_id": task_id, "worker_id": worker_id}
            )

    async def has_reported(self, task_id: TaskId, task: KnownTask, worker_id: WorkerId) -> bool:
        """Whether the result of a task that is done came from this worker."""
        given = {"task_id": task_id, "job_id": task.job_id, "node_id": task.node_id, "worker_id": worker_id}
        (row,) = await self._rows("has_reported", given)
        return bool(row["has_reported"])

    async def accept_result(
        self,
        reporter: Reporter,
        status: ResultStatus,
        *,
        output: str | None = None,
        output_ref: str | None = None,
        error_message: str | None = None,
        retryable: bool = True,
        progress: str | None = None,
        metrics: str | None = None,
        report_hash: str | None = None,
    ) -> bool:
        """End a task with its result; False when the report does not count."""
        values = {
            "status": status,
            "output": output,
            "output_ref": output_ref,
            "error_message": error_message,
            "retryable": retryable,
            "progress": progress,
            "metrics": metrics,
            "report_hash": report_hash,
        }
        return await self._accepted("accept_result", reporter, values)

    async def accept_progress(self, reporter: Reporter, progress: str | None, metrics: str | None = None) -> bool:
        """Note that a task runs, and how far it is; False when the report does not count."""
        return await self._accepted("accept_progress", reporter, {"progress": progress, "metrics": metrics})

    async def accept_checkpoint(self, reporter: Reporter, phase: str, data: str, artifacts: Sequence[str]) -> bool:
        """Keep the phase that a task has saved; False when the report does not count."""
        values = {"phase": phase, "data": data, "artifacts": list(artifacts)}
        return await self._accepted("accept_checkpoint", reporter, values)

    async def task(self, task_id: TaskId) -> KnownTask | None:
        """Give what a report's task is."""
        return (await self.tasks([task_id])).get(task_id)

    async def tasks(self, task_ids: Sequence[TaskId]) -> dict[TaskId, KnownTask]:
        """Give what the tasks of reports are, those that there are."""
        rows = await self._rows("task_statuses", {"task_ids": list(task_ids)})
        return {
            TaskId(row.pop("task_id")): KnownTask(**{**row, "status": MessageStatus(row["status"])}) for row in rows
        }

    async def hold_lease(self, reporter: Reporter) -> bool:
        """Keep a task with its worker until the transaction ends; False when it is no longer there."""
        given = {
            "task_id": reporter.task_id,
            "worker_id": reporter.worker_id,
            "delivery_count": reporter.delivery_count,
        }
        return bool(await self._rows("hold_lease", given))

    async def job_of_task(self, task_id: TaskId) -> JobId | None:
        """Return the job that a task belongs to; None when there is no such task."""
        rows = await self._rows("job_of_task", {"task_id": task_id})
        return JobId(rows[0]["job_id"]) if rows else None

    async def checkpoint(self, task_id: TaskId) -> Checkpoint | None:
        """Give what the last attempt of a task's node has saved."""
        rows = await self._rows("checkpoint_of_task", {"task_id": task_id})
        return Checkpoint.model_validate(rows[0]) if rows else None

    async def _accepted(self, query: str, reporter: Reporter, values: dict[str, Any]) -> bool:
        given = {
            "task_id": reporter.task_id,
            "worker_id": reporter.worker_id,
            "delivery_count": reporter.delivery_count,
        }
        return bool(await self._rows(query, {**given, **values}))

    async def _rows(self, query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(self.queries[query], given)).fetchall()
