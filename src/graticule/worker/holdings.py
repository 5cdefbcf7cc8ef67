"""The tasks that a worker holds: those that run, those that wait for a slot, those whose results are on their way."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from graticule.core.ids import JobId, TaskId
from graticule.messaging.protocol import TaskMessage
from graticule.worker.run import Run


class Release(Protocol):
    """Told of each message that is held no longer."""

    def __call__(self, message: TaskMessage, *, is_lost: bool) -> None:
        """Let go of it; its lease may have been lost."""


class Holdings:
    """Every task under a lease of this worker."""

    def __init__(self, on_release: Release) -> None:
        self._on_release = on_release
        self._held: dict[TaskId, Run] = {}
        self._waiting: deque[Run] = deque()
        self._running: set[Run] = set()
        self._in_process = 0
        self.busy = asyncio.Event()  # something runs
        self.quiet = asyncio.Event()  # nothing does
        self.quiet.set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._waiting)

    @property
    def running(self) -> frozenset[Run]:
        """Those whose handlers run."""
        return frozenset(self._running)

    @property
    def running_count(self) -> int:
        """How many handlers run."""
        return len(self._running)

    @property
    def in_process(self) -> int:
        """How many run, or wait to run, in child processes."""
        return self._in_process

    def all(self) -> list[Run]:
        """Give everything that is held."""
        return list(self._held.values())

    def of_job(self, job_id: JobId) -> list[Run]:
        """Give what is held of one job."""
        return [run for run in self._held.values() if run.message.job_id == job_id]

    def add(self, run: Run) -> None:
        """Take a task that was received; it waits."""
        self._held[run.message.task_id] = run
        self._waiting.append(run)
        self._in_process += run.in_process

    def to_start(self, limit: int) -> Iterator[Run]:
        """Take those that waited longest, as many as the limit of running ones allows."""
        while self._waiting and len(self._running) < limit:
            run = self._waiting.popleft()
            self._running.add(run)
            self.busy.set()
            self.quiet.clear()
            yield run

    def ended(self, run: Run) -> None:
        """Note that a handler has ended; the task is held until it is released."""
        if run in self._running:
            self._running.discard(run)
            self._in_process -= run.in_process
        if not self._running:
            self.busy.clear()
            self.quiet.set()

    def take_waiting(self) -> list[Run]:
        """Take all that wait, to give them back."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._in_process -= sum(run.in_process for run in taken)
        return taken

    def drop_waiting(self, run: Run) -> bool:
        """Forget a task that waits; False when it does not."""
        try:
            self._waiting.remove(run)
        except ValueError:
            return False
        self._in_process -= run.in_process
        self.release(run)
        return True

    def release(self, run: Run) -> None:
        """Forget a task: its result is written, or it is another's."""
        if self._held.get(run.message.task_id) is run:
            del self._held[run.message.task_id]
            self._on_release(run.message, is_lost=run.is_lost)
