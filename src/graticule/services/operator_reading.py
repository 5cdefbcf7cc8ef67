"""What operators look for across jobs, requests and events. Nothing is changed here."""

from typing import Final

from pydantic import BaseModel, Field

from graticule.core.models import Event, PlatformRequest
from graticule.repositories.database import Database
from graticule.repositories.job_views import JobListItem
from graticule.repositories.operator_views import LookupKey, OperatorViews

MOST_FOUND: Final = 100


class Lookup(BaseModel):
    """What has to do with a key, newest first."""

    requests: list[PlatformRequest] = Field(description=f"Work orders of partners, at most {MOST_FOUND}.")
    jobs: list[JobListItem] = Field(description=f"At most {MOST_FOUND}; of a request all jobs of its version.")


class OperatorReader:
    """Reads for operators."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest_events(self, before: int | None = None, limit: int = 100) -> list[Event]:
        """Give events of all jobs and assets, newest first, below the given event id."""
        async with self._database.connection() as connection:
            return await OperatorViews(connection).newest_events(before, limit)

    async def lookup(self, key: LookupKey) -> Lookup:
        """Find the work orders and jobs that have to do with a key."""
        async with self._database.connection() as connection:
            views = OperatorViews(connection)
            requests = await views.requests(key, MOST_FOUND)
            return Lookup(requests=requests, jobs=await views.jobs(key, MOST_FOUND))
