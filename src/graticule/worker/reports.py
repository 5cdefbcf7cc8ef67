"""What a worker has to tell of its tasks, and the ways on which it can be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.fault_points import Commit
from graticule.core.ids import TaskId, WorkerId
from graticule.messaging.postgres import delivery_of
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database
from graticule.repositories.tasks import FinishedTask, RunningTask, TaskRepository
from graticule.worker.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Report:
    """How a task ended."""

    message: TaskMessage
    outcome: Outcome
    output_ref: str | None = None  # where the output is, when it is too large to travel
    progress: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class News:
    """A task still runs."""

    message: TaskMessage
    progress: dict[str, JsonValue] | None = None


class ReportSink(Protocol):
    """Takes reports."""

    async def finish(self, reports: Sequence[Report]) -> set[TaskId]:
        """Write how tasks ended, and give those that were accepted: of the others the lease was lost."""

    async def running(self, news: Sequence[News]) -> None:
        """Tell of tasks that still run."""


class DatabaseSink:
    """Writes reports into the database: a batch in one statement."""

    def __init__(self, database: Database, worker_id: WorkerId) -> None:
        self._database = database
        self._worker_id = worker_id

    async def finish(self, reports: Sequence[Report]) -> set[TaskId]:
        """Write how tasks ended, and give those that were accepted: of the others the lease was lost."""
        async with self._database.committing(Commit.FINISH) as connection:
            return await TaskRepository(connection).finish(self._worker_id, [_finished(each) for each in reports])

    async def running(self, news: Sequence[News]) -> None:
        """Tell of tasks that still run."""
        async with self._database.committing(Commit.RUNNING) as connection:
            tasks = [RunningTask(delivery_of(each.message), _text(each.progress)) for each in news]
            await TaskRepository(connection).report_running(self._worker_id, tasks)


def _finished(report: Report) -> FinishedTask:
    outcome = report.outcome
    return FinishedTask(
        delivery=delivery_of(report.message),
        status=outcome.status,
        output=None if outcome.output is None or report.output_ref else outcome.output.decode(),
        output_ref=report.output_ref,
        error_message=outcome.error_message,
        retryable=outcome.retryable,
        metrics=outcome.metrics,
        progress=_text(report.progress),
    )


def _text(progress: dict[str, JsonValue] | None) -> str | None:
    return None if progress is None else json_codec.encode(progress).decode()
