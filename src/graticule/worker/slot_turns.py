"""Keeps the slow tasks of one partner from taking every child process between the steps of another partner's job.

A job that has finished a step queues its next one a moment later. Without a pause, a slow task of another partner takes
the child process in this moment, and the job waits for a whole slow task at each of its steps.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from graticule.worker.run import Run

SLOW_SECONDS: Final = 1.0  # what a task takes for which others would notice the wait
PAUSE_SECONDS: Final = 0.5  # from the end of a step until the next one is queued, with time to spare


class SlotTurns:
    """Which partners' tasks a worker passes over for a moment, because they hold all child processes but one."""

    def __init__(self, processes: int, now: Callable[[], float] = time.monotonic) -> None:
        self._processes = processes
        self._now = now
        self._slow: set[str] = set()  # partners whose last task was slow
        self._passed_over: frozenset[str] = frozenset()
        self._until = float("-inf")

    @property
    def seconds_left(self) -> float:
        """How long the pause still lasts; at most 0 when there is none."""
        return self._until - self._now()

    @property
    def passed_over(self) -> frozenset[str]:
        """The partners whose tasks are left in the queue until the pause is over."""
        return self._passed_over if self.seconds_left > 0 else frozenset()

    def on_end(self, ended: Run, running: Iterable[Run]) -> None:
        """Begin a pause, or prolong it, when a quick task ends while slow ones of others hold the other processes."""
        partner = _partner(ended)
        if ended.in_process:
            (self._slow.add if self._is_slow(ended) else self._slow.discard)(partner)
        others = [_partner(run) for run in running if run.in_process and self._holds_long(run)]
        if partner not in self._slow and partner not in others and 0 < self._processes - 1 <= len(others):
            self._passed_over = frozenset(others)
            self._until = self._now() + PAUSE_SECONDS

    def _holds_long(self, run: Run) -> bool:
        return _partner(run) in self._slow or self._is_slow(run)

    def _is_slow(self, run: Run) -> bool:
        return run.started is not None and self._now() - run.started >= SLOW_SECONDS


def _partner(run: Run) -> str:
    """Return whose task it is: the priorities of a partner are shares `pa`, `pa/1` and so on."""
    return run.message.share.partition("/")[0]
