"""When something is due: retries that wait for their backoff."""

import asyncio
import heapq
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from graticule.core.ids import JobId

LONGEST_PAUSE_SECONDS: Final = 5.0  # the clock may be set meanwhile
Alarm = tuple[datetime, JobId, str]


class Alarms:
    """Gives each node at its time; nodes that are announced twice are given once."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._heap: list[Alarm] = []
        self._known: set[Alarm] = set()
        self._earlier = asyncio.Event()

    def add(self, alarms: Iterable[Alarm]) -> None:
        """Announce nodes."""
        for alarm in alarms:
            if alarm not in self._known:
                self._known.add(alarm)
                heapq.heappush(self._heap, alarm)
                self._earlier.set()

    async def due(self) -> list[Alarm]:
        """Wait until a node is due, and give all that are."""
        while not (found := self._pop(self._now())):
            self._earlier.clear()
            pause = min((self._heap[0][0] - self._now()).total_seconds(), LONGEST_PAUSE_SECONDS) if self._heap else None
            try:
                await asyncio.wait_for(self._earlier.wait(), pause)
            except TimeoutError:
                continue
        return found

    def _pop(self, now: datetime) -> list[Alarm]:
        found = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap))
        self._known.difference_update(found)
        return found
