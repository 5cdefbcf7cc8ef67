"""What the parts of an orchestrator have in common: each runs for ever, and sleeps until something happens."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from graticule.core.backoff import Backoff
from graticule.core.errors import PASSING
from graticule.logs import get_logger

_log = get_logger(__name__)
WENT_WELL_SECONDS: Final = 10.0  # longer than any wait for the database: what ran so long has done something


async def signal(event: asyncio.Event, seconds: float | None, *, clear: bool = True) -> None:
    """Wait for an event, but not longer than so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    if clear:
        event.clear()


async def persistently(part: Callable[[], Awaitable[None]]) -> None:
    """Run a part for ever: an error is logged, and after a pause it goes on from the rows."""
    backoff = Backoff()
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await part()
        except PASSING as error:
            _log.warning("a part of the loop waits for what it needs", part=part.__name__, error=error.message)
        except Exception:
            _log.exception("a part of the loop failed and is begun anew", part=part.__name__)
        if asyncio.get_running_loop().time() - began > WENT_WELL_SECONDS:
            backoff.succeeded()
        await asyncio.sleep(backoff.next())
