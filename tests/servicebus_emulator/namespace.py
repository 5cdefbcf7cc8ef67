"""The queues of a namespace by their names, and the timers that wake them."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from tests.servicebus_emulator.queue import Queue, QueueOptions, queue_with_dead_letters
from tests.servicebus_emulator.refusal import not_found

_DEAD_LETTERS: Final = "/$deadletterqueue"


def now() -> int:
    """Give the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Alarm:
    """One timer for a queue, at the first of the times at which something is due."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._when: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        queue.when_due = self._set

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, when: int) -> None:
        if self._when is not None and self._when <= when:
            return
        self.stop()
        self._when = when
        self._timer = asyncio.get_running_loop().call_later(max(0, when - now()) / 1000, self._ring)

    def _ring(self) -> None:
        self._when = None
        following = self._queue.tick()
        if following is not None:
            self._set(following)


class Namespace:
    """Queues that can be made and removed."""

    def __init__(self, when_removed: Callable[[str], None]) -> None:
        self._when_removed = when_removed
        self.queues: dict[str, Queue] = {}
        self._names: dict[str, str] = {}  # names are the same in capitals
        self._alarms: dict[str, list[_Alarm]] = {}

    def create(self, name: str, options: QueueOptions) -> Queue:
        """Make a queue."""
        queue = queue_with_dead_letters(name, options, now)
        self.queues[name] = queue
        self._names[name.lower()] = name
        self._alarms[name] = [_Alarm(each) for each in (queue, queue.dead_letters) if each is not None]
        return queue

    def remove(self, name: str) -> None:
        """Remove a queue with all that is in it."""
        queue = self.find(name)
        del self._names[name.lower()]
        del self.queues[queue.name]
        for alarm in self._alarms.pop(queue.name):
            alarm.stop()
        self._when_removed(queue.name.lower())

    def has(self, name: str) -> bool:
        """Tell whether there is a queue with that name."""
        return name.lower() in self._names

    def find(self, path: str) -> Queue:
        """Give the queue with that path; that of its dead letters is below its own."""
        name = path.lower().removesuffix(_DEAD_LETTERS)
        if name not in self._names:
            raise not_found(path)
        queue = self.queues[self._names[name]]
        return queue if name == path.lower() or queue.dead_letters is None else queue.dead_letters

    def expire_locks(self, path: str) -> None:
        """End all locks of a queue as if their time were over."""
        self.find(path).expire_locks()

    def close(self) -> None:
        """Let no timer wake a queue any more."""
        for alarms in self._alarms.values():
            for alarm in alarms:
                alarm.stop()
