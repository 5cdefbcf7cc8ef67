"""A backup of a system that is at work, restored into another server: all that it has goes on there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from tests.chaos.history import SubmittedJob, read_history
from tests.chaos.ledger import Ledger
from tests.chaos.rules import report, violations
from tests.chaos.test_engine_history import LEFT, REAL, Handlers
from tests.conftest import TestDatabase
from tests.e2e.conftest import open_folder
from tests.e2e.installation import FORKED, Program
from tests.integration.orchestrator.instances import ROLE, Instance, until, working
from tests.integration.services.engine import flow

from graticule.core.cancellation import end_tasks
from graticule.core.errors import Conflict
from graticule.core.ids import WorkerId
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.repositories.catalogue import writing
from graticule.repositories.database import Database
from graticule.repositories.tasks import TaskRepository
from graticule.schema.archive import settle_restored
from graticule.services.bootstrap import BootstrapService
from graticule.services.jobs import Submission

QUICK = {"fsync": "off", "full_page_writes": "off"}  # a power cut is not among what is tried here
SOON = {"orphan_scan_interval_seconds": 0.2, "orchestrator_poll_interval": 0.2}  # it looks for itself, and often
ELSEWHERE = "elsewhere"
WAITING = flow(
    f"""
  start: {{type: start, next: a}}
  a: {{handler: echo, queue: {ELSEWHERE}, next: end}}""",
    workflow_id="waiting",
)
COLLECTION: dict[str, Any] = {
    "id": "reliefs",
    "type": "Collection",
    "stac_version": "1.1.0",
    "description": "Reliefs",
    "license": "other",
    "extent": {"spatial": {"bbox": [[-180, -90, 180, 90]]}, "temporal": {"interval": [[None, None]]}},
    "links": [],
}
TABLE: LiteralString = """
    SET ROLE graticule_worker;
    CREATE TABLE geo.parcels (fid bigint PRIMARY KEY, geom geometry(Point, 4326));
    INSERT INTO geo.parcels SELECT n, ST_SetSRID(ST_MakePoint(n, n), 4326) FROM generate_series(1, 50) AS n;
"""
# One task is in the hands of a worker that is never heard of again, and was due two hours ago, as if the dump were old
# when it is restored. A broker was given the other.
TIME_PASSES: LiteralString = """
    UPDATE dagapp.dag_nodes SET dispatched_at = now() - interval '3 h', deadline_at = now() - interval '2 h'
    WHERE task_id IN (SELECT task_id FROM dagapp.dag_tasks WHERE leased_by = 'dead');
    UPDATE dagapp.dag_tasks SET sent_at = now() WHERE queue = 'elsewhere' AND status = 'queued'
"""
TIMES: LiteralString = """
    SELECT node.deadline_at BETWEEN now() + interval '50 min' AND now() + interval '1 h', task.sent_at
    FROM dagapp.dag_nodes AS node JOIN dagapp.dag_tasks AS task USING (task_id)
    WHERE task.queue = 'elsewhere'
    ORDER BY task.leased_by
"""
UNDER_WAY: LiteralString = "SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')"
SUBMITTED: LiteralString = "SELECT idempotency_key, workflow_id, job_id FROM dagapp.dag_jobs"
ENDED: LiteralString = "SELECT FROM dagapp.dag_jobs WHERE ended_at IS NOT NULL LIMIT 1"
DONE: LiteralString = "SELECT task_id FROM dagapp.dag_tasks WHERE status = 'done'"
SEARCH: LiteralString = "SELECT jsonb_array_length(pgstac.search('{}') -> 'features')"


async def test_a_system_at_work_goes_on_in_another_server(own_database: TestDatabase, tmp_path: Path) -> None:
    before, after = Handlers(Ledger(tmp_path / "before")), Handlers(Ledger(tmp_path / "after"))
    file = tmp_path / "graticule.dump"
    await fill(own_database)
    async with at_work(own_database, tmp_path, before):
        told = await asyncio.to_thread(run, tmp_path, "backup", file, GRATICULE_DATABASE_URL=own_database.url())
        with pytest.raises(Conflict, match=r"Orchestrators are at work in this database: owner-a\."):
            await settle_restored(own_database.url())
    assert "Copy the storage now, not before: " in told
    with open_folder() as folder:
        home = folder / "home"
        told = await asyncio.to_thread(run, tmp_path, "restore", file, GRATICULE_HOME=str(home))
        async with Cluster.of(home, settings=QUICK) as cluster:
            await allow_logins(cluster.url(ADMIN), Credentials.load(home))
            there = TestDatabase("graticule", home)
            assert (
                f"The database is ready. Jobs that go on when an orchestrator starts: {ask(there, UNDER_WAY)[0][0]}."
                in told
            )
            assert "Tasks that a broker was given, and is given anew: 1." in told
            assert ask(there, TIMES) == [(True, None), (True, None)]
            await has_all_rights_and_no_more(there)
            await has_its_data(there)
            submitted = [SubmittedJob(key, flow, job) for key, flow, job in ask(there, SUBMITTED)]
            keep_what_the_dump_knows(before.ledger, {task for (task,) in ask(there, DONE)}, after.ledger)
            await goes_on(there, tmp_path, after)
            history = await read_history(there.url(), after.ledger, submitted)
    found = violations(history)
    assert found == [], report(history, found)
    assert {job.status.value for job in history.jobs} == {"completed"}
    assert {job.workflow_id for job in history.jobs} == {"real", "waiting"}


def run(folder: Path, command: str, file: Path, **environment: Any) -> str:
    """Run a command to its end, and give what it told."""
    program = Program(folder, FORKED, command, str(file), **environment)
    assert program.wait(60) == 0, program.errors
    return program.errors


def ask(database: TestDatabase, question: LiteralString, role: str = ADMIN) -> list[tuple[Any, ...]]:
    """Ask as a role; an answer is a list of rows."""
    with psycopg.connect(database.url(role), autocommit=True, options="-c search_path=pgstac,public") as connection:
        cursor = connection.execute(question)
        return cursor.fetchall() if cursor.description else []


async def fill(database: TestDatabase) -> None:
    """Write a table of features and the catalogue, as workers do."""
    ask(database, TABLE)
    await add_item(database, 2020)


async def add_item(database: TestDatabase, year: int) -> None:
    """Write an item, and make room for it, as workers do."""
    at = datetime(year, 1, 1, tzinfo=UTC)
    item = {
        "id": f"of-{year}",
        "type": "Feature",
        "collection": "reliefs",
        "stac_version": "1.1.0",
        "links": [],
        "geometry": {"type": "Point", "coordinates": [7, 47]},
        "properties": {"datetime": at.isoformat()},
        "assets": {},
    }
    async with (
        Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=1) as pool,
        writing(pool) as catalogue,
    ):
        await catalogue.write_collection(COLLECTION)
        await catalogue.make_room("reliefs", at, at)
        await catalogue.write_items("reliefs", [item])


@asynccontextmanager
async def at_work(database: TestDatabase, folder: Path, handlers: Handlers) -> AsyncIterator[None]:
    """Let jobs come and go while something else is done; at its end, the orchestrator is gone without a word."""
    url = database.url(ROLE)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(Database(url, ROLE, pool_size=4))
        instance = Instance(pool, url, folder, REAL, WAITING, owner="owner-a")
        instance.vanishes()
        await stack.enter_async_context(instance.running())
        await leave_two_behind(database, instance)
        await stack.enter_async_context(working(database, handlers))
        submitting = [asyncio.create_task(submit_on_and_on(instance, name)) for name in ("one", "two", "three")]
        await until(lambda: has_ended_some(instance))
        yield
        await end_tasks(*submitting)


async def leave_two_behind(database: TestDatabase, instance: Instance) -> None:
    for key in ("taken", "sent"):
        await instance.jobs.submit(Submission(workflow_id="waiting", idempotency_key=key))
    async with instance.pool.connection() as connection:
        assert len(await TaskRepository(connection).claim(WorkerId("dead"), ELSEWHERE, 1, 3600)) == 1
    ask(database, TIME_PASSES)


async def submit_on_and_on(instance: Instance, name: str) -> None:
    """Submit the next job when the last one has ended, however long that is to go on."""
    for number in count():
        wanted = Submission(workflow_id="real", idempotency_key=f"{name}-{number}")
        await instance.ended((await instance.jobs.submit(wanted)).job.job_id)


async def has_ended_some(instance: Instance) -> bool:
    async with instance.pool.connection() as connection:
        return bool(await (await connection.execute(ENDED)).fetchall())


async def has_all_rights_and_no_more(database: TestDatabase) -> None:
    """The schema is as deployed, and who may do what is as it was: in the tables, and in the database itself."""
    assert (await BootstrapService(database.url(), development=False).status()).current
    assert ask(database, "SELECT count(*) FROM geo.parcels", DatabaseRole.SERVE_INTERNAL) == [(50,)]
    for forbidden in ("DELETE FROM dagapp.dag_jobs", "CREATE TEMPORARY TABLE t ()", "SELECT lo_create(0)"):
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
            ask(database, forbidden, DatabaseRole.GATEWAY)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(database, "SELECT count(*) FROM dagapp.dag_jobs", DatabaseRole.SERVE_EXTERNAL)


async def has_its_data(database: TestDatabase) -> None:
    """The catalogue can be searched, and written at a time for which it has no table yet; nothing in it is approved."""
    assert ask(database, SEARCH) == [(1,)]
    await add_item(database, 2031)
    assert ask(database, SEARCH) == [(2,)]
    assert ask(database, "SELECT count(*) FROM pgstac.items", DatabaseRole.SERVE_INTERNAL) == [(0,)]


def keep_what_the_dump_knows(source: Ledger, done: set[str], target: Ledger) -> None:
    """Copy what ran before the dump; what ran after it happened in another history."""
    for entry in source.read():
        if entry.task_id in done:
            target.write(entry)


async def goes_on(database: TestDatabase, folder: Path, handlers: Handlers) -> None:
    """Start an orchestrator and workers, and wait until nothing is left to do."""
    url = database.url(ROLE)
    async with Database(url, ROLE, pool_size=4) as pool:
        instance = Instance(pool, url, folder, REAL, WAITING, owner="owner-b", **SOON)
        async with instance.running(), working(database, handlers), working(database, handlers, ELSEWHERE):
            await until(lambda: is_quiet(instance))


async def is_quiet(instance: Instance) -> bool:
    async with instance.pool.connection() as connection:
        return not await (await connection.execute(LEFT)).fetchall()
