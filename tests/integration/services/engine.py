"""An engine in one process: jobs are submitted and advanced by hand, and results are reported as a worker would.

Whatever a test does, at its end the audit trail is held against the rows: see `Bench.check`.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, LiteralString

from pydantic import JsonValue

from graticule.core.ids import JobId, NodeId, OwnerId, WorkerId
from graticule.core.models import Event, Job, Node, Task, TaskResult
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus, ResultStatus
from graticule.dag.compile import KnownHandler, compile_workflow
from graticule.dag.graph import Graph
from graticule.dag.replay import replay
from graticule.dag.state import Policy
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.job_views import JobFilter, JobViews
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.steps import JobSnapshot, StepRepository
from graticule.repositories.tasks import TaskRepository
from graticule.services.jobs import JobService, Submission
from graticule.services.outputs import OutputStore
from graticule.services.step_reading import Wake
from graticule.services.steps import StepOutcome, StepService
from graticule.services.workflow_library import WorkflowLibrary
from graticule.storage.local import LocalStorage

QUEUE = "functionapp-tasks"
HANDLERS = {name: KnownHandler(QUEUE, 600) for name in ("echo", "fail", "flaky_echo")}
ENDED_JOB = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})
DONE, FAILED, PENDING, READY = NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.PENDING, NodeStatus.READY
SENT, RUNNING, SKIPPED = NodeStatus.DISPATCHED, NodeStatus.RUNNING, NodeStatus.SKIPPED


class Shelf:
    """The workflows of a test."""

    def __init__(self, *texts: str) -> None:
        graphs = [compiled(text) for text in texts]
        self.library = WorkflowLibrary({graph.workflow_id: graph for graph in graphs}, (), {})

    async def learn(self, connection: Connection, ids: Collection[str]) -> None:
        """Find nothing: nobody announces workflows here."""


@cache
def compiled(text: str) -> Graph:
    """Compile a workflow that has no error; most tests have the same few."""
    found = compile_workflow(text, file="test.yaml", handlers=HANDLERS)
    assert found.graph is not None, [str(problem) for problem in found.problems]
    return found.graph


def flow(nodes: str, *, workflow_id: str = "flow", inputs: str = "{}", more: str = "") -> str:
    """Write a workflow from its nodes, without `start` and `end`."""
    header = f"workflow_id: {workflow_id}\nname: Flow\nversion: 1\n{more}\ninputs: {inputs}\n"
    return f"{header}nodes:\n{nodes}\n  end: {{type: end}}\n"


class Bench:
    """One owner with its jobs."""

    def __init__(
        self, pool: Database, folder: Path, *workflows: str, owner: str = "owner-a", policy: Policy | None = None
    ) -> None:
        self.pool = pool
        self.owner_id = OwnerId(owner)
        self.storage = LocalStorage(folder)
        self.steps = StepService(pool, self.owner_id, OutputStore(self.storage), policy or Policy())
        self.jobs = JobService(pool, self.steps, Shelf(*workflows))  # type: ignore[arg-type]

    # What users do

    async def submit(self, workflow_id: str = "flow", **inputs: JsonValue) -> JobId:
        return (await self.jobs.submit(Submission(workflow_id=workflow_id, input_params=inputs))).job.job_id

    # What the loop does

    async def advance(self, *job_ids: JobId, wake: Wake | None = None) -> StepOutcome:
        outcome = await self.steps.advance({job_id: wake or Wake() for job_id in job_ids})
        await self._check_known()
        return outcome

    async def look_around(self) -> set[JobId]:
        """Take a step of every job that has something to be looked at, as the loop's poll does; name the unfinished."""
        now = datetime.now(UTC)
        wakes: dict[JobId, Wake] = {}
        async with self.pool.connection() as connection:
            ownership = OwnershipRepository(connection)
            for job_id in await ownership.waiting_jobs(self.owner_id):
                wakes.setdefault(job_id, Wake())
            for _, job_id, node_id in await ownership.due_nodes(self.owner_id, now):
                wakes.setdefault(job_id, Wake()).merge(Wake(due={node_id}))
            for job_id, node_id, taken in await ownership.expired_nodes(self.owner_id, now):
                wakes.setdefault(job_id, Wake()).merge(Wake(expired={node_id: taken}))
        return (await self.steps.advance(wakes)).unfinished if wakes else set()

    # What workers do

    async def report(
        self, task: Task, status: ResultStatus = ResultStatus.COMPLETED, output: JsonValue = None, **more: Any
    ) -> None:
        """Report of a task as a worker would, but whether or not its lease is held."""
        if status is ResultStatus.FAILED:
            more.setdefault("error_message", "it failed")
        values = {"worker_id": "worker-1", "reported_at": datetime.now(UTC), **more}
        result = TaskResult(
            task_id=task.task_id, job_id=task.job_id, node_id=task.node_id, status=status, output=output, **values
        )
        async with self.pool.connection() as connection:
            await ResultRepository(connection).insert(result)

    async def finish(self, job_id: JobId, node_id: str, output: JsonValue = None, **more: Any) -> None:
        """Complete the attempt under way of a node, and take the step that follows."""
        await self.report(await self.task_of(job_id, node_id), output=output, **more)
        await self.advance(job_id)

    async def fail(self, job_id: JobId, node_id: str, error: str = "it failed", *, retryable: bool = False) -> None:
        """Fail the attempt under way of a node, and take the step that follows."""
        task = await self.task_of(job_id, node_id)
        await self.report(task, ResultStatus.FAILED, error_message=error, retryable=retryable)
        await self.advance(job_id)

    async def claim(self, worker: str = "worker-1", queue: str = QUEUE, limit: int = 1000) -> None:
        """Lease what waits in a queue."""
        async with self.pool.connection() as connection:
            await TaskRepository(connection).claim(WorkerId(worker), queue, limit, 60)

    # What time does

    async def let_pass(self, seconds: float) -> None:
        """Set all that is yet to come so many seconds nearer."""
        by = timedelta(seconds=seconds)
        await self.execute(
            "UPDATE dagapp.dag_nodes SET ready_at = ready_at - %(by)s, deadline_at = deadline_at - %(by)s", by=by
        )
        await self.execute("UPDATE dagapp.dag_jobs SET updated_at = now()")  # so that it is noticed

    async def execute(self, statement: LiteralString, **given: Any) -> None:
        """Write what nothing but another process would."""
        async with self.pool.connection() as connection:
            await connection.execute(statement, given)

    # What is there

    async def job(self, job_id: JobId) -> Job:
        async with self.pool.connection() as connection:
            return await JobRepository(connection).get(job_id=job_id)

    async def status(self, job_id: JobId) -> JobStatus:
        return (await self.job(job_id)).status

    async def nodes(self, job_id: JobId, parent: str | None = None) -> dict[str, Node]:
        async with self.pool.connection() as connection:
            found = await NodeRepository(connection).of_job(job_id, NodeId(parent) if parent else None)
        return {node.node_id: node for node in found}

    async def node(self, job_id: JobId, node_id: str) -> Node:
        async with self.pool.connection() as connection:
            return await NodeRepository(connection).get(job_id=job_id, node_id=node_id)

    async def statuses(self, job_id: JobId, parent: str | None = None) -> dict[str, NodeStatus]:
        return {node_id: node.status for node_id, node in (await self.nodes(job_id, parent)).items()}

    async def tasks(self, job_id: JobId, status: MessageStatus | None = MessageStatus.QUEUED) -> list[Task]:
        async with self.pool.connection() as connection:
            found = await TaskRepository(connection).of_job(job_id)
        return [task for task in found if status is None or task.status is status]

    async def task_of(self, job_id: JobId, node_id: str) -> Task:
        """Give the latest task of a node."""
        found = [task for task in await self.tasks(job_id, None) if task.node_id == node_id]
        return max(found, key=lambda task: task.retry_count)

    async def queued(self, job_id: JobId) -> list[str]:
        """Name the nodes whose tasks wait in a queue."""
        return sorted(task.node_id for task in await self.tasks(job_id))

    async def events(self, job_id: JobId) -> list[Event]:
        found: list[Event] = []
        async with self.pool.connection() as connection:
            events = EventRepository(connection)
            while page := await events.of_job(job_id, after=(found[-1].event_id or 0) if found else 0):
                found += page
        return found

    async def trace(self, job_id: JobId, node_id: str | None = None) -> list[str]:
        """Give the types of a job's events, or of those of one node."""
        events = await self.events(job_id)
        return [event.event_type.value for event in events if node_id is None or event.node_id == node_id]

    async def event(self, job_id: JobId, event_type: str) -> Event:
        """Give the one event of a type."""
        (found,) = [event for event in await self.events(job_id) if event.event_type == event_type]
        return found

    async def waiting_results(self, job_id: JobId) -> int:
        async with self.pool.connection() as connection:
            return len(await ResultRepository(connection).unprocessed(job_id))

    async def snapshot(self) -> dict[str, Any]:
        """Give all rows of the engine: two are equal when nothing was written in between."""
        tables = ("dag_jobs", "dag_nodes", "dag_tasks", "dag_task_results", "dag_job_events", "dag_checkpoints")
        rows: dict[str, Any] = {}
        async with self.pool.connection() as connection:
            for table in tables:
                cursor = await connection.execute(f"SELECT t::text AS row FROM dagapp.{table} AS t ORDER BY 1")
                rows[table] = [row["row"] for row in await cursor.fetchall()]
        return rows

    # What must hold whatever was done

    async def check(self) -> None:
        """Hold the audit trail of every job against its rows, and the counters against what they count."""
        async with self.pool.connection() as connection:
            job_ids = [job.job_id for job in await JobViews(connection).jobs(JobFilter(), limit=10_000)]
        for job_id in job_ids:
            await self._check_job(job_id)

    async def _check_known(self) -> None:
        """Hold what the service knows of its jobs, and need not read again, against the rows."""
        known = dict(self.steps.known)
        async with self.pool.connection() as connection:
            read = await StepRepository(connection, self.owner_id).read(known, {}, 1)
        current = [job_id for job_id, (snapshot, _) in read.items() if _version(snapshot) == _version(known[job_id])]
        for job_id in current:
            assert (known[job_id].job, known[job_id].nodes) == (read[job_id][0].job, read[job_id][0].nodes)
            assert known[job_id].size >= read[job_id][0].size / 4

    async def _check_job(self, job_id: JobId) -> None:
        job, static = await self.job(job_id), await self.nodes(job_id)
        fan_outs = {node_id for node_id, node in static.items() if node.node_type is NodeType.FAN_OUT}
        children = {fan_out: await self.nodes(job_id, fan_out) for fan_out in fan_outs}
        rows = {**static, **{node_id: node for each in children.values() for node_id, node in each.items()}}
        async with self.pool.connection() as connection:
            graph = await self.steps.graph(connection, job.workflow_hash)
        replayed = replay(graph, await self.events(job_id))
        assert replayed.job_status is job.status
        assert replayed.node_statuses == {node_id: node.status for node_id, node in rows.items()}
        for fan_out, each in children.items():
            _check_counters(job, static[fan_out], each)
        if job.status in ENDED_JOB:
            left = [task.task_id for task in await self.tasks(job_id, None) if task.status in ("queued", "leased")]
            # A test reports results without the queue, so a task of a node that ended may still stand in it.
            assert not left or job.status is JobStatus.COMPLETED


def _version(snapshot: JobSnapshot) -> tuple[int, datetime]:
    return snapshot.job.owner_epoch, snapshot.job.updated_at


def _check_counters(job: Job, fan_out: Node, children: Mapping[str, Node]) -> None:
    assert fan_out.children_total == len(children)
    assert fan_out.children_done == sum(child.status is DONE for child in children.values())
    if job.status not in ENDED_JOB or job.status is JobStatus.COMPLETED:
        assert fan_out.children_failed == sum(child.status is FAILED for child in children.values())
    started = [child for child in children.values() if child.status is not PENDING]
    assert fan_out.children_started == len(started)
    assert sorted(child.fan_out_index or 0 for child in started) == list(range(len(started)))
