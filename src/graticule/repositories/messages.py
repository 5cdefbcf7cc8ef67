"""Messages that ask for a job."""

from typing import ClassVar

from graticule.core.models import JobMessage
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class MessageRepository(Repository[JobMessage]):
    """Reads and writes job messages."""

    model = JobMessage
    subject: ClassVar = "job message"
    queries: ClassVar = load_queries("messages.sql")

    async def dead(self, queue: str | None = None, limit: int = 100) -> list[JobMessage]:
        """Give the messages that could not become a job, newest first."""
        return await self._all("dead_messages", {"queue": queue, "limit": limit})
