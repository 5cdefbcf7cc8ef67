"""The audit trail."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from psycopg import sql

from graticule.core.ids import AssetId, JobId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


@dataclass(frozen=True, slots=True)
class EventHorizon:
    """The newest event that is there, and the transactions that may yet bring an older one."""

    newest: int
    writers: tuple[str, ...]


class EventRepository(Repository[Event]):
    """Adds and reads events."""

    model = Event
    subject: ClassVar = "event"
    queries: ClassVar = load_queries("events.sql")

    async def insert(self, row: Event) -> Event:
        """Add an event, and tell those who follow."""
        return await self._told(row, None)

    async def insert_of_change(self, row: Event) -> Event:
        """Add the event of a changed asset, and tell those who follow, and those who remember the asset."""
        return await self._told(row, row.asset_id)

    async def _told(self, row: Event, changed_asset: str | None) -> Event:
        given = {**statements.parameters(row), "changed_asset": changed_asset}
        written = await self._one("insert_event", given)
        return row if written is None else written

    async def of_job(
        self, job_id: JobId, after: int = 0, limit: int = 1000, types: Collection[EventType] = ()
    ) -> list[Event]:
        """Give the events of a job in order, after the given event id; of some types only, if any are named."""
        parameters = {"job_id": job_id, "after": after, "limit": limit}
        if not types:
            return await self._all("events_of_job", parameters)
        return await self._all("events_of_job_by_type", {**parameters, "types": list(types)})

    async def of_asset(self, asset_id: AssetId, after: int = 0, limit: int = 1000) -> list[Event]:
        """Give the events of an asset in order, after the given event id."""
        return await self._all("events_of_asset", {"asset_id": asset_id, "after": after, "limit": limit})

    async def last_of_types(self, job_id: JobId, types: Collection[EventType]) -> Event | None:
        """Give the last event of a job that is of one of these types."""
        return await self._one("last_event_of_types", {"job_id": job_id, "types": list(types)})

    async def between(
        self, after: int, up_to: int, *, job_ids: Collection[JobId] | None = None, limit: int = 1000
    ) -> list[Event]:
        """Give the events of all jobs, or of those named, with an id above `after` and at most `up_to`, in order."""
        wanted = None if job_ids is None else list(job_ids)
        parameters = {"after": after, "up_to": up_to, "job_ids": wanted, "limit": limit}
        return await self._all("events_between", parameters)

    async def horizon(self) -> EventHorizon:
        """Tell how far the events reach, and who may still fill a gap below."""
        row = await self._fetch_one(sql.SQL(self.queries["event_horizon"]), {}, "read the newest event")
        found = row or {"newest": 0, "writers": []}
        return EventHorizon(found["newest"], tuple(found["writers"]))

    async def any_writing(self, writers: Sequence[str]) -> bool:
        """Tell whether one of the transactions of a horizon has not ended yet."""
        statement = sql.SQL(self.queries["event_writers_remaining"])
        row = await self._fetch_one(statement, {"writers": list(writers)}, "read the writers of events")
        return bool(row and row["remaining"])
