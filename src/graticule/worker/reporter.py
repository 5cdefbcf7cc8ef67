"""Writes results in groups: whatever finished while one write was under way goes into the next."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from graticule.core.backoff import Backoff
from graticule.core.errors import PASSING, GraticuleError
from graticule.core.ids import TaskId
from graticule.logs import get_logger
from graticule.worker.outcome import failed, trace_of
from graticule.worker.reports import Report, ReportSink
from graticule.worker.run import Run

LARGEST_BATCH: Final = 1000
LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # about; one statement carries the batch

_log = get_logger(__name__)


class Reporter:
    """Takes finished runs and writes them until they are accepted, or lost."""

    def __init__(self, sink: ReportSink, on_settled: Callable[[Run], None]) -> None:
        self._sink = sink
        self._on_settled = on_settled
        self._pending: deque[tuple[Run, Report]] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def backlog(self) -> int:
        """How many results wait to be written."""
        return len(self._pending)

    def put(self, run: Run, report: Report) -> None:
        """Have a result written as soon as possible."""
        self._pending.append((run, report))
        self._idle.clear()
        self._arrived.set()

    async def drain(self) -> None:
        """Wait until everything is written."""
        await self._idle.wait()

    async def write_forever(self) -> None:
        """Write what comes."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._pending:
                await self._write(self._next_batch())
            self._idle.set()

    def _next_batch(self) -> list[tuple[Run, Report]]:
        """Take what waits, but for what would make the batch too large."""
        batch, size = [self._pending.popleft()], 0
        while self._pending and len(batch) < LARGEST_BATCH:
            size += _size(batch[-1][1])
            if size + _size(self._pending[0][1]) > LARGEST_BATCH_BYTES:
                break
            batch.append(self._pending.popleft())
        return batch

    async def _write(self, batch: Sequence[tuple[Run, Report]]) -> None:
        """Write a batch; the database may be away for a while, and the results are kept until it is back."""
        backoff = Backoff()
        while batch := self._still_wanted(batch):
            try:
                accepted = await self._sink.finish([report for _, report in batch])
            except PASSING as error:
                pause = backoff.next()
                _log.warning("results cannot be written yet", count=len(batch), error=str(error), again_in=pause)
                await asyncio.sleep(pause)
            except Exception as error:
                await self._write_apart(batch, error)
                return
            else:
                self._settle(batch, accepted)
                return

    async def _write_apart(self, batch: Sequence[tuple[Run, Report]], error: Exception) -> None:
        """Find the result that spoils its batch; alone, it fails its own attempt and no other."""
        detail = error.detail if isinstance(error, GraticuleError) else trace_of(error)
        _log.warning("results were refused", count=len(batch), error=str(error), detail=detail)
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        ((run, report),) = batch
        reason = error.message if isinstance(error, GraticuleError) else type(error).__name__
        refused = failed(f"The result could not be recorded: {reason}", retryable=False)
        if report.outcome != refused:
            await self._write([(run, replace(report, outcome=refused, output_ref=None, progress=None))])
        else:
            self._on_settled(run)

    def _still_wanted(self, batch: Sequence[tuple[Run, Report]]) -> list[tuple[Run, Report]]:
        for run, _ in batch:
            if run.is_lost:
                _drop(run)
                self._on_settled(run)
        return [(run, report) for run, report in batch if not run.is_lost]

    def _settle(self, batch: Sequence[tuple[Run, Report]], accepted: set[TaskId]) -> None:
        for run, _ in batch:
            if run.message.task_id not in accepted:
                _drop(run)
            self._on_settled(run)


def _size(report: Report) -> int:
    """Tell about how much text a report is."""
    outcome = report.outcome
    carried = 0 if outcome.output is None or report.output_ref else len(outcome.output)
    return carried + len(outcome.metrics or "") + len(outcome.error_message or "")


def _drop(run: Run) -> None:
    run.is_lost = True
    _log.warning(
        "a result was not accepted: it was written before, or the lease was lost",
        task_id=run.message.task_id,
        job_id=run.message.job_id,
    )
