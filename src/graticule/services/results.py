"""What workers report by HTTP: results, progress and checkpoints. A report that came before counts once."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, Final
from uuid import uuid4

from orjson import OPT_SORT_KEYS
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from graticule.core import json_codec
from graticule.core.compatibility import translate_result
from graticule.core.errors import Conflict, InvalidInput, NotFound
from graticule.core.fault_points import Commit
from graticule.core.ids import TaskId
from graticule.core.models import Checkpoint
from graticule.core.models.fields import JobKey, JsonObject, Name, NodeKey, Path, TaskKey, Timestamp, WorkerKey
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.database import Database
from graticule.repositories.reports import KnownTask, Reporter, ReportRepository
from graticule.repositories.steps import document
from graticule.repositories.tasks import Delivery, FinishedTask, TaskRepository
from graticule.services.outputs import INLINE_BYTES, INLINE_CHILD_BYTES
from graticule.storage.protocol import Storage

MOST_ERROR_CHARACTERS: Final = 20_000
MOST_PROGRESS_BYTES: Final = 16 * 1024
MOST_METRICS_BYTES: Final = 64 * 1024
MOST_CHECKPOINT_BYTES: Final = 1024 * 1024
MOST_RESULTS: Final = 500  # in one request

DeliveryCount = Annotated[int, Field(ge=0, le=2**31 - 1)]


class TaskReport(BaseModel):
    """What every report says: of which task it is, and who held it in which delivery."""

    model_config = ConfigDict(frozen=True)

    task_id: TaskKey = Field(examples=["01a1e0340e647089aacb762008f1f8db_validate_0"])
    job_id: JobKey | None = None
    node_id: NodeKey | None = None
    worker_id: WorkerKey | None = None
    delivery_count: DeliveryCount | None = Field(
        None, description="The delivery that the worker holds; a report of another one does not count."
    )

    @property
    def reporter(self) -> Reporter:
        """Give who reports of what."""
        return Reporter(self.task_id, self.worker_id, self.delivery_count)


class TaskOutcome(BaseModel):
    """How a task went."""

    model_config = ConfigDict(frozen=True)

    status: ResultStatus
    output: JsonValue = None
    output_ref: Path | None = Field(None, description="Where the worker has stored an output too large to send.")
    error_message: str | None = None
    retryable: bool = True
    progress: JsonObject | None = None
    metrics: JsonObject | None = None
    reported_at: Timestamp | None = None


class ResultReport(TaskOutcome, TaskReport):
    """How a task went, by itself."""

    @property
    def content_hash(self) -> str:
        """The SHA-256 of what a worker says of the outcome; times and metrics may differ when it says so again."""
        said = self.model_dump(
            mode="json", include={"worker_id", "status", "output", "output_ref", "error_message", "retryable"}
        )
        return sha256(json_codec.encode(said, option=OPT_SORT_KEYS)).hexdigest()

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, data: Any) -> Any:
        return translate_result(data)


class HeldTaskResult(TaskOutcome):
    """How one of several tasks of a worker ended."""

    task_id: TaskKey = Field(examples=["01a1e0340e647089aacb762008f1f8db_validate_0"])
    delivery_count: DeliveryCount


class ResultBatch(BaseModel):
    """How several tasks of a worker ended; each counts, or does not, by itself."""

    model_config = ConfigDict(frozen=True)

    worker_id: WorkerKey
    results: list[HeldTaskResult] = Field(min_length=1, max_length=MOST_RESULTS)

    @field_validator("results")
    @classmethod
    def _each_once(cls, results: list[HeldTaskResult]) -> list[HeldTaskResult]:
        if len({result.task_id for result in results}) < len(results):
            raise ValueError("a task is named twice")
        if any(result.status is ResultStatus.RUNNING for result in results):
            raise ValueError("a task that runs has no result yet")
        return results


class ProgressReport(TaskReport):
    """How far a task is."""

    progress: JsonObject | None = Field(None, description="Without it, the report only says that the task runs.")


class CheckpointReport(TaskReport):
    """A phase that a task has finished, with what the next attempt needs to go on after it."""

    phase: Annotated[Name, Field(min_length=1)]
    data: JsonObject = Field(default_factory=dict)
    artifacts: list[Path] = Field(default_factory=list, max_length=10_000)


class TaskStanding(StrEnum):
    """How a task stands for the worker that reported of it."""

    HELD = "held"  # go on
    DONE = "done"  # its result is known
    WITHDRAWN = "withdrawn"  # the job was cancelled or has failed: stop
    LOST = "lost"  # another worker has it, or nobody is to run it any more: stop


class Receipt(BaseModel):
    """What became of a report."""

    accepted: bool = Field(description="False: it had been reported before, or the task is no longer this worker's.")
    task: TaskStanding


class TaskReceipt(Receipt):
    """What became of one report of a batch."""

    task_id: TaskId


class BatchReceipt(BaseModel):
    """What became of the reports of a batch, in their order."""

    receipts: list[TaskReceipt]


@dataclass(frozen=True, slots=True)
class _Kept:
    """An output as its row holds it: a text, or where it is stored."""

    output: str | None
    output_ref: str | None
    is_ours: bool = False  # it was stored here, and not by the worker


class ResultIntake:
    """Takes reports in."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage

    async def result(self, report: ResultReport) -> Receipt:
        """Take a result in; one that says "running" is a sign of life. One that cannot count is a `Conflict`.

        A worker that names no delivery never asked for a lease: its first report takes the lease of a task that waits.
        """
        if report.status is ResultStatus.RUNNING:
            receipt = await self._running(report, report.progress, report.metrics, leases=True)
        else:
            receipt = await self._ended(report)
        if not receipt.accepted:
            await self._refuse_unless_repeated(report)
        return receipt

    async def _ended(self, report: ResultReport) -> Receipt:
        _check(report)
        progress, metrics = _progress(report.progress), _metrics(report.metrics)
        async with self._database.connection() as connection:
            task = _known(await ReportRepository(connection).task(report.task_id), report.task_id)
        kept = await self._kept(task, report)
        async with self._database.transaction(Commit.REPORT) as connection:
            reports = ReportRepository(connection)
            await _lease_unclaimed(reports, report)
            accepted = await reports.accept_result(
                report.reporter,
                report.status,
                output=kept.output,
                output_ref=kept.output_ref,
                error_message=_storable(report.error_message),
                retryable=report.retryable,
                progress=progress,
                metrics=metrics,
                report_hash=report.content_hash,
            )
            receipt = await _receipt(reports, report, accepted=accepted, standing=TaskStanding.DONE)
        if not accepted:
            await self._drop(kept)
        return receipt

    async def results(self, batch: ResultBatch) -> BatchReceipt:
        """Take results in, all of them in one statement; of a task that is not this worker's, nothing is changed."""
        reports = {report.task_id: report for report in batch.results}
        for report in batch.results:
            _check(report)
        async with self._database.connection() as connection:
            known = await ReportRepository(connection).tasks([*reports])
        kept = {task_id: await self._kept(task, reports[task_id]) for task_id, task in known.items()}
        async with self._database.transaction(Commit.REPORT) as connection:
            finished = [_finished(reports[task_id], each) for task_id, each in kept.items()]
            accepted = await TaskRepository(connection).finish(batch.worker_id, finished)
            others = await ReportRepository(connection).tasks([*(reports.keys() - accepted)])
        for task_id in kept.keys() - accepted:
            await self._drop(kept[task_id])
        return BatchReceipt(receipts=[_one_of(task_id, accepted, others) for task_id in reports])

    async def progress(self, report: ProgressReport) -> Receipt:
        """Note how far a task is."""
        return await self._running(report, report.progress, None)

    async def checkpoint(self, report: CheckpointReport) -> Receipt:
        """Keep a phase that a task has finished."""
        data = _bounded("data", document(report.data), MOST_CHECKPOINT_BYTES)
        async with self._database.transaction(Commit.REPORT) as connection:
            reports = ReportRepository(connection)
            accepted = await reports.accept_checkpoint(report.reporter, report.phase, data, report.artifacts)
            return await _receipt(reports, report, accepted=accepted, standing=TaskStanding.HELD)

    async def last_checkpoint(self, task_id: TaskId) -> Checkpoint | None:
        """Give what the node of a task has saved last, in this attempt or one before; None when it has not."""
        async with self._database.connection() as connection:
            reports = ReportRepository(connection)
            found = await reports.checkpoint(task_id)
            if found is None:
                _known(await reports.task(task_id), task_id)
        return found

    async def _refuse_unless_repeated(self, report: ResultReport) -> None:
        async with self._database.connection() as connection:
            reports = ReportRepository(connection)
            task = _known(await reports.task(report.task_id), report.task_id)
            if task.status is MessageStatus.DONE and await _is_repeated(reports, task, report):
                return
        raise Conflict(
            f"The report of task {report.task_id} does not count: {_REASONS.get(task.status, _LEASE_LOST)}.",
            hint="Discard the result and complete the message. Do not send the report again.",
        )

    async def _running(
        self, report: TaskReport, progress: JsonObject | None, metrics: JsonObject | None, *, leases: bool = False
    ) -> Receipt:
        told = _progress(progress), _metrics(metrics)
        async with self._database.transaction(Commit.REPORT) as connection:
            reports = ReportRepository(connection)
            if leases:
                await _lease_unclaimed(reports, report)
            accepted = await reports.accept_progress(report.reporter, *told)
            return await _receipt(reports, report, accepted=accepted, standing=TaskStanding.HELD)

    async def _kept(self, task: KnownTask, report: TaskOutcome) -> _Kept:
        """Give the output as its row holds it: a text, or where it is stored if it is too large for that."""
        folder = f"outputs/{task.job_id}/"
        if report.output_ref is not None:
            if not report.output_ref.startswith(folder) or ".." in report.output_ref.split("/"):
                raise InvalidInput(f"`output_ref` must begin with {folder!r}: outputs of a job are stored there.")
            if not await self._storage.exists(report.output_ref):
                raise InvalidInput(f"There is no file {report.output_ref!r} in the storage of this server.")
            return _Kept(None, report.output_ref)
        text = _json(report.output)
        limit = INLINE_CHILD_BYTES if "__" in task.node_id else INLINE_BYTES
        if text is None or len(text.encode()) <= limit:
            return _Kept(text, None)
        # A name of its own: a report that turns out not to count must not overwrite the output of one that did.
        path = f"{folder}{task.node_id}_{task.retry_count}_{uuid4().hex}.json"
        await self._storage.put(path, text.encode())
        return _Kept(None, path, is_ours=True)

    async def _drop(self, kept: _Kept) -> None:
        if kept.is_ours and kept.output_ref is not None:
            await self._storage.delete(kept.output_ref)


async def _is_repeated(reports: ReportRepository, task: KnownTask, report: ResultReport) -> bool:
    """Whether the result of a task that is done is this one, or a sign of life from before that came late."""
    if task.report_hash is not None and report.status is not ResultStatus.RUNNING:
        return task.report_hash == report.content_hash
    # It says nothing of the outcome, or that came in a batch, by the database, or to an earlier release: all that is
    # known is from whom.
    return report.worker_id is not None and await reports.has_reported(report.task_id, task, report.worker_id)


async def _lease_unclaimed(reports: ReportRepository, report: TaskReport) -> None:
    if report.delivery_count is None and report.worker_id is not None:
        await reports.lease_unclaimed(report.task_id, report.worker_id)


def _check(report: TaskOutcome) -> None:
    if report.status is ResultStatus.FAILED and not report.error_message:
        raise InvalidInput("A failed task needs an `error_message`.")


def _finished(report: HeldTaskResult, kept: _Kept) -> FinishedTask:
    return FinishedTask(
        delivery=Delivery(report.task_id, report.delivery_count),
        status=report.status,
        output=kept.output,
        output_ref=kept.output_ref,
        error_message=_storable(report.error_message),
        retryable=report.retryable,
        metrics=_metrics(report.metrics),
        progress=_progress(report.progress),
    )


def _one_of(task_id: TaskId, accepted: set[TaskId], others: Mapping[TaskId, KnownTask]) -> TaskReceipt:
    if task_id in accepted:
        return TaskReceipt(task_id=task_id, accepted=True, task=TaskStanding.DONE)
    return TaskReceipt(task_id=task_id, accepted=False, task=_standing(others.get(task_id)))


async def _receipt(reports: ReportRepository, report: TaskReport, *, accepted: bool, standing: TaskStanding) -> Receipt:
    if accepted:
        return Receipt(accepted=True, task=standing)
    task = _known(await reports.task(report.task_id), report.task_id)
    return Receipt(accepted=False, task=_standing(task))


def _standing(task: KnownTask | None) -> TaskStanding:
    return TaskStanding.LOST if task is None else _STANDINGS.get(task.status, TaskStanding.LOST)


_STANDINGS: Final = {
    MessageStatus.DONE: TaskStanding.DONE,
    MessageStatus.WITHDRAWN: TaskStanding.WITHDRAWN,
}


_LEASE_LOST: Final = "another worker holds the task, or this worker's lease has ended"
_REASONS: Final = {
    MessageStatus.QUEUED: "this worker does not hold the task, which waits for a worker",
    MessageStatus.DONE: "another result of this attempt was accepted before",
    MessageStatus.WITHDRAWN: "its job was cancelled or has failed, and the task was withdrawn",
    MessageStatus.DEAD: "the task was given up and is a dead letter",
}


def _known(task: KnownTask | None, task_id: str) -> KnownTask:
    if task is None:
        raise NotFound(f"There is no task {task_id}.")
    return task


def _json(value: JsonValue) -> str | None:
    return None if value is None else document(value)


def _progress(value: JsonObject | None) -> str | None:
    return None if value is None else _bounded("progress", document(value), MOST_PROGRESS_BYTES)


def _metrics(value: JsonObject | None) -> str | None:
    return None if value is None else _bounded("metrics", document(value), MOST_METRICS_BYTES)


def _bounded(name: str, text: str, most: int) -> str:
    size = len(text.encode())
    if size > most:
        raise InvalidInput(f"`{name}` has {size:,} bytes as JSON, and at most {most:,} are allowed.")
    return text


def _storable(text: str | None) -> str | None:
    """Give a text that PostgreSQL can store, which has no NUL, and that people can read, which is not endless."""
    return None if text is None else text[:MOST_ERROR_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
