"""Takes tasks from the queues: as many as there is room for, when there are any.

It is woken by notifications. A slow poll is the safety net, and a timer stands for tasks that wait for their
time. Of quick tasks it takes some more than there are slots, so that a slot never waits for the database; of
slow ones it takes none in advance, for another worker may be idle.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from graticule.core.backoff import Backoff
from graticule.core.errors import GraticuleError
from graticule.core.ids import TaskId
from graticule.logs import get_logger
from graticule.messaging.protocol import LARGEST_CLAIM, TaskMessage
from graticule.worker.holdings import Holdings
from graticule.worker.run import Run
from graticule.worker.spare_process import partners_of, seconds_until_due

POLL_SECONDS: Final = 5.0
AHEAD_SECONDS: Final = 0.1  # as much work as this is taken in advance
MOST_AHEAD: Final = 400  # tasks
MOST_UNWRITTEN: Final = 2000  # results; the database is slow or away, and more work would not help
_LOOK_AHEAD_SECONDS: Final = 1.0  # between two looks at what waits for its time

_log = get_logger(__name__)


class Source(Protocol):
    """Where tasks come from, and go back to."""

    async def receive(
        self, queue: str, limit: int, without: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> list[TaskMessage]:
        """Take up to so many messages of a queue, except those of handlers `without` and partners `passed_over`."""

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        """Tell in how many seconds a message that waits for its time can be received."""

    async def abandon(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Give messages back."""

    async def abandon_all_but(self, held: Collection[TaskId]) -> set[TaskId]:
        """Give back what was received, and never arrived."""


class Pace:
    """How long tasks take, lately."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def note(self, seconds: float) -> None:
        """Note how long a task took."""
        self._seconds = seconds if self._seconds is None else 0.9 * self._seconds + 0.1 * seconds

    def ahead(self, slots: int) -> int:
        """Tell how many tasks may be taken in advance for so many slots."""
        if self._seconds is None:
            return 0
        return min(MOST_AHEAD, int(slots * AHEAD_SECONDS / max(self._seconds, 1e-6)))


@dataclass(slots=True)
class WatchedQueue:
    """A queue, and what is known of it."""

    name: str
    is_heavy: bool  # its last tasks were for child processes
    may_have: bool = True  # tasks; False once it was seen empty, until someone says otherwise
    may_have_light: bool = True  # tasks that need no child process
    none_for_others: float = float("-inf")  # when it was seen to have none of other partners

    def announce(self) -> None:
        """Note that there may be tasks of any kind."""
        self.may_have = self.may_have_light = True
        self.none_for_others = float("-inf")

    def may_have_for_others(self, now: float) -> bool:
        """Whether there may be tasks for child processes that are of other partners than those who hold them."""
        return self.is_heavy and self.may_have and now - self.none_for_others >= POLL_SECONDS


@dataclass(frozen=True, slots=True)
class Claim:
    """What can be taken from a queue now."""

    limit: int
    is_light: bool = False  # no child process is free: only what needs none


class Consumer:
    """Claims tasks and hands them over."""

    def __init__(
        self,
        source: Source,
        queues: Sequence[str],
        holdings: Holdings,
        *,
        concurrency: int,
        processes: int,
        hold: Callable[[TaskMessage], Run],
        on_held: Callable[[TaskMessage], None],
        start: Callable[[], None],
        unwritten: Callable[[], int],
        heavy: Mapping[str, str],
    ) -> None:
        self.pace = Pace()
        self._source = source
        self._heavy = frozenset(heavy)  # the handlers that need a child process, by name with their usual queue
        self._queues = {name: WatchedQueue(name, name in heavy.values()) for name in queues}
        self._holdings = holdings
        self._concurrency = concurrency
        self._processes = processes
        self._hold = hold
        self._on_held = on_held
        self._start = start
        self._unwritten = unwritten
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._lost_answer = False  # to a claim: the database may have leased us tasks that we do not know of
        self._looked_ahead = float("-inf")

    def announce(self, queue: str | None = None) -> None:
        """Note that a queue (or any) may have tasks now."""
        for watched in [self._queues[queue]] if queue is not None else self._queues.values():
            watched.announce()
        self._wake.set()

    def slot_freed(self) -> None:
        """Note that there is more room than before."""
        if any(watched.may_have for watched in self._queues.values()):
            self._wake.set()

    def stop(self) -> None:
        """Take nothing more. A claim that is under way is finished: what it took must not be forgotten."""
        self._is_stopping = True
        self._wake.set()

    async def consume(self) -> None:
        """Claim until told to stop."""
        backoff = Backoff()
        while not self._is_stopping:
            try:
                self._wake.clear()
                await self.give_back_unknown()
                if not await self._claim_round():
                    await self._wait()
                backoff.succeeded()
            except GraticuleError as error:
                pause = backoff.next()
                _log.warning("tasks cannot be claimed", error=str(error), detail=error.detail, again_in=pause)
                self._lost_answer = True
                await asyncio.sleep(pause)
                self.announce()

    async def give_back_unknown(self) -> None:
        """Give back what we may have been given and do not know of."""
        if self._lost_answer:
            await self._source.abandon_all_but({run.message.task_id for run in self._holdings.all()})
            self._lost_answer = False

    async def _claim_round(self) -> bool:
        """Claim once from each queue that may have tasks; False when none could be asked or had any."""
        took = False
        for watched in list(self._queues.values()):
            claim = self._room(watched)
            may_have = watched.may_have_light if claim.is_light else watched.may_have
            if may_have and claim.limit > 0 and not self._is_stopping:
                took |= await self._claim(watched, claim)
        self._rotate()
        return took | await self._claim_for_others()

    async def _claim_for_others(self) -> bool:
        """Claim a task of a partner who has none in the child processes, when long tasks hold all of them."""
        if self._seconds_to_spare() != 0 or self._is_stopping:
            return False
        holders, now = partners_of(self._heavy_runs), time.monotonic()
        for watched in [each for each in self._queues.values() if each.may_have_for_others(now)]:
            watched.none_for_others = now  # before the claim, as in `_claim`
            messages = await self._source.receive(watched.name, 1, passed_over=holders)
            if messages:
                watched.announce()
                self._hold_all([self._hold(message) for message in messages])
                self._start()
                return True
        return False

    @property
    def _heavy_runs(self) -> list[Run]:
        return [run for run in self._holdings.running if run.in_process]

    def _seconds_to_spare(self) -> float | None:
        """Return in how many seconds the spare process may be used if no task ends; None if it may not."""
        heavy = self._heavy_runs
        is_waiting = self._holdings.in_process > len(heavy)
        if is_waiting or self._free <= 0 or self._unwritten() > MOST_UNWRITTEN:
            return None
        return seconds_until_due(heavy, self._processes, time.monotonic())

    async def _claim(self, watched: WatchedQueue, claim: Claim) -> bool:
        # Before the claim: a notification that comes during it counts.
        watched.may_have_light, watched.may_have = False, claim.is_light
        without = self._heavy if claim.is_light else ()
        messages = await self._source.receive(watched.name, claim.limit, without)
        if len(messages) == claim.limit:
            watched.announce()
        if messages:
            excess = self._take(watched, messages, claim)
            self._start()
            if excess:
                watched.announce()
                await self._source.abandon([run.message for run in excess], counts=False)
        return bool(messages)

    def _take(self, watched: WatchedQueue, messages: Sequence[TaskMessage], claim: Claim) -> list[Run]:
        """Hold what was claimed, and give what no child process is free for: another worker may have one."""
        runs = [self._hold(message) for message in messages]
        watched.is_heavy = claim.is_light or any(run.in_process for run in runs)
        excess = []
        for run in runs:
            if run.in_process and self._holdings.in_process >= self._processes:
                excess.append(run)
            else:
                self._hold_all([run])
        return excess

    def _hold_all(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self._holdings.add(run)
            self._on_held(run.message)

    @property
    def _free(self) -> int:
        return self._concurrency - self._holdings.running_count - self._holdings.waiting

    def _room(self, watched: WatchedQueue) -> Claim:
        """Tell what can be taken from a queue now."""
        if self._unwritten() > MOST_UNWRITTEN:
            return Claim(0)
        free = self._free
        processes = self._processes - self._holdings.in_process
        if watched.is_heavy and processes > 0:
            return Claim(min(free, processes))
        ahead = self.pace.ahead(self._concurrency)
        if free <= 0 and -free > ahead // 2:
            return Claim(0)  # a few at a time would cost as much as many
        return Claim(min(free + ahead, LARGEST_CLAIM), is_light=watched.is_heavy)

    def _rotate(self) -> None:
        """Let another queue be the first next time."""
        first = next(iter(self._queues))
        self._queues[first] = self._queues.pop(first)

    async def _wait(self) -> None:
        """Wait for a notification, for room, for a task's time, or for the next poll."""
        if self._wake.is_set():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(await self._patience()):
                await self._wake.wait()
                return
        self.announce()

    async def _patience(self) -> float:
        """Tell how long to wait; the look at what waits for its time is not taken after every task."""
        if any(watched.may_have for watched in self._queues.values()):
            # It is room that is missing.
            return min(self._seconds_to_spare() or POLL_SECONDS, POLL_SECONDS)
        since = time.monotonic() - self._looked_ahead
        if since < _LOOK_AHEAD_SECONDS:
            return _LOOK_AHEAD_SECONDS - since
        self._looked_ahead = time.monotonic()
        seconds = await self._source.seconds_to_next(list(self._queues))
        return POLL_SECONDS if seconds is None else min(max(seconds, 0.001), POLL_SECONDS)
