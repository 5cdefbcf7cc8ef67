"""Tells the owners of jobs about tasks that take long: that they run, and how far they are.

A task that ends within a second never says that it runs. Of the others all that is new goes into one
statement, at most once a second for each task.
"""

import asyncio
import time
from typing import Final

from graticule.core.errors import GraticuleError
from graticule.logs import get_logger
from graticule.worker.holdings import Holdings
from graticule.worker.reports import News, ReportSink
from graticule.worker.run import Run

TELL_AFTER_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.5

_log = get_logger(__name__)


class Pulse:
    """Reports of tasks that run."""

    def __init__(self, sink: ReportSink, holdings: Holdings) -> None:
        self._sink = sink
        self._holdings = holdings
        self._telling = asyncio.Lock()

    async def beat_forever(self) -> None:
        """Look twice a second at what runs, while anything does."""
        while True:
            await self._holdings.busy.wait()
            await asyncio.sleep(_TICK_SECONDS)
            async with self._telling:
                await self._tell([run for run in self._holdings.running if _has_news(run, time.monotonic())])

    async def settle(self, run: Run) -> None:
        """Wait until nothing of this run is on its way: its result must not be overtaken."""
        if run.told is not None:
            async with self._telling:
                pass

    async def _tell(self, runs: list[Run]) -> None:
        if not runs:
            return
        news = [News(run.message, run.progress) for run in runs]
        for run in runs:
            run.told, run.progress = time.monotonic(), None
        try:
            await self._sink.running(news)
        except GraticuleError as error:
            _log.warning("progress cannot be told", count=len(news), error=str(error))


def _has_news(run: Run, now: float) -> bool:
    if run.started is None or run.is_over:
        return False
    if run.told is None:
        return now - run.started >= TELL_AFTER_SECONDS
    return run.progress is not None and now - run.told >= TELL_AFTER_SECONDS
