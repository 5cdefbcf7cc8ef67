"""Ours: a private durable cluster with our schema, one orchestrator process, one worker process.

Jobs are submitted as the orchestrator's API does it, by `JobService`, in the name of the orchestrator that runs;
from then on everything happens in the two processes.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg.rows import TupleRow

from benchmarks import processes
from benchmarks.processes import READY_WITHIN_SECONDS, Process
from benchmarks.workloads import Size, Workload
from graticule.config import Settings
from graticule.core.ids import OwnerId
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.handlers.registry import known_handlers
from graticule.orchestrator.engine import policy
from graticule.repositories.database import Database
from graticule.services.bootstrap import BootstrapService
from graticule.services.jobs import JobService, Submission
from graticule.services.outputs import OutputStore
from graticule.services.steps import StepService
from graticule.services.workflow_library import workflow_folders
from graticule.services.workflows import Workflows
from graticule.storage.local import LocalStorage

FAN_OUT_ID = "bench_fan_out"
LONGEST_RUN_SECONDS = 600.0
# As the raw limit does it: whoever waits is told when a job ends, and asks nothing meanwhile.
TELL_OF_ENDS: LiteralString = """
CREATE OR REPLACE FUNCTION dagapp.bench_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('bench_ended', NEW.job_id);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER bench_tell AFTER UPDATE OF status ON dagapp.dag_jobs
FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION dagapp.bench_tell();
"""
STATUSES = "SELECT status::text, count(*) AS jobs FROM dagapp.dag_jobs WHERE job_id = ANY (%s) GROUP BY status"
OWNER = "SELECT owner_id FROM dagapp.dag_orchestrators WHERE stopped_at IS NULL ORDER BY started_at DESC LIMIT 1"


@dataclass(frozen=True)
class Place:
    """A database of a private cluster, and the folder around it."""

    home: Path
    cluster: Cluster
    name: str = "graticule"

    def url(self, role: str = ADMIN) -> str:
        """Give the address of the database for a role."""
        return self.cluster.url(role, self.name)

    async def beside(self, name: str) -> "Place":
        """Make another, empty database in the same cluster."""
        await self.cluster.ensure_database(name)
        return replace(self, name=name)


@asynccontextmanager
async def private_cluster() -> AsyncIterator[Place]:
    """Run a new cluster with the default, durable configuration; nothing of it is left behind."""
    with _folder() as home:
        async with Cluster.of(home) as cluster:
            yield Place(home, cluster)


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder that the server's user can enter, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="gtc-bench-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


async def deploy(place: Place) -> None:
    """Make the schema and let the roles log in."""
    await place.cluster.ensure_database(place.name)
    await BootstrapService(place.url(), development=False).deploy()
    await allow_logins(place.url(), Credentials.load(place.home))
    async with await psycopg.AsyncConnection.connect(place.url(), autocommit=True) as connection:
        await connection.execute(TELL_OF_ENDS)


class Installation:
    """The two processes, and the way to give them work."""

    def __init__(
        self, place: Place, database: Database, jobs: JobService, owner_id: OwnerId, started: Sequence[Process]
    ) -> None:
        self.owner_id = owner_id
        self._place = place
        self.orchestrator, self.worker = started
        self._database = database
        self._jobs = jobs

    async def seconds(self, workload: Workload, size: Size) -> float:
        """Run a workload, and give the time until all jobs ended."""
        if workload is Workload.FAN_OUT:
            return await self.fan_out_seconds(size.fan_out)
        if workload is Workload.CHAIN:
            return await self._run([Submission(workflow_id=chain_id(size.chain))])
        return await self._run([Submission(workflow_id=chain_id(size.tasks_per_job))] * size.jobs)

    async def fan_out_seconds(self, width: int) -> float:
        """Run one fan-out, and give the time until its job ended."""
        return await self._run([Submission(workflow_id=FAN_OUT_ID, input_params={"width": width})])

    async def _run(self, submissions: Sequence[Submission]) -> float:
        url = self._place.url()
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
            await listener.execute("LISTEN bench_ended")
            began = time.perf_counter()
            submitted = await self._jobs.submit_many(submissions)
            job_ids = {str(each.job.job_id) for each in submitted}
            await self._until_ended(listener, job_ids)
            seconds = time.perf_counter() - began
        await self._check(sorted(job_ids))
        return seconds

    async def _until_ended(self, listener: psycopg.AsyncConnection[TupleRow], job_ids: set[str]) -> None:
        waited_for = set(job_ids)
        async with asyncio.timeout(LONGEST_RUN_SECONDS):
            async for notification in listener.notifies():
                waited_for.discard(notification.payload)
                if not waited_for:
                    return

    async def _check(self, job_ids: Sequence[str]) -> None:
        async with self._database.connection() as connection:
            rows = await (await connection.execute(STATUSES, [list(job_ids)])).fetchall()
        counts = {row["status"]: row["jobs"] for row in rows}
        if counts != {"completed": len(job_ids)}:
            raise RuntimeError(f"Not all jobs completed: {counts}.")


@asynccontextmanager
async def installation(
    place: Place, size: Size, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Installation]:
    """Run our two processes, with these settings, until the block is left."""
    folder = _workflows(place.home / "workflows", size)
    logs = place.home / "logs"
    shared = {
        "GRATICULE_HOME": str(place.home),
        "GRATICULE_WORKFLOWS": str(folder),
        "GRATICULE_LOG_LEVEL": "WARNING",
        **(environment or {}),
    }
    as_orchestrator = shared | {"GRATICULE_DATABASE_URL": place.url(DatabaseRole.ORCHESTRATOR)}
    as_worker = shared | {"GRATICULE_DATABASE_URL": place.url(DatabaseRole.WORKER)}
    async with (
        processes.running("orchestrator", as_orchestrator, logs) as orchestrator,
        processes.running("worker", as_worker, logs) as worker,
        Database(place.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=2) as database,
    ):
        owner_id = await _owner(database)
        settings = Settings(home=place.home, workflows=str(folder))
        jobs = _job_service(settings, database, owner_id)
        yield Installation(place, database, jobs, owner_id, [orchestrator, worker])


async def _owner(database: Database) -> OwnerId:
    """Wait until the orchestrator has taken its place, and give its name."""
    async with asyncio.timeout(READY_WITHIN_SECONDS), database.connection() as connection:
        while True:
            if row := await (await connection.execute(OWNER)).fetchone():
                return OwnerId(row["owner_id"])
            await asyncio.sleep(0.1)


def _job_service(settings: Settings, database: Database, owner_id: OwnerId) -> JobService:
    outputs = OutputStore(LocalStorage(settings.home / "storage"))
    steps = StepService(database, owner_id, outputs, policy(settings))
    return JobService(database, steps, Workflows(workflow_folders(settings), known_handlers))


# The workflows


def chain_id(length: int) -> str:
    """Name the workflow that is a chain of so many tasks."""
    return f"bench_chain_{length}"


def _workflows(folder: Path, size: Size) -> Path:
    folder.mkdir(exist_ok=True)
    for length in {size.chain, size.tasks_per_job}:
        (folder / f"chain_{length}.yaml").write_text(_chain(length), encoding="utf-8")
    (folder / "fan_out.yaml").write_text(FAN_OUT, encoding="utf-8")
    return folder


def _chain(length: int) -> str:
    """Write a chain in which each task gets what the one before gave back."""
    nodes = ["  start: {type: start, next: task_1}", "  end: {type: end}"]
    for number in range(1, length + 1):
        index = f'"{{{{ nodes.task_{number - 1}.output.echoed_params.index }}}}"' if number > 1 else "1"
        following = f"task_{number + 1}" if number < length else "end"
        nodes.append(f"  task_{number}: {{handler: echo, params: {{index: {index}}}, next: {following}}}")
    head = [f"workflow_id: {chain_id(length)}", f"name: Chain of {length}", "version: 1", "nodes:"]
    return "\n".join([*head, *nodes, ""])


# The first task lets the orchestrator, and not the one who submits, make the children.
FAN_OUT = """
workflow_id: bench_fan_out
name: Fan-out
version: 1
inputs:
  width: {type: integer, required: true}
nodes:
  start: {type: start, next: prepare}
  prepare: {handler: echo, params: {width: "{{ inputs.width }}"}, next: split}
  split:
    type: fan_out
    source: "{{ range(nodes.prepare.output.echoed_params.width) | list }}"
    task: {handler: echo, params: {index: "{{ item }}"}}
    next: gather
  gather: {type: fan_in, aggregation: collect, next: end}
  end: {type: end}
"""
