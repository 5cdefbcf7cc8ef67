"""Connections that have much to parse take turns, one in each turn of the loop, so that others are served meanwhile."""

import asyncio
from collections import deque
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl


class Turns:
    """The connections that have something left to parse, in the order in which they continue."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._next: asyncio.Handle | None = None

    def add(self, proceed: Callable[[], None]) -> None:
        """Have this called in a later turn."""
        self._waiting.append(proceed)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._take)

    def _take(self) -> None:
        self._next = None
        try:
            self._waiting.popleft()()
        finally:
            self._schedule()


class HeldFlow(FlowControl):
    """uvicorn's flow control, where nothing is read either while something is left to parse."""

    is_held = False

    def hold(self) -> None:
        """Read nothing until it is released; uvicorn may have resumed the transport directly."""
        self.is_held = True
        self._transport.pause_reading()

    def release(self) -> None:
        """Read again, unless uvicorn has a reason not to."""
        if self.is_held:
            self.is_held = False
            if not self.read_paused:
                self._transport.resume_reading()

    def resume_reading(self) -> None:
        """Take back uvicorn's reason."""
        if self.is_held:
            self.read_paused = False
        else:
            super().resume_reading()
