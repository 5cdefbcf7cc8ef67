"""Jobs as people read them: lists, progress, nodes, events and times. Nothing is changed here.

Outputs and results that lie in the storage are given as if they stood in their rows.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue

from graticule.core.errors import NotFound
from graticule.core.ids import JobId, NodeId, WorkflowId
from graticule.core.models import Checkpoint, Event, Node, Workflow
from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.logs import get_logger
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Database
from graticule.repositories.events import EventRepository
from graticule.repositories.job_views import (
    Attempt,
    ChildrenTimes,
    JobFilter,
    JobListItem,
    JobViews,
    NodeCounters,
    NodeListItem,
    Omitted,
    OwnedJob,
)
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.steps import StoredOutput
from graticule.services.outputs import OutputStore

ENDED: Final = frozenset({NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED})
UNDER_WAY: Final = frozenset({NodeStatus.DISPATCHED, NodeStatus.RUNNING})

_log = get_logger(__name__)

T = TypeVar("T")


class Progress(BaseModel):
    """How far a job is: its static nodes by status, and the children of its fan-outs."""

    total: int = 0
    pending: int = 0
    ready: int = 0
    dispatched: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    children_total: int = 0
    children_started: int = 0
    children_done: int = 0
    children_failed: int = 0
    percent: float = Field(0.0, description="Of all nodes and children known so far, those that have ended.")
    current: list[NodeId] = Field(default_factory=list, description="The static nodes that are under way.")


class JobDetail(OwnedJob):
    """A job in full."""

    progress: Progress
    omitted: Omitted


class JobInBrief(BaseModel):
    """How a job is, in short."""

    job_id: JobId
    workflow_id: WorkflowId
    status: JobStatus
    progress: Progress
    result: JsonValue
    error: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime

    @classmethod
    def of(cls, job: JobDetail) -> Self:
        """Tell how a job is, in short."""
        return cls.model_validate({**dict(job), "error": job.error_message})


class NodeDetail(Node):
    """A node in full, with its attempts and what its handler saved last."""

    attempts: list[Attempt]
    checkpoint: Checkpoint | None
    omitted: Omitted


class NodeTimes(BaseModel):
    """When a node was ready, dispatched, started and ended; of a fan-out also when its children were."""

    node_id: NodeId
    node_type: NodeType
    status: NodeStatus
    retry_count: int
    ready_at: datetime | None
    dispatched_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    children: ChildrenTimes | None = None


class Timeline(BaseModel):
    """The times of a job and of its static nodes, in graph order."""

    job_id: JobId
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    items: list[NodeTimes]


class JobReader:
    """Reads jobs."""

    def __init__(self, database: Database, outputs: OutputStore) -> None:
        self._database = database
        self._outputs = outputs

    async def jobs(
        self, wanted: JobFilter, before: tuple[datetime, JobId] | None = None, limit: int = 50
    ) -> list[JobListItem]:
        """Give jobs, newest first, after the one that `before` names."""
        async with self._database.connection() as connection:
            return await JobViews(connection).jobs(wanted, before, limit)

    async def job(self, job_id: JobId) -> JobDetail:
        """Give one job in full."""
        async with self._database.connection() as connection:
            views = JobViews(connection)
            job = _found(await views.job(job_id), job_id)
            progress = progress_of(await views.counters(job_id))
        result, omitted = await self._read("result", job.result, job.result_ref)
        values = dict(job) | {"result": result, "progress": progress, "omitted": omitted}
        return JobDetail.model_construct(**values)

    async def check(self, job_id: JobId) -> None:
        """Raise `NotFound` unless there is such a job."""
        async with self._database.connection() as connection:
            _found(await JobViews(connection).definition(job_id), job_id)

    async def definition(self, job_id: JobId) -> Workflow:
        """Give the compiled workflow that the job runs."""
        async with self._database.connection() as connection:
            return _found(await JobViews(connection).definition(job_id), job_id)

    async def static_nodes(self, job_id: JobId, status: NodeStatus | None = None) -> list[NodeListItem]:
        """Give the nodes that stand in the workflow, in graph order."""
        async with self._database.connection() as connection:
            views = JobViews(connection)
            workflow = _found(await views.definition(job_id), job_id)
            nodes: dict[str, NodeListItem] = {node.node_id: node for node in await views.static_nodes(job_id, status)}
        return [nodes[node_id] for node_id in graph_order(workflow.definition) if node_id in nodes]

    async def children(
        self, job_id: JobId, parent: NodeId, *, status: NodeStatus | None, after_index: int, limit: int
    ) -> list[NodeListItem]:
        """Give children of a fan-out in index order."""
        async with self._database.connection() as connection:
            await NodeRepository(connection).get(job_id=job_id, node_id=parent)
            return await JobViews(connection).children(
                job_id, parent, status=status, after_index=after_index, limit=limit
            )

    async def node(self, job_id: JobId, node_id: NodeId) -> NodeDetail:
        """Give one node in full."""
        async with self._database.connection() as connection:
            node = await NodeRepository(connection).get(job_id=job_id, node_id=node_id)
            attempts = await JobViews(connection).attempts(job_id, node_id)
            checkpoint = await CheckpointRepository(connection).find(job_id=job_id, node_id=node_id)
        output, omitted = await self._read("output", node.output, node.output_ref)
        values = dict(node) | {"output": output, "attempts": list(attempts), "checkpoint": checkpoint}
        return NodeDetail.model_construct(**values, omitted=omitted)

    async def events(
        self, job_id: JobId, after: int = 0, limit: int = 100, types: Collection[EventType] = ()
    ) -> list[Event]:
        """Give the events of a job in order, after an event id."""
        async with self._database.connection() as connection:
            events = await EventRepository(connection).of_job(job_id, after, limit, types)
            if not events:
                _found(await JobViews(connection).definition(job_id), job_id)
        return events

    async def timeline(self, job_id: JobId) -> Timeline:
        """Give the times of a job and its nodes; children are folded into their fan-out."""
        async with self._database.connection() as connection:
            views = JobViews(connection)
            job = _found(await views.job(job_id), job_id)
            children = {times.node_id: times for times in await views.times_of_children(job_id)}
        nodes = await self.static_nodes(job_id)
        items = [NodeTimes.model_validate({**dict(node), "children": children.get(node.node_id)}) for node in nodes]
        return Timeline(
            job_id=job_id, created_at=job.created_at, started_at=job.started_at, ended_at=job.ended_at, items=items
        )

    async def _read(self, name: str, value: JsonValue, reference: str | None) -> tuple[JsonValue, list[str]]:
        """Give a value from its row or from the storage; one that is lost there is told as omitted."""
        try:
            return await self._outputs.read(StoredOutput(value, reference)), []
        except NotFound as error:
            _log.warning("a stored value is not in the storage", value=name, reference=reference, error=str(error))
            return None, [name]


def progress_of(nodes: Sequence[NodeCounters]) -> Progress:
    """Sum up how the static nodes of a job stand; children count by the counters of their fan-outs."""
    counts = {status.value: sum(node.status is status for node in nodes) for status in NodeStatus}
    counters = ("children_total", "children_started", "children_done", "children_failed")
    children = {name: sum(getattr(node, name) for node in nodes) for name in counters}
    ended = sum(node.status in ENDED for node in nodes) + children["children_done"] + children["children_failed"]
    known = len(nodes) + children["children_total"]
    return Progress(
        total=len(nodes),
        percent=round(100 * ended / known, 1) if known else 0.0,
        current=[node.node_id for node in nodes if node.status in UNDER_WAY],
        **counts,
        **children,
    )


def graph_order(definition: Mapping[str, Any]) -> list[str]:
    """Give the node ids of a definition so that each stands after those that lead to it, near ones first.

    The database does not keep the order of a document's keys, so it is found anew from the edges.
    """
    following: dict[str, list[str]] = {
        node_id: list(dict.fromkeys(node.get("next", ()))) for node_id, node in definition.get("nodes", {}).items()
    }
    open_edges = dict.fromkeys(following, 0)
    for target in (target for targets in following.values() for target in targets):
        open_edges[target] += 1
    order = [node_id for node_id, count in open_edges.items() if count == 0]
    for node_id in order:  # grows while it is walked through
        for target in following[node_id]:
            open_edges[target] -= 1
            if open_edges[target] == 0:
                order.append(target)
    return order


def _found(value: T | None, job_id: JobId) -> T:
    if value is None:
        raise NotFound(f"There is no job {job_id}.")
    return value
