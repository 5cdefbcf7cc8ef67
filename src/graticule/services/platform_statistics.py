"""The questions that are asked of the platform as a whole, at a cost that does not grow with the history."""

from typing import Final

from graticule.repositories.database import Database
from graticule.repositories.operations import Durations
from graticule.repositories.platform_statistics import (
    CountedPlace,
    FailedVersion,
    Place,
    PlatformStatisticViews,
    StuckVersion,
    TriedVersion,
    WorkflowLoad,
)

COUNTED_UP_TO: Final = 100_000


class PlatformStatistics:
    """Answers what is stuck, what failed, how long things take, what was tried often, and what the load is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stuck(self, minutes: int, after: Place | None = None, limit: int = 50) -> list[StuckVersion]:
        """Give the versions that have been processing for longer, longest first."""
        async with self._database.connection() as connection:
            return await PlatformStatisticViews(connection).stuck(self._database.now(), minutes, after, limit)

    async def failed(self, before: Place | None = None, limit: int = 50) -> list[FailedVersion]:
        """Give the versions that failed and need attention, newest first."""
        async with self._database.connection() as connection:
            return await PlatformStatisticViews(connection).failed(before, limit)

    async def tried(self, at_least: int, after: CountedPlace | None = None, limit: int = 50) -> list[TriedVersion]:
        """Give the versions that had so many jobs, most first."""
        async with self._database.connection() as connection:
            return await PlatformStatisticViews(connection).tried(at_least, after, limit)

    async def durations(self, days: int) -> list[Durations]:
        """Give how long the jobs of each workflow took in the last days."""
        async with self._database.connection() as connection:
            return await PlatformStatisticViews(connection).durations(self._database.now(), days, COUNTED_UP_TO)

    async def load(self) -> list[WorkflowLoad]:
        """Give what each workflow has under way, and what ended in the last 24 hours."""
        async with self._database.connection() as connection:
            return await PlatformStatisticViews(connection).load(self._database.now(), COUNTED_UP_TO)
