"""Retention: what ended long ago goes with all that belongs to it; what is active or still needed stays."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.services.items import put_item

from graticule.core.ids import JobId, OwnerId, WorkerId, WorkflowHash
from graticule.core.models import Checkpoint, Orchestrator, Worker
from graticule.core.models.engine import JobPurpose
from graticule.core.states import JobStatus, NodeStatus
from graticule.core.table import DatabaseRole, Row
from graticule.handlers.outputs.staging import Promotion, begin, move_outputs
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.base import Repository
from graticule.repositories.database import Connection, Database
from graticule.repositories.retention import RetentionRepository
from graticule.repositories.vectors import FeatureTable, VectorRepository
from graticule.services import retention as retention_module
from graticule.services.retention import Removed, RetentionService
from graticule.storage.local import LocalStorage
from graticule.storage.paths import scratch_name

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=120)
CUTOFF = NOW - timedelta(days=90)
OLD_HASH, NEW_HASH = WorkflowHash("01" * 32), WorkflowHash("02" * 32)
TABLES = ("jobs", "nodes", "tasks", "task_results", "job_events", "checkpoints", "callbacks")


@pytest.fixture
def database(own_database: TestDatabase) -> TestDatabase:
    """Partitions come and go, so each test has a database of its own."""
    return own_database


@pytest.fixture
async def owner(database: TestDatabase) -> AsyncIterator[Database]:
    async with Database(database.url(), DatabaseRole.OWNER, pool_size=4) as opened:
        yield opened


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    return tmp_path / "storage"


@pytest.fixture
def retention(pool: Database, owner: Database, storage: Path) -> RetentionService:
    return RetentionService(pool, owner, LocalStorage(storage))


def unheard(_: Removed) -> None:
    pass


async def add(connection: Connection, *added: Row) -> None:
    by_model: dict[type[Row], list[Row]] = {}
    for row in added:
        by_model.setdefault(type(row), []).append(row)
    for model, group in by_model.items():
        repository = Repository[Any](connection)
        repository.model, repository.subject = model, model.__name__  # type: ignore[misc]
        await repository.insert_many(group)


def job_with_rows(job_id: str, **changes: Any) -> list[Row]:
    """Give a job with one row of everything that belongs to a job."""
    values = {"status": JobStatus.COMPLETED, "ended_at": LONG_AGO, "created_at": LONG_AGO, "workflow_hash": OLD_HASH}
    return [
        rows.job(job_id, **{**values, **changes}),
        rows.node(job_id=job_id, status=NodeStatus.COMPLETED, ended_at=LONG_AGO),
        rows.task(f"{job_id}_node_0", job_id=job_id, created_at=LONG_AGO),
        rows.result(task_id=f"{job_id}_node_0", job_id=job_id, reported_at=LONG_AGO, processed_at=LONG_AGO),
        rows.event(job_id=job_id, created_at=LONG_AGO),
        Checkpoint(job_id=JobId(job_id), node_id=rows.node().node_id, task_id=rows.task().task_id, phase="a",
                   saved_at=LONG_AGO),
        rows.callback(job_id=job_id),
    ]  # fmt: skip


@pytest.fixture
async def workflows(connection: Connection) -> Connection:
    """Give a connection to a database that has two contents of one workflow."""
    await add(
        connection,
        rows.workflow(workflow_hash=OLD_HASH, created_at=LONG_AGO),
        rows.workflow(workflow_hash=NEW_HASH, created_at=LONG_AGO + timedelta(days=1)),
    )
    return connection


async def count(connection: Connection, table: str) -> int:
    row = await (await connection.execute(f"SELECT count(*) AS n FROM dagapp.dag_{table}".encode())).fetchone()
    assert row is not None
    return int(row["n"])


async def job_ids(connection: Connection) -> set[str]:
    found = await (await connection.execute("SELECT job_id FROM dagapp.dag_jobs")).fetchall()
    return {row["job_id"] for row in found}


async def test_a_thousand_ended_jobs_go_with_every_row_and_active_ones_keep_theirs(
    workflows: Connection, retention: RetentionService
) -> None:
    ended = [row for number in range(1000) for row in job_with_rows(f"ended-{number}")]
    active = [
        *job_with_rows("running", status=JobStatus.RUNNING, ended_at=None),
        *job_with_rows("pending", status=JobStatus.PENDING, ended_at=None),
    ]
    await add(workflows, *ended, *active)
    told: list[Removed] = []
    removed = await retention.prune(CUTOFF, batch=150, tell=told.append)
    assert await job_ids(workflows) == {"running", "pending"}
    assert {table: await count(workflows, table) for table in TABLES} == dict.fromkeys(TABLES, 2)
    assert [each.rows.jobs for each in told] == [150, 300, 450, 600, 750, 900, 1000, 1000]
    kinds = ("jobs", "nodes", "tasks", "results", "events", "checkpoints", "callbacks")
    assert {kind: getattr(removed.rows, kind) for kind in kinds} == dict.fromkeys(kinds, 1000)


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
async def test_the_time_of_the_end_decides_not_the_time_of_the_beginning(
    workflows: Connection, retention: RetentionService, status: JobStatus
) -> None:
    reason = "it failed" if status is JobStatus.FAILED else None
    await add(workflows, *job_with_rows("before", status=status, error_message=reason, ended_at=CUTOFF - timedelta(1)))
    await add(workflows, *job_with_rows("at", status=status, error_message=reason, ended_at=CUTOFF))
    await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert await job_ids(workflows) == {"at"}
    assert {table: await count(workflows, table) for table in TABLES} == dict.fromkeys(TABLES, 1)


async def test_the_current_job_of_an_asset_version_stays_and_so_does_the_history_of_the_asset(
    workflows: Connection, retention: RetentionService
) -> None:
    await AssetRepository(workflows).insert(rows.asset())
    await AssetVersionRepository(workflows).insert(rows.version())
    of_asset = {"asset_id": rows.ASSET, "version_ordinal": 0, "purpose": JobPurpose.PROCESS}
    await add(workflows, *job_with_rows("current", **of_asset), *job_with_rows("former", **of_asset))
    await add(workflows, rows.event(job_id="former", asset_id=rows.ASSET, created_at=LONG_AGO))
    await workflows.execute("UPDATE dagapp.asset_versions SET current_job_id = 'current'")
    await retention.prune(CUTOFF, batch=1, tell=unheard)
    assert await job_ids(workflows) == {"current"}
    events = await (await workflows.execute("SELECT job_id, asset_id FROM dagapp.dag_job_events")).fetchall()
    assert {(event["job_id"], event["asset_id"]) for event in events} == {("current", None), ("former", rows.ASSET)}


async def test_counting_tells_what_would_go_and_removes_nothing(
    workflows: Connection, retention: RetentionService
) -> None:
    await add(workflows, *job_with_rows("a"), *job_with_rows("b"), *job_with_rows("now", ended_at=NOW))
    counted = await retention.count(CUTOFF)
    assert await job_ids(workflows) == {"a", "b", "now"}
    assert counted.rows == (await retention.prune(CUTOFF, batch=10, tell=unheard)).rows
    assert counted.rows.jobs == 2


async def test_two_prunes_at_once_remove_each_job_once_and_disturb_neither_each_other(
    workflows: Connection, retention: RetentionService
) -> None:
    await add(workflows, *(row for number in range(400) for row in job_with_rows(f"ended-{number}")))
    both = await asyncio.gather(*(retention.prune(CUTOFF, batch=7, tell=unheard) for _ in range(2)))
    assert sum(each.rows.jobs for each in both) == 400
    assert sum(each.rows.nodes for each in both) == 400
    assert await job_ids(workflows) == set()
    await retention.prune(CUTOFF, batch=7, tell=unheard)  # results that the other one held were passed over
    assert {table: await count(workflows, table) for table in TABLES} == dict.fromkeys(TABLES, 0)


async def test_a_job_that_is_being_resumed_is_passed_over(
    workflows: Connection, pool: Database, retention: RetentionService
) -> None:
    await add(workflows, *job_with_rows("failed", status=JobStatus.FAILED, error_message="it failed"))
    async with pool.connection() as resuming, resuming.transaction():
        await resuming.execute("UPDATE dagapp.dag_jobs SET status = 'running', ended_at = NULL")
        assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).rows.jobs == 0
    assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).rows.jobs == 0
    assert await job_ids(workflows) == {"failed"}


async def test_results_of_jobs_that_are_gone_are_found_on_every_page(
    workflows: Connection, retention: RetentionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graticule.services.retention.RESULTS_PER_PAGE", 3)
    await add(workflows, *job_with_rows("active", status=JobStatus.RUNNING, ended_at=None))
    await add(workflows, *(rows.result(job_id=name, reported_at=LONG_AGO) for name in ["active", "gone"] * 5))
    await add(workflows, rows.result(job_id="gone", reported_at=NOW))
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert removed.rows.results == 5
    assert await count(workflows, "task_results") == 7


async def test_contents_of_workflows_stay_while_a_job_has_them_or_they_are_the_newest_or_young(
    workflows: Connection, retention: RetentionService
) -> None:
    other = {"workflow_id": "other"}
    await add(
        workflows,
        rows.workflow(workflow_hash="03" * 32, created_at=LONG_AGO, **other),
        rows.workflow(workflow_hash="04" * 32, created_at=NOW - timedelta(days=2), **other),
        rows.workflow(workflow_hash="05" * 32, created_at=NOW - timedelta(days=1), **other),
        *job_with_rows("ended"),
        *job_with_rows("active", workflow_id="other", workflow_hash="03" * 32, status=JobStatus.RUNNING, ended_at=None),
    )
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert removed.workflows == 1
    found = await (await workflows.execute("SELECT workflow_hash FROM dagapp.dag_workflows")).fetchall()
    assert {row["workflow_hash"][:2] for row in found} == {"02", "03", "04", "05"}


async def test_messages_that_were_dealt_with_and_processes_that_stopped_go_too(
    workflows: Connection, retention: RetentionService
) -> None:
    at = {"created_at": LONG_AGO}
    messages = [rows.message(status, status=status, **at) for status in ("queued", "done", "withdrawn")]
    await add(workflows, *messages, rows.message("dead", status="dead", dead_reason="x", **at))
    await add(workflows, rows.message("new", status="done", created_at=NOW))
    process = {"hostname": "h", "process_id": 1, "program_version": "1", "started_at": LONG_AGO}
    for owner_id, stopped_at in (("alive", None), ("stopped", LONG_AGO), ("owns", LONG_AGO), ("recent", NOW)):
        times = {"heartbeat_at": LONG_AGO, "stopped_at": stopped_at}
        await add(workflows, Orchestrator(owner_id=OwnerId(owner_id), lock_key=1, **process, **times))
        await add(workflows, Worker(worker_id=WorkerId(owner_id), queues=["q"], concurrency=1, **process, **times))
    await add(workflows, *job_with_rows("active", status=JobStatus.RUNNING, ended_at=None, owner_id="owns"))
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert (removed.messages, removed.processes) == (2, 3)
    left = await (await workflows.execute("SELECT message_id FROM dagapp.dag_job_messages")).fetchall()
    assert {row["message_id"] for row in left} == {"queued", "dead", "new"}
    left = await (await workflows.execute("SELECT owner_id FROM dagapp.dag_orchestrators")).fetchall()
    assert {row["owner_id"] for row in left} == {"alive", "owns", "recent"}


async def test_outputs_in_the_storage_go_with_their_job_and_nothing_else_does(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    for name in ("ended", "active", "unknown"):
        (storage / "outputs" / name).mkdir(parents=True)
        (storage / "outputs" / name / "node_0.json").write_text("{}")
    await add(workflows, *job_with_rows("ended"), *job_with_rows(".."), *job_with_rows("a/../../outputs"))
    await add(workflows, *job_with_rows("active", status=JobStatus.RUNNING, ended_at=None))
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert removed.outputs == 1
    assert {path.name for path in (storage / "outputs").iterdir()} == {"active", "unknown"}


async def test_the_working_folder_of_a_job_goes_with_it_unless_another_job_has_it_too(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    ended, shared, kept, active, failed = ("aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd", "eeeeeeee")
    for name in (ended, shared, kept, active, failed, "ddh/data", "ffffffff"):
        make(storage / "silver" / name / "out" / "x.tif")
    await AssetRepository(workflows).insert(rows.asset())
    await AssetVersionRepository(workflows).insert(rows.version())
    running = {"status": JobStatus.RUNNING, "ended_at": None}
    of_asset = {"asset_id": rows.ASSET, "version_ordinal": 0, "purpose": JobPurpose.PROCESS}
    reason = {"status": JobStatus.FAILED, "error_message": "it failed"}
    for job_id, changes in (
        *((f"1-{ended}", {}), (f"2-{ended}", reason), (f"1-{shared}", {}), (f"2-{shared}", running)),
        *((f"1-{kept}", {"ended_at": NOW}), (f"1-{active}", running), (f"1-{failed}", {**reason, **of_asset})),
    ):
        await add(workflows, *job_with_rows(job_id, **changes))
    await workflows.execute("UPDATE dagapp.asset_versions SET current_job_id = '1-eeeeeeee'")
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert f"1-{failed}" in await job_ids(workflows), "the rows stay, for a version names the job"
    assert {path.name for path in (storage / "silver").iterdir()} == {shared, kept, active, "ddh", "ffffffff"}
    assert removed.scratch == 2


async def test_the_id_that_parameters_give_has_a_working_folder_of_its_own(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    """Whoever chooses the parameters can make its last characters those of another job's id."""
    by_parameters, drawn = "0123abcd" * 8, "f" * 24 + "0123abcd"
    for name in (scratch_name(by_parameters), scratch_name(drawn)):
        make(storage / "silver" / name / "out" / "x.tif")
    await add(workflows, *job_with_rows(by_parameters))
    await add(workflows, *job_with_rows(drawn, status=JobStatus.RUNNING, ended_at=None))
    assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).scratch == 1
    assert [path.name for path in (storage / "silver").iterdir()] == ["0123abcd"]


async def test_jobs_of_one_working_folder_in_two_batches_lose_it_with_the_last(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    make(storage / "silver" / "aaaaaaaa" / "tiles" / "x.tif")
    await add(workflows, *job_with_rows("1-aaaaaaaa"), *job_with_rows("2-aaaaaaaa"))
    told: list[Removed] = []
    await retention.prune(CUTOFF, batch=1, tell=told.append)
    assert [each.scratch for each in told] == [0, 1, 1]
    assert not (storage / "silver" / "aaaaaaaa").exists()


async def test_a_job_that_is_being_resumed_keeps_its_working_folder(
    workflows: Connection, pool: Database, retention: RetentionService, storage: Path
) -> None:
    make(storage / "silver" / "aaaaaaaa" / "tiles" / "x.tif")
    await add(workflows, *job_with_rows("1-aaaaaaaa", status=JobStatus.FAILED, error_message="it failed"))
    async with pool.connection() as resuming, resuming.transaction():
        await resuming.execute("UPDATE dagapp.dag_jobs SET status = 'running', ended_at = NULL")
        assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).scratch == 0
    assert (storage / "silver" / "aaaaaaaa" / "tiles" / "x.tif").exists()


class SlowStorage(LocalStorage):
    """A storage that takes longer for a folder than the server lets a transaction idle, in this test."""

    async def delete_below(self, prefix: str) -> int:
        await asyncio.sleep(0.8)
        return await super().delete_below(prefix)


async def test_a_slow_storage_breaks_no_transaction_and_holds_few_jobs(
    workflows: Connection, pool: Database, owner: Database, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HELD_SECONDS", 0.1), ("STAY_SECONDS", 0.05)):
        monkeypatch.setattr(retention_module, name, value)
    for name in ("aaaaaaaa", "bbbbbbbb"):
        make(storage / "silver" / name / "out" / "x.tif")
        await add(workflows, *job_with_rows(f"1-{name}"))
    told: list[Removed] = []
    retention = RetentionService(pool, owner, SlowStorage(storage))
    hold = RetentionRepository.hold_jobs

    async def impatient(self: RetentionRepository, before: datetime, limit: int) -> list[JobId]:
        await self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = '500ms'")
        return await hold(self, before, limit)

    monkeypatch.setattr(RetentionRepository, "hold_jobs", impatient)
    removed = await retention.prune(CUTOFF, batch=10, tell=told.append)
    assert (removed.scratch, removed.rows.jobs) == (2, 2)
    assert [each.rows.jobs for each in told] == [1, 2, 2], "each was held alone"


@pytest.mark.parametrize("is_catalogued", [False, True])
async def test_what_a_killed_registration_has_moved_goes_with_its_job_unless_it_is_catalogued(
    workflows: Connection, retention: RetentionService, storage: Path, database: TestDatabase, *, is_catalogued: bool
) -> None:
    files = LocalStorage(storage)
    old, new = "silver/direct/a/cogs/old.tif", "silver/direct/a/cogs/a.tif"
    await files.put(old, b"of an earlier job")
    await files.put(new, b"of an earlier job")
    await files.put("silver/aaaaaaaa/out/cogs/a.tif", b"new")
    promotion = Promotion(
        blob_prefix="direct/a", collection_id="c", item_id="i", href=new, checksum="12", sizes={"cogs/a.tif": 3}, at=NOW
    )
    await begin(files, "1-aaaaaaaa", promotion)
    await move_outputs(files, "1-aaaaaaaa", promotion, nothing)
    if is_catalogued:
        put_item(database, "c", "i", {"data": {"href": new, "file:checksum": "12"}})
    await add(workflows, *job_with_rows("1-aaaaaaaa", status=JobStatus.FAILED, error_message="it was killed"))
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert removed.scratch == 1
    found = {blob.path: await files.get(blob.path) async for blob in files.list("silver")}
    assert found == ({new: b"new"} if is_catalogued else dict.fromkeys((old, new), b"of an earlier job"))


async def test_a_working_folder_whose_promotion_cannot_be_looked_up_is_left(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    make(storage / "silver" / "aaaaaaaa" / "promoted.json")
    make(storage / "silver" / "aaaaaaaa" / "out" / "cogs" / "a.tif")
    await add(workflows, *job_with_rows("1-aaaaaaaa"), *job_with_rows("2"))
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert (removed.scratch, removed.rows.jobs) == (0, 2)
    assert (storage / "silver" / "aaaaaaaa" / "out" / "cogs" / "a.tif").exists()


async def test_a_platform_that_is_called_like_a_working_folder_keeps_its_files(
    workflows: Connection, retention: RetentionService, storage: Path
) -> None:
    folder = storage / "silver" / "aaaaaaaa"
    theirs = [folder / dataset / "short" / "v1" / "r1" / "cogs" / "x.tif" for dataset in ("data", "out", "tiles")]
    for file in (*theirs, folder / "out" / "cogs" / "y.tif", folder / "tiles" / "y.tif"):
        make(file)
    await add(workflows, *job_with_rows("1-aaaaaaaa"))
    assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).scratch == 1
    assert sorted(file for file in folder.rglob("*") if file.is_file()) == sorted(theirs)


async def test_tables_that_nobody_is_going_to_publish_are_dropped(
    workflows: Connection, retention: RetentionService, database: TestDatabase
) -> None:
    await add(workflows, *job_with_rows("ended"))
    await add(workflows, *job_with_rows("active", status=JobStatus.RUNNING, ended_at=None))
    async with (
        Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER) as worker,
        worker.connection() as connection,
        connection.transaction(),
    ):
        for job_id in ("ended", "active", "gone"):
            await VectorRepository(connection, JobId(job_id)).create_staging(FeatureTable({"n": "bigint"}), "it")
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert sorted(removed.tables) == ["staging_ended", "staging_ended_chunks", "staging_gone", "staging_gone_chunks"]
    left = await (await workflows.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'geo'")).fetchall()
    assert {row["tablename"] for row in left} == {"staging_active", "staging_active_chunks"}


async def nothing() -> None:
    pass


async def test_files_that_were_never_finished_go_after_a_day(retention: RetentionService, storage: Path) -> None:
    old, new = (storage / "silver" / "ddh" / f".{name * 32}.partial" for name in "01")
    for file, age in ((old, timedelta(hours=25)), (new, timedelta(hours=23))):
        make(file)
        os.utime(file, ((NOW - age).timestamp(),) * 2)
    assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).unfinished == 1
    assert [path.name for path in (storage / "silver" / "ddh").iterdir()] == [new.name]


def make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x")


async def partitions(admin: psycopg.AsyncConnection[Any]) -> set[str]:
    query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'dagapp.dag_job_events'::regclass"
    return {name.removeprefix("dagapp.dag_job_events_") for (name,) in await (await admin.execute(query)).fetchall()}


async def make_partition(admin: psycopg.AsyncConnection[Any], year: int, month: int) -> str:
    first = datetime(year, month, 1, tzinfo=UTC)
    following = (first + timedelta(days=32)).replace(day=1)
    await admin.execute(
        f"CREATE TABLE dagapp.dag_job_events_{first:%Y_%m} PARTITION OF dagapp.dag_job_events"
        f" FOR VALUES FROM ('{first:%Y-%m-%d} 00:00Z') TO ('{following:%Y-%m-%d} 00:00Z')".encode()
    )
    await admin.execute(f"ALTER TABLE dagapp.dag_job_events_{first:%Y_%m} OWNER TO graticule_owner".encode())
    return f"{first:%Y_%m}"


async def test_months_that_are_past_and_empty_are_dropped_and_the_coming_ones_are_made(
    workflows: Connection, admin: psycopg.AsyncConnection[Any], retention: RetentionService
) -> None:
    present = await partitions(admin)
    emptied = await make_partition(admin, 2024, 1)
    empty = await make_partition(admin, 2024, 12)
    kept = await make_partition(admin, 2024, 2)
    in_january, in_february = datetime(2024, 1, 9, tzinfo=UTC), datetime(2024, 2, 9, tzinfo=UTC)
    await add(workflows, *job_with_rows("ended"), rows.event(job_id="ended", created_at=in_january))
    await add(workflows, *job_with_rows("active", status=JobStatus.RUNNING, ended_at=None))
    await add(workflows, rows.event(job_id="active", created_at=in_february))
    coming = max(present - {"default"})
    await admin.execute(f"DROP TABLE dagapp.dag_job_events_{coming}".encode())
    removed = await retention.prune(CUTOFF, batch=10, tell=unheard)
    assert list(removed.partitions) == [f"dag_job_events_{name}" for name in (emptied, empty)]
    assert list(removed.partitions_made) == [f"dag_job_events_{coming}"]
    assert await partitions(admin) == present | {kept}


async def test_the_month_in_which_the_cutoff_lies_is_not_dropped(
    admin: psycopg.AsyncConnection[Any], retention: RetentionService
) -> None:
    name = await make_partition(admin, 2024, 3)
    await retention.prune(datetime(2024, 3, 31, 23, tzinfo=UTC), batch=10, tell=unheard)
    assert name in await partitions(admin)
    await retention.prune(datetime(2024, 4, 1, tzinfo=UTC), batch=10, tell=unheard)
    assert name not in await partitions(admin)


async def test_a_month_that_someone_writes_to_is_left_for_the_next_time(
    admin: psycopg.AsyncConnection[Any], pool: Database, retention: RetentionService
) -> None:
    name = await make_partition(admin, 2024, 3)
    async with pool.connection() as writing, writing.transaction():
        await writing.execute("LOCK TABLE dagapp.dag_job_events IN ROW EXCLUSIVE MODE")
        assert not (await retention.prune(CUTOFF, batch=10, tell=unheard)).partitions
    assert name in await partitions(admin)
    assert (await retention.prune(CUTOFF, batch=10, tell=unheard)).partitions


async def test_a_month_whose_events_are_in_the_default_partition_is_not_made(
    connection: Connection, admin: psycopg.AsyncConnection[Any], retention: RetentionService
) -> None:
    coming = max(await partitions(admin) - {"default"})
    await admin.execute(f"DROP TABLE dagapp.dag_job_events_{coming}".encode())
    year, month = map(int, coming.split("_"))
    await add(connection, rows.event(created_at=datetime(year, month, 5, tzinfo=UTC)))
    assert not (await retention.prune(CUTOFF, batch=10, tell=unheard)).partitions_made
    assert await count(connection, "job_events") == 1
