"""What people ask of the platform as a whole: what is stuck, what failed, what took many attempts, and the load."""

from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from graticule.core.ids import AssetId, JobId, WorkflowId
from graticule.core.models.engine import JobPurpose
from graticule.core.models.fields import JsonObject
from graticule.core.states import ProcessingState
from graticule.repositories.operations import Durations
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views

Place = tuple[datetime, AssetId, int]
CountedPlace = tuple[int, AssetId, int]


class VersionAtHand(BaseModel):
    """A version of an asset that someone may have to look at."""

    asset_id: AssetId
    platform_id: str
    platform_refs: JsonObject
    version_ordinal: int
    version_label: str
    revision: int
    workflow_id: WorkflowId | None
    current_job_id: JobId | None
    job_count: int = Field(description="How many jobs have processed this version.")


class StuckVersion(VersionAtHand):
    """A version that has been processing for long."""

    processing_started_at: datetime
    estimated_completion_at: datetime | None
    node_summary: JsonObject | None
    seconds: float = Field(description="For how long it has been processing.")


class FailedVersion(VersionAtHand):
    """A version whose processing, export or withdrawal failed, and that nobody has taken up again."""

    purpose: JobPurpose = Field(description="What failed.")
    job_id: JobId | None = Field(description="The job that failed.")
    failed_at: datetime
    error: str | None
    retry_count: int = Field(description="How often its last request was retried.")


class TriedVersion(VersionAtHand):
    """A version that took many jobs."""

    processing_state: ProcessingState
    error: str | None


class WorkflowLoad(BaseModel):
    """The jobs of a workflow: under way now, and ended in the last 24 hours."""

    workflow_id: WorkflowId
    pending: int
    running: int
    completed_24h: int
    failed_24h: int
    cancelled_24h: int


class PlatformStatisticViews(Views):
    """Reads the numbers of the platform."""

    queries: ClassVar = load_queries("platform_statistics.sql")

    async def stuck(self, now: datetime, minutes: int, after: Place | None, limit: int) -> list[StuckVersion]:
        """Give the versions that have been processing for longer, longest first."""
        at, asset_id, ordinal = after or (None, None, None)
        parameters = {"now": now, "minutes": minutes, "limit": limit}
        parameters |= {"after_at": at, "after_asset_id": asset_id, "after_ordinal": ordinal}
        return await self._views(StuckVersion, "stuck_versions", parameters)

    async def failed(self, before: Place | None, limit: int) -> list[FailedVersion]:
        """Give the versions that failed, newest first."""
        at, asset_id, ordinal = before or (None, None, None)
        parameters = {"before_at": at, "before_asset_id": asset_id, "before_ordinal": ordinal, "limit": limit}
        return await self._views(FailedVersion, "failed_versions", parameters)

    async def tried(self, at_least: int, after: CountedPlace | None, limit: int) -> list[TriedVersion]:
        """Give the versions that had so many jobs, most first."""
        count, asset_id, ordinal = after or (None, None, None)
        parameters: dict[str, Any] = {"at_least": at_least, "limit": limit}
        parameters |= {"after_count": count, "after_asset_id": asset_id, "after_ordinal": ordinal}
        return await self._views(TriedVersion, "versions_with_many_jobs", parameters)

    async def durations(self, now: datetime, days: int, bound: int) -> list[Durations]:
        """Give the median and the 95th percentile of the last days, over at most the newest `bound` jobs."""
        return await self._views(Durations, "durations_of_workflows", {"now": now, "days": days, "bound": bound})

    async def load(self, now: datetime, bound: int) -> list[WorkflowLoad]:
        """Count the jobs of each workflow, at most `bound` that are active and the newest `bound` that ended."""
        return await self._views(WorkflowLoad, "load_by_workflow", {"now": now, "bound": bound})
