"""Each way in which PostgreSQL refuses or fails, made to happen: the right error of the domain, and no secret told."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.conftest import TestDatabase
from tests.integration.repositories import rows

from graticule.core.errors import (
    AlreadyExists,
    ConfigurationError,
    Conflict,
    GraticuleError,
    InvalidInput,
    PermissionDenied,
    SchemaOutdated,
    TransactionAborted,
    Unavailable,
)
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.job_views import JobFilter, JobViews
from graticule.repositories.jobs import JobRepository
from graticule.repositories.messages import MessageRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.schema.deploy import database_schema

SECRET = "S3CRET"


def _tells_nothing(error: GraticuleError, *more: str) -> bool:
    told = f"{error} {error.message} {error.hint} {error!r}"
    hidden = (SECRET, "INSERT", "SELECT", "UPDATE", "COPY", "dagapp", "password", "postgresql://", *more)
    assert [word for word in hidden if word in told] == []
    return True


@pytest.fixture
async def with_secret(with_job: Connection) -> Connection:
    """Give a connection to a database whose workflow is named by a secret."""
    await WorkflowRepository(with_job).insert(rows.workflow(workflow_hash="5" * 64, name=SECRET))
    return with_job


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rows.workflow(workflow_hash="5" * 64, name=SECRET), AlreadyExists),
        (rows.job("j", workflow_hash="7" * 64, submitted_by=SECRET), Conflict),
        (rows.job("j", submitted_by=SECRET).model_copy(update={"priority": 99}), Conflict),
        (rows.job("j", submitted_by=SECRET).model_copy(update={"created_at": None}), Conflict),
        (rows.job("j", submitted_by=SECRET).model_copy(update={"correlation_id": SECRET * 64}), InvalidInput),
        (rows.job("j", submitted_by=SECRET).model_copy(update={"version_ordinal": 2**40}), InvalidInput),
        (rows.job("j", submitted_by=SECRET).model_copy(update={"status": SECRET}), InvalidInput),
    ],
    ids=["unique", "foreign key", "check", "not null", "too long", "out of range", "no such enum value"],
)
async def test_a_row_that_the_database_refuses(with_secret: Connection, row: Any, expected: type[Exception]) -> None:
    repository = WorkflowRepository(with_secret) if hasattr(row, "definition") else JobRepository(with_secret)
    for write in (repository.insert(row), repository.insert_many([row])):
        with pytest.raises(expected) as refused:
            await write
        assert type(refused.value) is expected
        assert isinstance(refused.value, GraticuleError)
        assert _tells_nothing(refused.value)


async def test_a_role_that_may_not(database: TestDatabase) -> None:
    for role in (DatabaseRole.WORKER, DatabaseRole.GATEWAY):
        async with Database(database.url(role), role) as pool, pool.connection() as connection:
            with pytest.raises(PermissionDenied) as refused:
                await WorkflowRepository(connection).insert(rows.workflow(name=SECRET))
            assert _tells_nothing(refused.value, str(role))


async def test_a_read_only_transaction(with_job: Connection) -> None:
    async with with_job.transaction(force_rollback=True):
        await with_job.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(PermissionDenied) as refused:
            await WorkflowRepository(with_job).insert(rows.workflow(workflow_hash="5" * 64, name=SECRET))
        assert _tells_nothing(refused.value)


async def test_a_table_a_column_or_a_type_that_is_missing(owner: Connection) -> None:
    for missing in (
        "DROP TABLE dagapp.dag_job_messages",
        "ALTER TABLE dagapp.dag_workflows RENAME COLUMN name TO title",
        "ALTER TYPE dagapp.job_status RENAME TO other",
    ):
        async with owner.transaction(force_rollback=True):
            await owner.execute(missing.encode())
            with pytest.raises(SchemaOutdated, match="graticule schema migrate") as refused:
                await _use_all_of_them(owner)
            assert _tells_nothing(refused.value)


async def _use_all_of_them(connection: Connection) -> None:
    await MessageRepository(connection).dead()
    await WorkflowRepository(connection).insert(rows.workflow(name=SECRET))
    await JobViews(connection).jobs(JobFilter())


async def test_a_database_without_the_schema(database: TestDatabase) -> None:
    elsewhere = make_conninfo(database.url(), dbname="postgres")
    async with Database(elsewhere, DatabaseRole.OWNER) as pool, pool.connection() as connection:
        jobs, nodes, platforms = JobRepository(connection), NodeRepository(connection), PlatformRepository(connection)
        questions: list[Callable[[], Awaitable[Any]]] = [
            platforms.all,
            lambda: jobs.by_ids([]),
            lambda: nodes.of_job(JobId("job")),
            lambda: jobs.insert(rows.job()),
            lambda: jobs.insert_many([rows.job()]),
        ]
        for ask in questions:
            with pytest.raises(SchemaOutdated) as refused:
                await ask()
            assert _tells_nothing(refused.value)


async def test_a_deadlock_of_two_sessions(pool: Database, with_job: Connection) -> None:
    await JobRepository(with_job).insert(rows.job("other"))
    both_hold_one = asyncio.Barrier(2)

    async def touch(connection: Connection, job_id: str) -> None:
        with domain_errors("touch a job"):
            await connection.execute("UPDATE dagapp.dag_jobs SET priority = 1 WHERE job_id = %s", [job_id])

    async def cross(first: str, second: str) -> None:
        async with pool.connection() as connection, connection.transaction():
            await touch(connection, first)
            await both_hold_one.wait()
            await touch(connection, second)

    outcomes = await asyncio.gather(cross("job", "other"), cross("other", "job"), return_exceptions=True)
    (aborted,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(aborted, TransactionAborted)
    assert _tells_nothing(aborted)


async def test_a_serialization_failure(pool: Database, with_job: Connection) -> None:
    async with pool.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await JobRepository(connection).get(job_id="job")
        await with_job.execute("UPDATE dagapp.dag_jobs SET priority = 1")
        with pytest.raises(TransactionAborted) as refused, domain_errors("touch a job"):
            await connection.execute("UPDATE dagapp.dag_jobs SET priority = 2")
        assert _tells_nothing(refused.value)


async def test_a_statement_that_takes_too_long(with_job: Connection) -> None:
    async with with_job.transaction(force_rollback=True):
        await with_job.execute("SET LOCAL statement_timeout = '20ms'")
        with pytest.raises(Unavailable, match="it took too long") as refused, domain_errors("wait"):
            await with_job.execute("SELECT pg_sleep(30)")
        assert _tells_nothing(refused.value)


async def test_a_lock_that_takes_too_long(pool: Database, with_job: Connection) -> None:
    async with pool.connection() as holder, holder.transaction(), with_job.transaction(force_rollback=True):
        await holder.execute("SELECT FROM dagapp.dag_jobs FOR UPDATE")
        await with_job.execute("SET LOCAL lock_timeout = '20ms'")
        with pytest.raises(Unavailable, match="it took too long") as refused, domain_errors("wait"):
            await with_job.execute("UPDATE dagapp.dag_jobs SET priority = 1")
        assert _tells_nothing(refused.value)


async def test_a_connection_that_was_killed(database: TestDatabase, admin: psycopg.AsyncConnection[Any]) -> None:
    async with Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=1) as pool:
        async with pool.connection() as connection:
            await admin.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
            for question in (PlatformRepository(connection).all(), PlatformRepository(connection).all()):
                with pytest.raises(Unavailable) as refused:
                    await question
                assert _tells_nothing(refused.value)
        async with pool.connection() as connection:
            assert await PlatformRepository(connection).all()


async def test_a_connection_that_is_killed_while_it_copies(
    database: TestDatabase, admin: psycopg.AsyncConnection[Any]
) -> None:
    async with (
        Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=1) as pool,
        pool.connection() as connection,
    ):
        await admin.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        with pytest.raises(Unavailable):
            await WorkflowRepository(connection).insert_many([rows.workflow()])


@pytest.fixture
async def free_port() -> AsyncIterator[int]:
    """Give a port on which nobody listens: it is bound, and never listened on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def _broken(database: TestDatabase, free_port: int) -> dict[str, tuple[str, type[GraticuleError]]]:
    url = database.url(DatabaseRole.OWNER)
    return {
        "a wrong password": (make_conninfo(url, password=SECRET), ConfigurationError),
        "an unknown login": (make_conninfo(url, user="nobody_here", password=SECRET), ConfigurationError),
        "no such database": (make_conninfo(url, dbname="no_such_database"), ConfigurationError),
        "no server": (make_conninfo(url, host="127.0.0.1", port=free_port, password=SECRET), Unavailable),
        "no such host": (make_conninfo(url, host="no-such-host.invalid", password=SECRET), Unavailable),
    }


@pytest.mark.parametrize("kind", ["a wrong password", "an unknown login", "no such database", "no server"])
async def test_a_server_that_does_not_let_us_in(database: TestDatabase, free_port: int, kind: str) -> None:
    url, expected = _broken(database, free_port)[kind]
    with pytest.raises(GraticuleError) as refused:
        async with database_schema(url):
            pass
    assert _tells_nothing(refused.value, "nobody_here")
    assert type(refused.value) is expected


@pytest.mark.parametrize("kind", ["a wrong password", "no server"])
async def test_a_pool_that_is_not_let_in_is_unavailable_in_time(
    database: TestDatabase, free_port: int, kind: str
) -> None:
    url, _ = _broken(database, free_port)[kind]
    async with Database(url, DatabaseRole.OWNER, timeout_seconds=0.3) as pool:
        with pytest.raises(GraticuleError) as refused:
            await pool.ping()
        assert _tells_nothing(refused.value)
        assert isinstance(refused.value, Unavailable | ConfigurationError)


async def test_a_pool_that_is_exhausted_or_closed(database: TestDatabase) -> None:
    url, role = database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR
    async with Database(url, role, pool_size=1, timeout_seconds=0.2) as pool, pool.connection():
        with pytest.raises(Unavailable, match="no connection was free in time"):
            await pool.ping()
    with pytest.raises(Unavailable):
        await pool.ping()


async def test_a_transaction_is_all_or_nothing(pool: Database, with_job: Connection) -> None:
    async def add_two() -> None:
        async with pool.connection() as connection, connection.transaction():
            await WorkflowRepository(connection).insert(rows.workflow(workflow_hash="5" * 64))
            await WorkflowRepository(connection).insert(rows.workflow())

    with pytest.raises(AlreadyExists):
        await add_two()
    assert await WorkflowRepository(with_job).find(workflow_hash="5" * 64) is None
