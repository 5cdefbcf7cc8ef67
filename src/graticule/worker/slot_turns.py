"""Keeps the slow tasks of one partner from holding every child process while other partners wait.

A job that has finished a step queues its next one a moment later. Without a pause, a slow task of another partner takes
the child process in this moment, and the job waits for a whole slow task at each of its steps. Where long tasks have
taken all processes already, one process more is for a partner that has none.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from graticule.worker.run import Run

SLOW_SECONDS: Final = 1.0  # what a task takes for which others would notice the wait
LONG_SECONDS: Final = 10.0  # others do not wait for longer than this until they get a process of their own
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

    def holders(self, running: Iterable[Run]) -> frozenset[str]:
        """Return the partners whose long tasks hold every child process; none if one is free, or one more is used."""
        held = [run for run in running if run.in_process]
        return frozenset(map(_partner, held)) if self.seconds_to_long(held) == 0 else frozenset()

    def seconds_to_long(self, running: Iterable[Run]) -> float | None:
        """Return in how many seconds long tasks hold every child process if none of them ends; None if one is free."""
        held = [self._seconds(run) for run in running if run.in_process]
        return max(0.0, LONG_SECONDS - min(held)) if len(held) == self._processes else None

    def _holds_long(self, run: Run) -> bool:
        return _partner(run) in self._slow or self._is_slow(run)

    def _is_slow(self, run: Run) -> bool:
        return self._seconds(run) >= SLOW_SECONDS

    def _seconds(self, run: Run) -> float:
        return 0.0 if run.started is None else self._now() - run.started


def _partner(run: Run) -> str:
    """Return whose task it is: the priorities of a partner are shares `pa`, `pa/1` and so on."""
    return run.message.share.partition("/")[0]
