"""What is due when: the next one is found at once, and one that was called off costs nothing more."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
_FEW: Final = 64


class Deadlines(Generic[Key]):
    """Keys with the time at which each is due."""

    def __init__(self) -> None:
        self._due: dict[Key, int] = {}
        self._heap: list[tuple[int, int, Key]] = []  # also what was called off, until it comes up
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Key, when: int) -> None:
        """Let a key be due then, and not at another time that was set before."""
        self._due[key] = when
        self._count += 1  # keys need no order among themselves
        heapq.heappush(self._heap, (when, self._count, key))
        if len(self._heap) > 2 * len(self._due) + _FEW:
            self._heap = [(due, order, key) for order, (key, due) in enumerate(self._due.items())]
            heapq.heapify(self._heap)
            self._count = len(self._heap)

    def drop(self, key: Key) -> None:
        """Call a key off."""
        self._due.pop(key, None)

    def next(self) -> int | None:
        """Give when the next key is due."""
        heap = self._heap
        while heap and self._due.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: int) -> Iterator[Key]:
        """Take the keys that are due, in the order of their times."""
        while (when := self.next()) is not None and when <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            yield key
