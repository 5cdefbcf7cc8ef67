"""Jobs and nodes as people read them: lists without large values, progress, attempts, times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, Field, JsonValue

from graticule.core.ids import JobId, NodeId, TaskId, WorkerId, WorkflowId
from graticule.core.models import Job, Node, Workflow
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views

LARGE_BYTES: Final = 16 * 1024  # as the row stores it, compressed
MOST_ATTEMPTS: Final = 100

_BEGINNING: Final = re.compile(r"[0-9a-f]{4,64}")  # of a job's id
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

Omitted = Annotated[
    list[str], Field(default_factory=list, description="Fields that are too large for a list; read the thing itself.")
]


class JobListItem(Job):
    """A job in a list: without its result."""

    result: JsonValue = Field(None, exclude=True)
    omitted: Omitted


class OwnedJob(Job):
    """A job with the last sign of life of the orchestrator that it belongs to."""

    owner_heartbeat_at: datetime | None = None


class NodeListItem(Node):
    """A node in a list."""

    omitted: Omitted


class NodeCounters(BaseModel):
    """How a static node stands, and the children that it made."""

    node_id: NodeId
    node_type: NodeType
    status: NodeStatus
    children_total: int
    children_started: int
    children_done: int
    children_failed: int


class Attempt(BaseModel):
    """One attempt of a node, as its queue knows it."""

    task_id: TaskId
    status: MessageStatus
    queue: str
    handler: str
    retry_count: int
    delivery_count: int
    leased_by: WorkerId | None
    lease_expires_at: datetime | None
    dead_reason: str | None
    available_at: datetime
    created_at: datetime


class ChildrenTimes(BaseModel):
    """When the children of a fan-out were first and last dispatched, started and ended."""

    node_id: NodeId = Field(exclude=True)
    count: int
    first_dispatched_at: datetime | None
    last_dispatched_at: datetime | None
    first_started_at: datetime | None
    last_started_at: datetime | None
    first_ended_at: datetime | None
    last_ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows; what is None does not matter."""

    status: JobStatus | None = None
    workflow_id: WorkflowId | None = None
    correlation_id: str | None = None
    submitted_by: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    text: str | None = None  # the beginning of the job's id, or all of another word by which it is known

    def parameters(self) -> dict[str, Any]:
        """Give the values for the statements."""
        text = self.text or ""
        return {
            "status": self.status,
            "workflow_id": self.workflow_id,
            "correlation_id": self.correlation_id,
            "submitted_by": self.submitted_by,
            "created_after": self.created_after,
            "created_before": self.created_before,
            "text": self.text,
            "beginning": text if _BEGINNING.fullmatch(text) else None,
            "request_id": text if _UUID.fullmatch(text) else None,
        }


class JobViews(Views):
    """Reads jobs and nodes for people."""

    queries: ClassVar = load_queries("job_views.sql")

    async def jobs(
        self, wanted: JobFilter, before: tuple[datetime, JobId] | None = None, limit: int = 50
    ) -> list[JobListItem]:
        """Give jobs, newest first, after the one that `before` names."""
        created_at, job_id = before or (None, None)
        parameters = {"cursor_created_at": created_at, "cursor_job_id": job_id, "large": LARGE_BYTES, "limit": limit}
        query = "list_jobs_without_results" if wanted.text is None else "list_jobs_by_text"
        parameters |= wanted.parameters()
        return await self._views(JobListItem, query, parameters, prepare=False)  # a plan for any values suits no filter

    async def job(self, job_id: JobId) -> OwnedJob | None:
        """Give one job in full."""
        return await self._view(OwnedJob, "job_with_owner", {"job_id": job_id})

    async def definition(self, job_id: JobId) -> Workflow | None:
        """Give the compiled workflow that a job was made with."""
        return await self._view(Workflow, "definition_of_job", {"job_id": job_id})

    async def static_nodes(self, job_id: JobId, status: NodeStatus | None = None) -> list[NodeListItem]:
        """Give the nodes that stand in the job's definition, in no order."""
        parameters = {"job_id": job_id, "status": status, "large": LARGE_BYTES}
        return await self._views(NodeListItem, "static_nodes_of_job", parameters)

    async def counters(self, job_id: JobId) -> list[NodeCounters]:
        """Give how the static nodes stand, with the counters of their children."""
        return await self._views(NodeCounters, "progress_of_static_nodes", {"job_id": job_id})

    async def children(
        self,
        job_id: JobId,
        parent: NodeId,
        *,
        status: NodeStatus | None = None,
        after_index: int = -1,
        limit: int = 100,
    ) -> list[NodeListItem]:
        """Give children of a fan-out in index order, after the given index."""
        parameters = {"job_id": job_id, "parent_node_id": parent, "status": status, "after_index": after_index}
        return await self._views(NodeListItem, "children_of_node", {**parameters, "large": LARGE_BYTES, "limit": limit})

    async def attempts(self, job_id: JobId, node_id: NodeId) -> Sequence[Attempt]:
        """Give the newest attempts of a node, oldest of them first."""
        parameters = {"job_id": job_id, "node_id": node_id, "limit": MOST_ATTEMPTS}
        return (await self._views(Attempt, "attempts_of_node", parameters))[::-1]

    async def times_of_children(self, job_id: JobId) -> list[ChildrenTimes]:
        """Give the times of the children of each fan-out of a job that has made some."""
        return await self._views(ChildrenTimes, "times_of_children", {"job_id": job_id})
