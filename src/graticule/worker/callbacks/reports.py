"""Results, progress and checkpoints by HTTP."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from graticule.core.errors import GraticuleError
from graticule.core.ids import TaskId
from graticule.handlers.context import Checkpoint
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.worker.callbacks.client import CallbackClient
from graticule.worker.reports import News, Report

AT_ONCE: Final = 8
MOST_RESULTS: Final = 500  # in one request
MOST_BYTES: Final = 4 * 1024 * 1024  # about; an orchestrator takes 10 MiB

_log = get_logger(__name__)


class HttpSink:
    """Sends results in batches, and progress one by one, several at a time."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def finish(self, reports: Sequence[Report]) -> set[TaskId]:
        """Tell how tasks ended, and give those that were accepted: of the others the lease was lost."""
        answers = await asyncio.gather(*map(self._finish, _batches(reports)), return_exceptions=True)
        accepted: set[TaskId] = set()
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer  # all of them are sent again: what was accepted counts once
            accepted |= answer
        return accepted

    async def running(self, news: Sequence[News]) -> None:
        """Tell of tasks that still run."""
        await asyncio.gather(*map(self._running, news))

    async def _finish(self, batch: Sequence[Report]) -> set[TaskId]:
        async with self._at_once:
            answer = await self._client.ask("task-results", {"results": [_result(report) for report in batch]})
        return {
            TaskId(receipt["task_id"])
            for receipt in answer["receipts"]
            if receipt["accepted"] or receipt["task"] == "done"
        }

    async def _running(self, news: News) -> None:
        try:
            async with self._at_once:
                await self._client.report("task-progress", news.message, {"progress": news.progress})
        except GraticuleError as error:
            _log.warning("progress cannot be told", task_id=news.message.task_id, error=str(error))


def _batches(reports: Sequence[Report]) -> Iterator[list[Report]]:
    """Divide reports into what one request can carry."""
    batch: list[Report] = []
    size = 0
    for report in reports:
        if batch and (len(batch) == MOST_RESULTS or size + _size(report) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(report)
        size += _size(report)
    if batch:
        yield batch


def _size(report: Report) -> int:
    outcome = report.outcome
    return 1000 + len(outcome.output or b"") + len(outcome.metrics or "") + len(outcome.error_message or "")


def _result(report: Report) -> dict[str, Any]:
    outcome = report.outcome
    return {
        "task_id": report.message.task_id,
        "delivery_count": report.message.delivery_count,
        "status": outcome.status.value,
        "output": None if outcome.output is None else orjson.Fragment(outcome.output),  # it is JSON already
        "output_ref": report.output_ref,
        "error_message": outcome.error_message,
        "retryable": outcome.retryable,
        "metrics": None if outcome.metrics is None else orjson.Fragment(outcome.metrics),
        "progress": report.progress,
        "reported_at": datetime.now(UTC).isoformat(),
    }


class HttpCheckpoints:
    """Keeps checkpoints by way of the orchestrator."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client

    async def load(self, message: TaskMessage) -> Checkpoint | None:
        """Give the last checkpoint of the task's node."""
        found = await self._client.find("checkpoint", task_id=message.task_id)
        return None if found is None else Checkpoint(found["phase"], found["data"], tuple(found["artifacts"]))

    async def save(self, message: TaskMessage, checkpoint: Checkpoint) -> bool:
        """Keep a checkpoint; False when the task is not this worker's any more."""
        content = {"phase": checkpoint.phase, "data": checkpoint.data, "artifacts": list(checkpoint.artifacts)}
        return await self._client.report("checkpoint", message, content)
