"""A chunk that a child process loads is there as a whole, with its place in the ledger, or not at all."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.conftest import TestDatabase
from tests.integration.worker.conftest import JOB, Board, StartWorker, text_of

from graticule.core.states import ResultStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.vectors import FeatureTable, VectorRepository
from graticule.worker import staging
from graticule.worker.executor import Executor

TABLE = FeatureTable({"n": "bigint"})


class Staged:
    """The staging table of the job, as another session sees it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def rows(self) -> list[int]:
        cursor = await self.connection.execute("SELECT n FROM geo.staging_job ORDER BY n LIMIT 100")
        return [row["n"] for row in await cursor.fetchall()]

    async def ledger(self) -> dict[int, tuple[int, object]]:
        cursor = await self.connection.execute("SELECT * FROM geo.staging_job_chunks")
        return {row["chunk"]: (row["row_count"], row["result"]) for row in await cursor.fetchall()}

    async def fails_at(self, value: int, code: str) -> None:
        """Let the database fail as it would in need."""
        await self.connection.execute(
            f"CREATE FUNCTION geo.fails_{value}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$".encode()
        )
        await self.connection.execute(
            f"CREATE TRIGGER fails_{value} BEFORE INSERT ON geo.staging_job FOR EACH ROW"
            f" WHEN (new.n = {value}) EXECUTE FUNCTION geo.fails_{value}()".encode()
        )


@pytest.fixture
async def staged(database: TestDatabase) -> AsyncIterator[Staged]:
    """Give a staging table; it is dropped after the test."""
    async with Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER) as worker:
        async with worker.connection() as connection, connection.transaction():
            await VectorRepository(connection, JOB).create_staging(TABLE, "a test")
            await connection.execute("ALTER TABLE geo.staging_job ALTER fid DROP NOT NULL")
        async with worker.connection() as connection:
            yield Staged(connection)
            await connection.execute("DROP TABLE IF EXISTS geo.staging_job, geo.staging_job_chunks")
            for value in (2, 3):
                await connection.execute(f"DROP FUNCTION IF EXISTS geo.fails_{value}".encode())


async def nothing_of(board: Board, staged: Staged) -> None:
    """Wait until nobody writes any more, and see that nothing is left."""
    held = "SELECT FROM pg_locks WHERE relation = 'geo.staging_job'::regclass AND mode = 'RowExclusiveLock'"

    async def is_free() -> bool:
        return not await (await staged.connection.execute(held)).fetchall()

    await board.until(is_free, "the end of the transaction")
    assert (await staged.rows(), await staged.ledger()) == ([], {})


@pytest.mark.usefixtures("worker")
async def test_rows_and_ledger_are_committed_as_one_and_once(board: Board, staged: Staged) -> None:
    first = await board.run("test.loads", chunk=0, values=[1, 2, 3])
    assert (first.status, first.output) == (ResultStatus.COMPLETED, {"rows": 3})
    again = await board.run("test.loads", chunk=0, values=[4])
    assert again.output == {"rows": 3, "again": True}
    assert await staged.rows() == [1, 2, 3]
    assert await staged.ledger() == {0: (3, {"rows": 3})}


ENDS = {
    "fail": "ValueError: in the middle",
    "another": "NotStaged: A chunk is being loaded already; a task loads one at a time.",
    "half a stream": "NotStaged: The rows of the chunk end in the middle.",
    "a huge piece": "NotStaged: A piece of rows has more than 4,194,304 bytes.",
    "a huge chunk": "NotStaged: A chunk has more than 1,000 bytes.",
    "a huge result": "NotStaged: The result of a chunk has more than 65,536 bytes.",
    "rubbish": "The handler's process sent something that is not a result; it was ended.",
    "a deep result": "The handler's process sent something that is not a result; it was ended.",
    "crash": "The handler's process crashed: it was ended by SIGKILL (out of memory?).",
}


@pytest.mark.usefixtures("worker")
async def test_what_does_not_end_well_leaves_nothing(
    board: Board, staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "MAX_CHUNK_BYTES", 1000)
    for then, message in ENDS.items():
        failed = await board.run("test.loads", chunk=0, values=[1, 2], then=then)
        assert (failed.status, failed.error_message) == (ResultStatus.FAILED, message)
        await nothing_of(board, staged)
    assert (await board.run("test.loads", chunk=0, values=[7])).output == {"rows": 1}
    assert await staged.rows() == [7]


@pytest.mark.usefixtures("worker")
async def test_a_child_that_is_killed_in_the_middle_leaves_nothing(
    board: Board, staged: Staged, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    task = await board.give("test.loads", chunk=0, values=[1, 2], then="wait", file=str(file))
    pid = await board.until(lambda: text_of(file), "rows on their way")
    os.kill(int(pid), signal.SIGKILL)
    assert (await board.ended(task)).status is ResultStatus.FAILED
    await nothing_of(board, staged)


@pytest.mark.usefixtures("worker")
async def test_a_chunk_of_a_task_that_nobody_wants_any_more_is_not_committed(
    board: Board, staged: Staged, tmp_path: Path
) -> None:
    file = tmp_path / "began"
    waits = {"then": "wait for the signal", "file": str(file), "go": str(tmp_path / "go")}
    task = await board.give("test.loads", chunk=0, values=[1], **waits)
    await board.until(lambda: text_of(file), "rows on their way")
    await board.withdraw(task)
    await nothing_of(board, staged)


async def test_a_chunk_of_a_worker_that_stops_is_not_committed(
    board: Board, staged: Staged, start_worker: StartWorker, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    async with start_worker(worker_grace_seconds=0.1):
        task = await board.give("test.loads", chunk=0, values=[1], then="wait", file=str(file))
        await board.until(lambda: text_of(file), "rows on their way")
    await nothing_of(board, staged)
    assert (await board.task(task)).status == "queued"


@pytest.mark.usefixtures("worker")
async def test_a_worker_that_lost_the_task_commits_nothing(board: Board, staged: Staged, tmp_path: Path) -> None:
    file, go = tmp_path / "began", tmp_path / "go"
    waits = {"then": "wait for the signal", "file": str(file), "go": str(go)}
    task = await board.give("test.loads", chunk=0, values=[1], **waits)
    await board.until(lambda: text_of(file), "rows on their way")
    await board.steal(task)
    go.touch()
    await nothing_of(board, staged)


NO_ROOM = (
    "Unavailable: Could not load the features: the database has no room left on its disk."
    " Make room there, or give the server a larger disk; then try again."
)
UNFIT = "Could not load the features: a value does not fit."


@pytest.mark.usefixtures("worker")
async def test_an_error_of_the_database_stops_the_child_with_its_reason(board: Board, staged: Staged) -> None:
    await staged.fails_at(2, "53100")
    await staged.fails_at(3, "22003")
    for value, told, retryable in ((2, NO_ROOM, True), (3, UNFIT, False)):
        failed = await board.run("test.loads", chunk=0, values=[1, value, 4], then="wait", file="/nowhere")
        assert (failed.error_message, failed.retryable) == (told, retryable)
        await nothing_of(board, staged)


@pytest.mark.usefixtures("worker")
async def test_a_lost_connection_leaves_nothing(board: Board, staged: Staged, tmp_path: Path) -> None:
    file, go = tmp_path / "began", tmp_path / "go"
    waits = {"then": "wait for the signal", "file": str(file), "go": str(go)}
    task = await board.give("test.loads", chunk=0, values=[1], **waits)
    await board.until(lambda: text_of(file), "rows on their way")
    await staged.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 'geo.staging_job'::regclass"
        " AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()"
    )
    go.touch()
    failed = await board.ended(task)
    assert (failed.status, failed.retryable) == (ResultStatus.FAILED, True)
    assert (failed.error_message or "").startswith("Unavailable: Could not ")
    await nothing_of(board, staged)


@pytest.mark.usefixtures("worker")
async def test_only_the_jobs_own_table_and_its_columns_are_reached(board: Board, staged: Staged) -> None:
    foreign = await board.run("test.loads", chunk=0, values=[1], columns=["n", 'n"; DROP TABLE x'])
    assert foreign.error_message == "NotStaged: The staging table has no column 'n\"; DROP TABLE x'."
    await staged.connection.execute("DROP TABLE geo.staging_job, geo.staging_job_chunks")
    gone = await board.run("test.loads", chunk=0, values=[1])
    assert (gone.error_message or "").startswith("NotStaged: The job has no staging table.")


@pytest.mark.usefixtures("worker")
async def test_a_stream_may_be_larger_than_a_frame(board: Board, staged: Staged) -> None:
    assert (await board.run("test.loads", chunk=0, values=[], then="much")).status is ResultStatus.COMPLETED
    assert (await staged.ledger())[0][0] == 400_000


async def test_a_worker_without_a_database_says_so(
    board: Board, staged: Staged, worker: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = Executor._attempt

    async def without(self: Executor, *given: object) -> object:
        self._staging._database = None
        return await attempt(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Executor, "_attempt", without)
    failed = await board.run("test.loads", chunk=0, values=[1])
    assert failed.error_message == "ConfigurationError: This worker has no database for handlers."
