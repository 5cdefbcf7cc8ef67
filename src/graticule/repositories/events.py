"""The audit trail. Events are added and read, never changed."""

from typing import ClassVar

from graticule.core.ids import AssetId, JobId
from graticule.core.models import Event
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class EventRepository(Repository[Event]):
    """Adds and reads events."""

    model = Event
    subject: ClassVar = "event"
    queries: ClassVar = load_queries("events.sql")

    async def of_job(self, job_id: JobId, after: int = 0, limit: int = 1000) -> list[Event]:
        """Give the events of a job in order, after the given event id."""
        return await self._all("events_of_job", {"job_id": job_id, "after": after, "limit": limit})

    async def of_asset(self, asset_id: AssetId, after: int = 0, limit: int = 1000) -> list[Event]:
        """Give the events of an asset in order, after the given event id."""
        return await self._all("events_of_asset", {"asset_id": asset_id, "after": after, "limit": limit})
