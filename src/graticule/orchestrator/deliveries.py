"""Sends callbacks beside the loop: when one is told of, and when one is due."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from graticule.config import Settings
from graticule.core.cancellation import end_tasks
from graticule.core.channels import CALLBACKS
from graticule.core.errors import PASSING
from graticule.core.table import DatabaseRole
from graticule.logs import get_logger
from graticule.orchestrator.parts import persistently, signal
from graticule.repositories.callbacks import ClaimedCallback, host_of
from graticule.repositories.listener import Listener, listening
from graticule.services.deliveries import CallbackSender

_log = get_logger(__name__)
AT_ONCE: Final = 10
AT_ONCE_PER_HOST: Final = 3  # so that a host that is silent leaves room for others
SHORTEST_SECONDS: Final = 0.1  # what is due, and not given to us, is being claimed by another


class Deliveries:
    """Sends what is due for as long as it runs; any number of orchestrators share the work."""

    def __init__(self, sender: CallbackSender, url: str, settings: Settings) -> None:
        self._sender = sender
        self._listener = Listener(url, DatabaseRole.ORCHESTRATOR, [CALLBACKS], name="graticule-orchestrator-callbacks")
        self._poll_seconds = settings.orchestrator_poll_interval
        self._look = asyncio.Event()
        self._sending: dict[asyncio.Task[None], str] = {}  # with the host that it goes to

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run beside the caller. What is being sent at the end is cut off, and sent again by another."""
        tasks = [asyncio.create_task(persistently(part)) for part in (self._listen, self._deliver)]
        try:
            yield
        finally:
            await end_tasks(*tasks)
            await end_tasks(*self._sending)

    async def _listen(self) -> None:
        async with listening(self._listener) as heard:
            async for _ in heard:
                self._look.set()

    async def _deliver(self) -> None:
        """Send what is due, and sleep until more is, until one is told of, or until a sender is free again."""
        while True:
            while len(self._sending) < AT_ONCE and (claimed := await self._sender.claim(1, self._busy_hosts())):
                self._begin(claimed[0])
            await signal(self._look, None if len(self._sending) >= AT_ONCE else await self._pause())

    def _busy_hosts(self) -> list[str]:
        return [host for host, count in Counter(self._sending.values()).items() if count >= AT_ONCE_PER_HOST]

    def _begin(self, callback: ClaimedCallback) -> None:
        task = asyncio.create_task(self._attempt(callback))
        self._sending[task] = host_of(callback.url)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._look.set()

    async def _attempt(self, callback: ClaimedCallback) -> None:
        """Send one; whatever fails here is tried again when the claim has run out."""
        try:
            await self._sender.attempt(callback)
        except PASSING as error:
            _log.warning(
                "what came of a callback is not written down", callback_id=callback.callback_id, error=error.message
            )
        except Exception:
            _log.exception("a callback could not be sent", callback_id=callback.callback_id)

    async def _pause(self) -> float:
        due = await self._sender.seconds_to_next(self._busy_hosts())
        return self._poll_seconds if due is None else min(max(due, SHORTEST_SECONDS), self._poll_seconds)
