"""What operators look for across jobs, requests and events. Nothing is changed here."""

from typing import Final

from pydantic import BaseModel, Field

from graticule.core.errors import NotFound
from graticule.core.ids import WorkflowHash, WorkflowId
from graticule.core.models import Event, PlatformRequest, Workflow
from graticule.repositories.database import Database
from graticule.repositories.job_views import JobListItem
from graticule.repositories.operator_views import LookupKey, OperatorViews, WorkflowVersion
from graticule.repositories.workflow_definitions import WorkflowDefinitionRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.shared_workflows import SharedWorkflow

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

    async def shared_workflows(self) -> dict[str, SharedWorkflow]:
        """Return the workflows that orchestrators announced and that are current."""
        async with self._database.connection() as connection:
            rows = await WorkflowDefinitionRepository(connection).current()
        return {row.workflow_id: SharedWorkflow.read(row) for row in rows}

    async def workflow_versions(self, workflow_id: WorkflowId) -> list[WorkflowVersion]:
        """Give the versions of a workflow that jobs ran, newest first."""
        async with self._database.connection() as connection:
            return await OperatorViews(connection).workflow_versions(workflow_id, MOST_FOUND)

    async def workflow_version(self, workflow_id: WorkflowId, workflow_hash: WorkflowHash) -> Workflow:
        """Give one version of a workflow that jobs ran."""
        async with self._database.connection() as connection:
            found = await WorkflowRepository(connection).find(workflow_hash=workflow_hash)
        if found is None or found.workflow_id != workflow_id:
            raise NotFound(f"No job has run the version {workflow_hash} of the workflow {workflow_id}.")
        return found

    async def lookup(self, key: LookupKey) -> Lookup:
        """Find the work orders and jobs that have to do with a key."""
        async with self._database.connection() as connection:
            views = OperatorViews(connection)
            requests = await views.requests(key, MOST_FOUND)
            return Lookup(requests=requests, jobs=await views.jobs(key, MOST_FOUND))
