"""Keeps the leases of all tasks that a worker holds, and ends what it does not hold any more."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from graticule.core.errors import GraticuleError
from graticule.core.ids import JobId
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskQueue
from graticule.repositories.tasks import LeaseState
from graticule.worker.holdings import Holdings
from graticule.worker.metrics import Renewal, WorkerMetrics
from graticule.worker.run import Ending, Run

CANCEL_GRACE_SECONDS: Final = 5.0  # for a handler whose job is over to end by itself
_RETRY_SECONDS: Final = 1.0

_log = get_logger(__name__)


class LeaseKeeper:
    """Renews leases, all of them in one statement."""

    def __init__(self, queue: TaskQueue, holdings: Holdings, renew_seconds: float, metrics: WorkerMetrics) -> None:
        self._queue = queue
        self._holdings = holdings
        self._renew_seconds = renew_seconds
        self._metrics = metrics
        self._now = asyncio.Event()

    async def renew_forever(self) -> None:
        """Renew again and again; when that fails, sooner."""
        pause = self._renew_seconds
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._now.wait()
            self._now.clear()
            renewed = await self._renew(self._holdings.all())
            pause = self._renew_seconds if renewed else min(_RETRY_SECONDS, self._renew_seconds)

    def renew_now(self) -> None:
        """Renew everything at once: a cancel may have been missed."""
        self._now.set()

    async def check(self, job_id: JobId) -> None:
        """Find out at once whether a job still wants its tasks."""
        await self._renew(self._holdings.of_job(job_id))

    async def _renew(self, runs: Sequence[Run]) -> bool:
        if not runs:
            return True
        try:
            states = await self._queue.renew([run.message for run in runs])
        except GraticuleError as error:
            _log.warning("leases cannot be renewed", count=len(runs), error=str(error))
            self._metrics.renewed(Renewal.UNANSWERED, len(runs))
            return False
        held = sum(state is LeaseState.HELD for state in states.values())
        self._metrics.renewed(Renewal.RENEWED, held)
        self._metrics.renewed(Renewal.REFUSED, len(runs) - held)
        for run in runs:
            state = states.get(run.message.task_id, LeaseState.LOST)
            if state is not LeaseState.HELD:
                self._end(run, state)
        return True

    def _end(self, run: Run, state: LeaseState) -> None:
        is_lost = state is not LeaseState.WITHDRAWN
        if run.is_over or run.is_lost:  # a result that is on its way and was not accepted will not be, if it is lost
            run.is_lost |= is_lost
            return
        if run.ending is Ending.WITHDRAWN and not is_lost:
            return  # known already
        _log.warning("a task is lost", task_id=run.message.task_id, job_id=run.message.job_id, state=state.value)
        self._metrics.lease_lost(state)
        if self._holdings.drop_waiting(run):
            return
        if is_lost:
            run.lose()
        else:
            run.withdraw(CANCEL_GRACE_SECONDS)
