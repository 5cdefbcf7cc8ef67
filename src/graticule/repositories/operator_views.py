"""What operators look for across jobs, requests and events."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from pydantic import BaseModel, Field

from graticule.core.ids import AssetId, WorkflowHash, WorkflowId
from graticule.core.models import Event, PlatformRequest
from graticule.repositories.job_views import LARGE_BYTES, JobListItem
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views


@dataclass(frozen=True, slots=True)
class LookupKey:
    """By what something is looked up; what is None finds nothing."""

    request_id: UUID | None = None
    asset_id: AssetId | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None


class WorkflowVersion(BaseModel):
    """A version of a workflow that jobs ran."""

    workflow_hash: WorkflowHash
    version: str
    created_at: datetime = Field(description="When the first of these jobs was submitted.")


class OperatorViews(Views):
    """Reads for operators."""

    queries: ClassVar = load_queries("operator_views.sql")

    async def newest_events(self, before: int | None = None, limit: int = 100) -> list[Event]:
        """Give events of all jobs and assets, newest first, below the given event id."""
        return await self._views(Event, "newest_events", {"before": before, "limit": limit})

    async def workflow_versions(self, workflow_id: WorkflowId, limit: int) -> list[WorkflowVersion]:
        """Give the versions of a workflow that jobs ran, newest first."""
        parameters = {"workflow_id": workflow_id, "limit": limit}
        return await self._views(WorkflowVersion, "versions_of_workflow", parameters)

    async def jobs(self, key: LookupKey, limit: int) -> list[JobListItem]:
        """Give the jobs that have to do with a key, newest first; those of a request are all of its version."""
        return await self._views(JobListItem, "jobs_looked_up", {**asdict(key), "large": LARGE_BYTES, "limit": limit})

    async def requests(self, key: LookupKey, limit: int) -> list[PlatformRequest]:
        """Give the work orders that have to do with a key, newest first."""
        return await self._views(PlatformRequest, "requests_looked_up", {**asdict(key), "limit": limit})
