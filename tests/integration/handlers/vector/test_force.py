"""Loads that are cut off, meet each other, or find no room: nothing half-made is seen, and the next attempt goes on."""

import base64
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import shapely
from psycopg import sql
from tests.conftest import TestDatabase
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program
from tests.e2e.processes import all_processes, free_ports
from tests.folders import new_cluster_folder
from tests.integration.handlers.vector.ingesting import QUEUE, Database, Ingestion, Loaded, Refused
from tests.integration.handlers.vector.writers import write_layer
from tests.integration.handlers.vector.written import wkb_of

from graticule.core.table import DatabaseRole
from graticule.repositories.overviews import overview_name

LIVE = "direct_roads"
ROWS, CHUNKS = 12, 4


def write_roads(file: Path, first: int = 0, texts: list[str] | None = None) -> Path:
    """Write rows that tell by themselves where they belong."""
    numbers = list(range(first, first + ROWS))
    columns: list[Any] = [("n", "int64", numbers), ("text", "text", texts or [str(number) for number in numbers])]
    shapes = wkb_of([shapely.Point(number, number / 2) for number in range(ROWS)])
    write_layer(file, "GPKG", columns, shapes, geometry_type="Point", SPATIAL_INDEX="NO")
    return file


@dataclass
class Job:
    """A load that is taken apart into its steps."""

    ingestion: Ingestion
    job_id: str
    source: dict[str, Any]
    staged: dict[str, Any]

    @classmethod
    def begun(cls, ingestion: Ingestion, file: Path) -> "Job":
        job_id = ingestion.rows.new_job()
        source = ingestion.validated(job_id, file)
        source["chunks"] = ingestion.chunks(source, ROWS // CHUNKS)
        assert len(source["chunks"]) == CHUNKS
        return cls(ingestion, job_id, source, ingestion.step(job_id, "vector.stage", source=source))

    def params(self, *chunks: int) -> list[dict[str, Any]]:
        return [{"source": self.staged["source"], "chunk": self.staged["chunks"][chunk]} for chunk in chunks]

    def load(self, *chunks: int) -> list[dict[str, Any]]:
        return self.ingestion.steps(self.job_id, "vector.load", self.params(*chunks))

    def finalized(self, loaded: list[dict[str, Any]]) -> dict[str, Any]:
        return {"source": self.source, "loaded": loaded, "table_name": LIVE}

    def ended(self) -> Loaded:
        """Load all, as a new attempt does, and give what is served then."""
        loaded = self.load(*range(CHUNKS))
        result = self.ingestion.step(self.job_id, "vector.finalize", **self.finalized(loaded))
        return self.ingestion.served(self.source, result, LIVE)


def staging_of(job_id: str) -> str:
    return f'geo."staging_{job_id}"'


def ledger_of(job_id: str) -> str:
    return f'geo."staging_{job_id}_chunks"'


def noted(rows: Database, job_id: str) -> dict[int, Any]:
    """Give the chunks that are loaded, each with the transaction that wrote it; no row is there without its chunk."""
    ledger = rows.ask(f"SELECT chunk, row_count, xmin::text AS written FROM {ledger_of(job_id)}")
    (count,) = rows.ask(f"SELECT count(*) AS rows FROM {staging_of(job_id)}")
    assert count["rows"] == sum(row["row_count"] for row in ledger)
    return {row["chunk"]: row["written"] for row in ledger}


def assert_whole(loaded: Loaded, first: int = 0) -> None:
    assert [feature["id"] for feature in loaded.features] == list(range(1, ROWS + 1))
    assert loaded.values("n") == list(range(first, first + ROWS))
    assert loaded.shapes == [shapely.MultiPoint([(number, number / 2)]) for number in range(ROWS)]


@contextmanager
def held(database: TestDatabase, table: str, mode: str) -> Iterator[Callable[[], int]]:
    """Keep others from a table, and tell how many wait for it."""
    with psycopg.connect(database.url()) as connection, psycopg.connect(database.url(), autocommit=True) as looking:
        connection.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())

        def waiting() -> int:
            query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            (count,) = looking.execute(query, [table]).fetchone() or (0,)
            return int(count)

        yield waiting
        connection.rollback()


# Two at once


def test_two_loads_of_one_table_at_once_leave_one_of_them_whole(ingestion: Ingestion) -> None:
    jobs = [Job.begun(ingestion, write_roads(ingestion.new_file("gpkg"), first)) for first in (0, 100)]
    tasks = [ingestion.rows.give(job.job_id, "vector.load", params) for job in jobs for params in job.params(*range(4))]
    loaded = [result["output"] for result in ingestion.run(ingestion.results(tasks))]
    with held(ingestion.rows.database, ledger_of(jobs[0].job_id), "ACCESS EXCLUSIVE"):
        tasks = [
            ingestion.rows.give(job.job_id, "vector.finalize", job.finalized(each))
            for job, each in zip(jobs, (loaded[:CHUNKS], loaded[CHUNKS:]), strict=True)
        ]
        ingestion.run(ingestion.until(lambda: ingestion.rows.result(tasks[1]), "the other to be ready"))
    results = ingestion.run(ingestion.results(tasks))
    assert [result["status"] for result in results] == ["completed"] * 2
    served = ingestion.served(jobs[0].source, {}, LIVE)
    assert_whole(served, served.values("n")[0])
    assert ingestion.rows.tables() == [LIVE]


def test_two_first_tables_of_one_name_end_at_once(ingestion: Ingestion) -> None:
    jobs = [Job.begun(ingestion, write_roads(ingestion.new_file("gpkg"), first)) for first in (0, 100)]
    loaded = [job.load(*range(CHUNKS)) for job in jobs]
    tasks = [
        ingestion.rows.give(job.job_id, "vector.finalize", job.finalized(each))
        for job, each in zip(jobs, loaded, strict=True)
    ]
    results = ingestion.run(ingestion.results(tasks))
    assert "completed" in [result["status"] for result in results], results
    assert all(result["status"] == "completed" or result["retryable"] for result in results), results
    served = ingestion.served(jobs[0].source, {}, LIVE)
    assert_whole(served, served.values("n")[0])
    if all(result["status"] == "completed" for result in results):
        assert ingestion.rows.tables() == [LIVE]


# Killed


def children_of(pid: int) -> list[int]:
    return [
        process.pid
        for process in all_processes()
        if process.parent == pid and any("graticule.worker.child" in part for part in process.command)
    ]


def test_a_child_that_is_killed_in_the_middle_leaves_no_half_chunk(ingestion: Ingestion) -> None:
    job = Job.begun(ingestion, write_roads(ingestion.new_file("gpkg")))
    job.load(0, 1)
    before = noted(ingestion.rows, job.job_id)
    with held(ingestion.rows.database, ledger_of(job.job_id), "SHARE") as waiting:
        (task,) = [ingestion.rows.give(job.job_id, "vector.load", params) for params in job.params(2)]
        ingestion.run(ingestion.until(waiting, "a chunk that is written and not committed"))
        for pid in children_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
    (result,) = ingestion.run(ingestion.results([task]))
    assert result["status"] == "failed"
    assert "SIGKILL" in result["error_message"]
    assert result["retryable"]
    after = noted(ingestion.rows, job.job_id)  # all of the chunk is there, or nothing
    assert {chunk: after[chunk] for chunk in before} == before
    assert LIVE not in ingestion.rows.tables()
    assert_whole(retried(job.ended))


def retried(attempt: Callable[[], Loaded]) -> Loaded:
    """Try again as an orchestrator does: processes that waited for work were killed, too."""
    for _ in range(os.cpu_count() or 1):
        with suppress(Refused):
            return attempt()
    return attempt()


def test_chunks_that_are_loaded_are_not_read_again(ingestion: Ingestion) -> None:
    job = Job.begun(ingestion, write_roads(ingestion.new_file("gpkg")))
    first = job.load(0, 1)
    before = noted(ingestion.rows, job.job_id)
    assert sorted(before) == [0, 1]
    assert job.load(0, 1) == first
    job.load(2, 3)
    after = noted(ingestion.rows, job.job_id)
    assert {chunk: after[chunk] for chunk in before} == before
    assert_whole(job.ended())


class Workers:
    """Real workers on a database, one after the other."""

    def __init__(self, database: TestDatabase, folder: Path) -> None:
        self.rows = Database(database)
        self.folder = folder
        self.started: list[Program] = []

    def start(self) -> Program:
        port = free_ports()
        environment = {
            "GRATICULE_DATABASE_URL": self.rows.database.url(DatabaseRole.WORKER),
            "GRATICULE_HOME": str(self.folder / "home"),
            "WORKER_QUEUE": QUEUE,
        }
        self.started.append(Program(self.folder, FORKED, "worker", "--port", str(port), port=port, **environment))
        return self.started[-1]

    def result(self, task: str) -> dict[str, Any]:
        result = eventually(lambda: self.rows.result(task), f"a result of {task}; {self.started[-1].errors[-2000:]}")
        if result["status"] != "completed":
            raise Refused(task, result)
        output: dict[str, Any] = result["output"]
        return output

    def step(self, job_id: str, handler: str, **params: Any) -> dict[str, Any]:
        return self.result(self.rows.give(job_id, handler, params))

    def kill(self) -> None:
        """End the worker as the kernel does when memory is short."""
        self.started[-1].process.kill()
        self.started[-1].wait()

    def go_on(self) -> None:
        """Give what it held to a new one, as an orchestrator does when the lease has run out."""
        self.rows.ask(
            "UPDATE dagapp.dag_tasks SET status = 'queued', leased_by = NULL, lease_expires_at = NULL"
            " WHERE status = 'leased'"
        )
        self.start()

    def close(self) -> None:
        for program in self.started:
            program.close()
        self.rows.close()


@pytest.fixture
def workers(own_database: TestDatabase) -> Iterator[Workers]:
    folder = new_cluster_folder()
    made = Workers(own_database, folder)
    yield made
    made.close()
    shutil.rmtree(folder)


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on(ingestion: Ingestion, workers: Workers) -> None:
    """It is killed twice: in the middle of a chunk, and when the table is live but nobody was told."""
    rows, job_id = workers.rows, workers.rows.new_job()
    write_roads(workers.folder / "home/storage/bronze/roads.gpkg")
    workers.start()
    source = workers.step(job_id, "vector.validate", container_name="bronze", blob_name="roads.gpkg")
    source["chunks"] = ingestion.chunks(source, ROWS // CHUNKS, workers.folder / "home/storage")
    staged = workers.step(job_id, "vector.stage", source=source)
    params = [{"source": staged["source"], "chunk": chunk} for chunk in staged["chunks"]]
    loaded = [workers.step(job_id, "vector.load", **params[0])]
    before = noted(rows, job_id)

    with held(rows.database, ledger_of(job_id), "SHARE") as waiting:
        tasks = [rows.give(job_id, "vector.load", each) for each in params[1:]]
        eventually(waiting, "a chunk that is written and not committed")
        workers.kill()
    eventually(lambda: noted(rows, job_id) == before, "the end of what it began")
    assert LIVE not in rows.tables()
    workers.go_on()
    loaded += map(workers.result, tasks)
    assert noted(rows, job_id)[0] == before[0]  # the first chunk was not loaded again

    with held(rows.database, ledger_of(job_id), "ACCESS EXCLUSIVE") as waiting:
        task = rows.give(job_id, "vector.finalize", {"source": source, "loaded": loaded, "table_name": LIVE})
        eventually(waiting, "the last step")
        answers = held(rows.database, "dagapp.dag_task_results", "SHARE")
        waiting_to_answer = answers.__enter__()
    eventually(waiting_to_answer, "an answer that nobody gets")
    assert LIVE in rows.tables()
    workers.kill()
    answers.__exit__(None, None, None)
    workers.go_on()
    assert workers.result(task)["row_count"] == ROWS
    assert rows.tables() == [LIVE]
    found = rows.ask(f"SELECT fid, n FROM geo.{LIVE} ORDER BY fid")
    assert found == [{"fid": number + 1, "n": number} for number in range(ROWS)]


# No room


@dataclass(frozen=True)
class SmallDisk:
    """A file system of a few megabytes, which holds the tables that are made from now on."""

    folder: Path

    def resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)


@pytest.fixture
def small_disk(own_database: TestDatabase) -> Iterator[SmallDisk]:
    """Mount a disk, and let the database put new tables on it: what is full then is theirs alone."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = new_cluster_folder()
    owner = (own_database.home / "postgres").stat().st_uid
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=2m,uid={owner},mode=700", "tmpfs", folder], check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("a disk cannot be mounted here")
    name = sql.Identifier(f"small_{own_database.name[-8:]}")
    with psycopg.connect(own_database.url(), autocommit=True) as connection:
        location = sql.Literal(str(folder))
        connection.execute(sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(name, location))
        connection.execute(sql.SQL("GRANT CREATE ON TABLESPACE {} TO PUBLIC").format(name))
        database = sql.Identifier(own_database.name)
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_tablespace = {}").format(database, name))
        yield SmallDisk(folder)
        connection.execute(sql.SQL("ALTER DATABASE {} RESET default_tablespace").format(database))
        for (table,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'geo'").fetchall():
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("geo", table)))
        connection.execute(sql.SQL("DROP TABLESPACE {}").format(name))
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


@pytest.fixture
def crowded(own_database: TestDatabase, small_disk: SmallDisk, tmp_path: Path) -> Iterator[Ingestion]:
    made = Ingestion(own_database, tmp_path)
    yield made
    made.close()


def test_a_full_disk_fails_the_load_and_nothing_else(crowded: Ingestion, small_disk: SmallDisk) -> None:
    numbers = random.Random(8)
    texts = [base64.b64encode(numbers.randbytes(300_000)).decode() for _ in range(ROWS)]
    job = Job.begun(crowded, write_roads(crowded.new_file("gpkg"), texts=texts))
    job.load(0)
    before = noted(crowded.rows, job.job_id)
    with pytest.raises(Refused) as refused:
        job.load(1, 2, 3)
    assert "disk" in refused.value.message.lower() or "space" in refused.value.message.lower(), refused.value.message
    assert refused.value.retryable
    left = noted(crowded.rows, job.job_id)
    assert {chunk: left[chunk] for chunk in before} == before
    assert len(left) < CHUNKS
    assert LIVE not in crowded.rows.tables()
    crowded.rows.ask(
        "CREATE TABLE public.elsewhere TABLESPACE pg_default AS SELECT 1 AS one; DROP TABLE public.elsewhere"
    )

    small_disk.resize("64m")
    loaded = job.ended()
    assert_whole(loaded)
    assert loaded.values("text") == texts
    assert crowded.rows.tables() == [LIVE, overview_name(LIVE)]
