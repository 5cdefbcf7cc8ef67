"""The numbers that operators look at, at a cost that does not grow with the history."""

from typing import Final

from pydantic import BaseModel, Field

from graticule.core.states import JobStatus
from graticule.repositories.database import Database
from graticule.repositories.operations import (
    Durations,
    EndedJobs,
    OperationViews,
    OrchestratorNow,
    Queue,
    WorkerNow,
)

COUNTED_UP_TO: Final = 100_000


class Statistics(BaseModel):
    """How things go."""

    jobs: dict[JobStatus, int] = Field(description="Jobs by status, each counted up to `counted_up_to`.")
    counted_up_to: int = COUNTED_UP_TO
    completed_24h: int
    failed_24h: int
    cancelled_24h: int
    jobs_per_hour: float = Field(description="Jobs that ended, on average over the last 24 hours.")
    hours: list[EndedJobs] = Field(description="The last 24 hours in which jobs ended, oldest first.")
    durations_7d: list[Durations] = Field(description="Of completed jobs, by workflow.")


class StatisticsService:
    """Reads numbers, queues and processes; a process that was silent longer than the threshold is stale."""

    def __init__(self, database: Database, *, threshold_seconds: float) -> None:
        self._database = database
        self._threshold = threshold_seconds

    async def statistics(self) -> Statistics:
        """Count what is there now and what ended lately."""
        async with self._database.connection() as connection:
            views = OperationViews(connection)
            jobs = await views.jobs_by_status(COUNTED_UP_TO)
            hours = await views.ended_by_hour(COUNTED_UP_TO)
            durations = await views.durations(COUNTED_UP_TO)
        completed = sum(hour.completed for hour in hours)
        failed = sum(hour.failed for hour in hours)
        cancelled = sum(hour.cancelled for hour in hours)
        return Statistics(
            jobs=jobs,
            completed_24h=completed,
            failed_24h=failed,
            cancelled_24h=cancelled,
            jobs_per_hour=round((completed + failed + cancelled) / 24, 2),
            hours=hours,
            durations_7d=durations,
        )

    async def queues(self) -> list[Queue]:
        """Give the queues with their depths."""
        async with self._database.connection() as connection:
            return await OperationViews(connection).queues(self._threshold)

    async def workers(self, *, stopped: bool = False) -> list[WorkerNow]:
        """Give the workers."""
        async with self._database.connection() as connection:
            return await OperationViews(connection).workers(self._threshold, stopped=stopped)

    async def orchestrators(self, *, stopped: bool = False) -> list[OrchestratorNow]:
        """Give the orchestrators."""
        async with self._database.connection() as connection:
            return await OperationViews(connection).orchestrators(self._threshold, stopped=stopped)
