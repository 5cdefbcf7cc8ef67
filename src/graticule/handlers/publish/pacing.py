"""How the handlers wait and stop: they hear soon that nobody waits for them, and leave nothing half begun."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from graticule.core.cancellation import end_tasks
from graticule.core.errors import ConfigurationError, GraticuleError, InvalidInput, NotFound
from graticule.handlers.answers import go_on
from graticule.handlers.context import HandlerContext
from graticule.handlers.result import HandlerResult
from graticule.repositories.database import Database
from graticule.repositories.publications import PublicationHold, Unwanted

HEARTBEAT_SECONDS: Final = 1.0
LAST_BEAT_SECONDS: Final = 3.0
LISTEN_SECONDS: Final = 0.1

_FOR_GOOD: Final = (Unwanted, NotFound, ConfigurationError, InvalidInput)
T = TypeVar("T")


class Pace:
    """Tells whether a task is to go on: it is not cancelled, and what it holds is still its own."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        self._stopped_by: Exception | None = None

    def go_on(self) -> None:
        """Raise what ends the task."""
        go_on(self._ctx)
        if self._stopped_by is not None:
            raise self._stopped_by

    def stop(self, error: Exception) -> None:
        """Let whoever asks next end with this."""
        self._stopped_by = self._stopped_by or error

    async def pause(self, seconds: float) -> None:
        """Wait, unless the task is to end before."""
        until = time.monotonic() + seconds
        self.go_on()
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, LISTEN_SECONDS))
            self.go_on()

    async def while_wanted(self, work: Awaitable[T]) -> T:
        """Wait for what can be broken off at any time, as long as the task is to go on."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=LISTEN_SECONDS)
                if not task.done():
                    self.go_on()
            return await task
        finally:
            await end_tasks(task)

    @asynccontextmanager
    async def keeping(self, hold: PublicationHold) -> AsyncIterator[None]:
        """Say every second that the hold is still needed; when it is lost, or unwanted, the task is to end."""
        over = asyncio.Event()
        heartbeat = asyncio.create_task(self._keep(hold, over))
        try:
            yield
        finally:
            over.set()
            await asyncio.wait([heartbeat], timeout=LAST_BEAT_SECONDS)  # its question would be broken off else
            await end_tasks(heartbeat)
        self.go_on()

    async def _keep(self, hold: PublicationHold, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                await hold.confirm()
            except GraticuleError as error:
                self.stop(error)
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), HEARTBEAT_SECONDS)


async def unbroken(work: Awaitable[T], pace: Pace) -> T:
    """Wait for what must not go on by itself when this task is cancelled, such as a thread that renames a file."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        pace.stop(InterruptedError("cancelled"))
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # it was heard
        raise


def failure_of(error: GraticuleError) -> HandlerResult:
    """Tell of a failure, and whether another attempt could succeed."""
    return HandlerResult.failure(str(error), retryable=not isinstance(error, _FOR_GOOD))


def database_of(ctx: HandlerContext) -> Database:
    """Give the database, which not every worker has."""
    if ctx.database is None:
        raise ConfigurationError("This worker has no database, and cannot publish.")
    return ctx.database
