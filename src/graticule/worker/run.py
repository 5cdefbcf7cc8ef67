"""One task in a worker's hands, from the claim until its result is written or it is given back."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from graticule.handlers.context import Signals
from graticule.handlers.registry import RegisteredHandler
from graticule.messaging.protocol import TaskMessage

STUBBORN_SECONDS: Final = 5.0


class Ending(StrEnum):
    """Why a run is made to end."""

    TIMED_OUT = "timed_out"
    WITHDRAWN = "withdrawn"  # the job was cancelled, or has failed
    LOST = "lost"  # another worker may have the task
    HANDED_BACK = "handed_back"  # this worker stops


@dataclass(slots=True, eq=False)
class Run:
    """The state of a task that a worker holds."""

    message: TaskMessage
    handler: RegisteredHandler | None
    in_process: bool  # runs in a child process
    signals: Signals = field(default_factory=Signals)
    task: asyncio.Task[None] | None = None
    started: float | None = None  # when its handler began; time.monotonic()
    ending: Ending | None = None
    is_over: bool = False  # its handler has ended, or is not waited for any more
    is_lost: bool = False  # another's, perhaps: its result would be refused
    progress: dict[str, JsonValue] | None = None  # not yet told
    told: float | None = None  # when the owner was last told that it runs
    on_signal: Callable[[], None] | None = None  # passes signals on to a child process
    on_stubborn: Callable[["Run"], None] | None = None  # the handler does not end
    timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def begin(self, timeout_seconds: float) -> None:
        """Note that the handler begins, and end it when its time is over."""
        self.started = time.monotonic()
        self._later(timeout_seconds, self.end, Ending.TIMED_OUT)

    def note_progress(self, progress: dict[str, JsonValue]) -> None:
        """Keep what the handler told last."""
        self.progress = progress

    def tell(self, *, cancelled: bool = False, shutdown: bool = False) -> None:
        """Let the handler know."""
        self.signals.cancelled |= cancelled
        self.signals.shutdown_requested |= shutdown
        if self.on_signal is not None:
            self.on_signal()

    def withdraw(self, grace_seconds: float) -> None:
        """Note that nobody wants the task any more: the handler is told, and made to end after the grace."""
        self.tell(cancelled=True)
        self.end(Ending.WITHDRAWN, grace_seconds=grace_seconds)

    def lose(self) -> None:
        """Note that the task may be another worker's: the handler is told, and made to end."""
        self.is_lost = True
        self.tell(cancelled=True)
        self.end(Ending.LOST)

    def end(self, ending: Ending, *, grace_seconds: float = 0) -> None:
        """Make the handler end: it is cancelled, its child process killed."""
        if self.ending is not None or self.is_over:
            return
        self.ending = ending
        if grace_seconds > 0:
            self._later(grace_seconds, self._cancel)
        else:
            self._cancel()

    def over(self) -> None:
        """Note that nothing more is to come from the handler."""
        self.is_over = True
        self.on_signal = None
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self._later(STUBBORN_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """Wait no longer for a handler that took the cancellation and went on."""
        if self.on_stubborn is not None:
            self.on_stubborn(self)

    def _later(self, seconds: float, call: Callable[..., None], *arguments: object) -> None:
        self.timers.append(asyncio.get_running_loop().call_later(seconds, call, *arguments))
