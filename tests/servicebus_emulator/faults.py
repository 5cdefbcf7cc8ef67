"""What can go wrong with a broker and the way to it, on demand."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random

from tests.servicebus_emulator.refusal import server_busy


class Fate(Enum):
    """What becomes of a frame that has arrived, and of the connection on which it came."""

    HEEDED = auto()
    LOST = auto()  # the connection is cut, and nobody has read the frame
    UNANSWERED = auto()  # the connection is cut when the frame was heeded, before anything is said to it


@dataclass
class _Plan:
    frames_until_cut: int = 0
    probability: float = 0
    random: Random = field(default_factory=Random)
    delay: float = 0
    busy_count: int = 0
    busy_until: float = 0


class Faults:
    """Faults that hold until they are stopped or used up."""

    def __init__(self, cut: Callable[[], None], expire_locks: Callable[[str], None]) -> None:
        self.cut = cut
        self.expire_locks = expire_locks
        self.cuts = 0  # how many connections were cut because of a frame
        self._plan = _Plan()

    def cut_after(self, frames: int) -> None:
        """Cut the connection on which the last of so many frames arrives: heeded, and not answered."""
        self._plan.frames_until_cut = frames

    def cut_at_random(self, probability: float, seed: int = 0) -> None:
        """Cut connections at random, each frame with this probability; every second time before the frame is read."""
        self._plan.probability = probability
        self._plan.random = Random(seed)

    def delay(self, seconds: float) -> None:
        """Let everything that the broker says arrive later."""
        self._plan.delay = seconds

    def busy(self, count: int = 0, *, seconds: float = 0) -> None:
        """Refuse the next operations, so many or for so long, because there is too much to do."""
        self._plan.busy_count = count
        self._plan.busy_until = time.monotonic() + seconds

    def stop(self) -> None:
        """Be a good broker again."""
        self._plan = _Plan()

    @property
    def delay_seconds(self) -> float:
        """Give how much later the broker's words arrive."""
        return self._plan.delay

    def fate_of_frame(self) -> Fate:
        """Decide about a frame that has arrived."""
        plan = self._plan
        if plan.frames_until_cut:
            plan.frames_until_cut -= 1
            if not plan.frames_until_cut:
                return self._cut(Fate.UNANSWERED)
        if plan.probability and plan.random.random() < plan.probability:
            return self._cut(plan.random.choice((Fate.LOST, Fate.UNANSWERED)))
        return Fate.HEEDED

    def refuse_when_busy(self) -> None:
        """Refuse an operation when there is too much to do."""
        if self._plan.busy_count:
            self._plan.busy_count -= 1
            raise server_busy()
        if time.monotonic() < self._plan.busy_until:
            raise server_busy()

    def _cut(self, fate: Fate) -> Fate:
        self.cuts += 1
        return fate
