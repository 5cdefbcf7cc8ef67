"""How much is worked on at once, and for how long: what is more is refused, and what takes longer is given up."""

import asyncio
import math
import os
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graticule.core.errors import TooSlow, Unavailable

LONGEST_QUERY: Final = 8192
WAITING_FOR_EACH: Final = 16  # requests that may wait for each one that is worked on
MIN_BYTES_PER_SECOND: Final = 16 * 1024  # of an answer in parts: who reads more slowly holds a place for too long


def default_concurrency() -> int:
    """Give how many requests to work on at once: reading pixels waits for the disk about as long as it computes."""
    return max(8, 2 * (os.cpu_count() or 1))


class QueryLimit:
    """Middleware that refuses a request with more parameters than anyone needs, before they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise why not."""
        if len(scope.get("query_string", b"")) > LONGEST_QUERY:
            raise HTTPException(414, f"The parameters of a request may have at most {LONGEST_QUERY} bytes here.")
        await self._app(scope, receive, send)


class Capacity:
    """The places at which requests are worked on, and the queue before them."""

    def __init__(self, places: int) -> None:
        self._free = asyncio.Semaphore(places)
        self._most_waiting = WAITING_FOR_EACH * places
        self._waiting = 0

    async def take(self) -> None:
        """Take a place, once one is free; `Unavailable` at once when too many wait already."""
        if self._waiting >= self._most_waiting:
            raise Unavailable("Too many requests are waiting to be worked on.", hint="Try again in a few seconds.")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    def give_back(self) -> None:
        """Let the next one go on."""
        self._free.release()


class Bounded:
    """Runs an application at one of the places of a capacity, and gives up after a time.

    A large answer that is sent in parts may take longer, as long as each part is taken in that time, and all of them at
    a reasonable speed.

    A thread that reads pixels cannot be stopped from outside. So who asked is told, and the place is free again when
    the thread has come to its end: never more are at work than there are places.
    """

    def __init__(self, app: ASGIApp, capacity: Capacity, seconds: float) -> None:
        self._app = app
        self._capacity = capacity
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or raise `Unavailable` or `TooSlow`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(until):
                await self._capacity.take()
        except TimeoutError:
            raise _too_slow(self._seconds) from None
        muted = _Muted(send)
        work = asyncio.ensure_future(self._app(scope, receive, muted.send))
        work.add_done_callback(self._ended)
        await self._wait(work, muted, until)

    async def _wait(self, work: "asyncio.Future[None]", muted: "_Muted", until: float) -> None:
        loop = asyncio.get_running_loop()
        while not work.done() and (left := max(until, self._until_next_part(muted, until)) - loop.time()) > 0:
            try:
                await asyncio.wait({work}, timeout=left)
            except asyncio.CancelledError:
                work.cancel()
                raise
        if work.done():
            await work
            return
        muted.mute()
        work.cancel()
        raise _too_slow(self._seconds)

    def _until_next_part(self, muted: "_Muted", until: float) -> float:
        return min(muted.sent_at + self._seconds, until + muted.sent_bytes / MIN_BYTES_PER_SECOND)

    def _ended(self, work: "asyncio.Future[None]") -> None:
        self._capacity.give_back()
        if not work.cancelled():
            work.exception()  # it is known: who waited has raised it, or was told of the time


class _Muted:
    """Passes messages on until it is told that nobody listens any more."""

    def __init__(self, send: Send) -> None:
        self._send: Send | None = send
        self.sent_at = -math.inf  # when a part of an answer was taken, and more are to come
        self.sent_bytes = 0

    async def send(self, message: Message) -> None:
        if self._send is not None:
            await self._send(message)
            if message.get("more_body"):
                self.sent_at = asyncio.get_running_loop().time()
                self.sent_bytes += len(message["body"])

    def mute(self) -> None:
        self._send = None


def _too_slow(seconds: float) -> TooSlow:
    return TooSlow(
        f"The answer could not be made within {seconds:g} s.",
        hint="Ask for less at once: a smaller picture, a smaller part, fewer features.",
    )
