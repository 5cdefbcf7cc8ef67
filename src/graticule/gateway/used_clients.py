"""The gateway tells the orchestrator now and then which clients have called: it cannot write that down itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from pydantic import BaseModel

from graticule.core.cancellation import end_tasks
from graticule.core.errors import GraticuleError
from graticule.core.ids import ClientId
from graticule.gateway.forwarding import ForwardedProblem, Orchestrator
from graticule.logs import get_logger
from graticule.services.access import AccessService
from graticule.services.service_tokens import GATEWAY

NOTE_EVERY_SECONDS: Final = 60.0
LAST_NOTE_SECONDS: Final = 2.0  # so long may the end of the process wait for it
MOST_AT_ONCE: Final = 1000

_log = get_logger(__name__)


class UsedClients(BaseModel):
    """The clients that this gateway has seen."""

    client_ids: list[ClientId]


@asynccontextmanager
async def uses_told(app: FastAPI) -> AsyncIterator[None]:
    """Tell of the clients, now and then and at the end."""
    noter = UseNoter(app.state.access, app.state.orchestrator)
    task = asyncio.create_task(noter.run())
    try:
        yield
    finally:
        await end_tasks(task)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_NOTE_SECONDS):
                await noter.note()


class UseNoter:
    """Carries what the gateway has seen to the orchestrator; what did not arrive is kept for the next time."""

    def __init__(self, access: AccessService, orchestrator: Orchestrator) -> None:
        self._access = access
        self._orchestrator = orchestrator
        self._seen: set[ClientId] = set()

    async def run(self) -> None:
        """Tell of the clients for as long as this is let run."""
        while True:
            await asyncio.sleep(NOTE_EVERY_SECONDS)
            await self.note()

    async def note(self) -> None:
        """Tell of the clients that have called since the last time."""
        self._seen |= self._access.take_used()
        while told := sorted(self._seen)[:MOST_AT_ONCE]:
            try:
                await self._orchestrator.send(
                    "POST", "/api/v1/clients/used", caller=GATEWAY, body=UsedClients(client_ids=told)
                )
            except (GraticuleError, ForwardedProblem) as error:
                _log.debug("could not tell which clients have called", reason=str(error))
                return
            self._seen.difference_update(told)
