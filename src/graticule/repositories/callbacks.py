"""The outbox of callbacks."""

from datetime import datetime
from typing import ClassVar

from graticule.core.models import Callback
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class CallbackRepository(Repository[Callback]):
    """Reads and writes callbacks that are to be sent."""

    model = Callback
    subject: ClassVar = "callback"
    queries: ClassVar = load_queries("callbacks.sql")

    async def due(self, now: datetime, limit: int = 20) -> list[Callback]:
        """Take the callbacks whose time has come, each by one sender only, until the transaction ends."""
        return await self._all("due_callbacks", {"now": now, "limit": limit})
