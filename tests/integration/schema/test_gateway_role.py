"""The gateway cannot write: PostgreSQL itself refuses, whatever is tried on its connection."""

from collections.abc import AsyncIterator
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import AsyncConnection, sql
from psycopg import errors as pg
from tests.conftest import TestDatabase

from graticule.core.errors import PermissionDenied
from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.platforms import PlatformRepository
from graticule.schema.deploy import database_schema

# The last: a function tried to open the transaction that it runs in for writing.
REFUSED = (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction, pg.ActiveSqlTransaction)
LARGE_OBJECT = 424242
PREPARATION: tuple[LiteralString, ...] = (
    "CREATE TABLE dagapp.of_a_test (id INT GENERATED ALWAYS AS IDENTITY, name TEXT)",
    "GRANT SELECT ON dagapp.of_a_test TO graticule_gateway",
    (
        "CREATE FUNCTION dagapp.writes() RETURNS void LANGUAGE sql SECURITY INVOKER"
        " AS $$ INSERT INTO dagapp.of_a_test (name) VALUES ('x') $$"
    ),
    (
        "CREATE FUNCTION dagapp.writes_later() RETURNS void LANGUAGE plpgsql SECURITY INVOKER"
        " AS $$ BEGIN SET LOCAL transaction_read_only = off; INSERT INTO dagapp.of_a_test (name) VALUES ('x'); END $$"
    ),
    f"SELECT lo_create({LARGE_OBJECT})",
)
# Everything but the statements on tables, which are made for each of them.
WRITES: tuple[LiteralString, ...] = (
    "CREATE TABLE dagapp.mine (id INT)",
    "CREATE TABLE public.mine (id INT)",
    "CREATE TABLE mine (id INT)",
    "CREATE TEMP TABLE mine (id INT)",
    "CREATE TEMP SEQUENCE mine",
    "SELECT 1 INTO TEMP mine",
    "CREATE SCHEMA mine",
    "CREATE VIEW dagapp.mine AS SELECT 1",
    "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION hstore",
    "CREATE ROLE mine",
    "CREATE DATABASE mine",
    "DROP TABLE dagapp.dag_nodes",
    "ALTER TABLE dagapp.dag_jobs ADD COLUMN mine INT",
    "ALTER TABLE dagapp.dag_jobs OWNER TO graticule_gateway",
    "GRANT graticule_owner TO graticule_gateway",
    "ALTER ROLE graticule_owner SUPERUSER",
    "ALTER ROLE graticule_gateway SUPERUSER",
    "COMMENT ON TABLE dagapp.dag_jobs IS 'mine'",
    "CREATE INDEX mine ON dagapp.dag_jobs (status)",
    "SELECT dagapp.writes()",
    "SELECT dagapp.writes_later()",
    "DO $$ BEGIN INSERT INTO dagapp.of_a_test (name) VALUES ('x'); END $$",
    "WITH added AS (INSERT INTO dagapp.of_a_test (name) VALUES ('x') RETURNING 1) SELECT * FROM added",
    "EXPLAIN ANALYZE INSERT INTO dagapp.of_a_test (name) VALUES ('x')",
    "SELECT * FROM dagapp.of_a_test FOR UPDATE",
    "SELECT * FROM dagapp.dag_jobs FOR KEY SHARE",
    "DO $$ BEGIN LOCK TABLE dagapp.dag_jobs IN SHARE MODE; END $$",
    "SELECT nextval('dagapp.of_a_test_id_seq')",
    "SELECT setval('dagapp.of_a_test_id_seq', 100)",
    "SELECT nextval('dagapp.dag_job_events_event_id_seq')",
    "SELECT setval('dagapp.dag_task_results_result_id_seq', 100)",
    "SELECT lo_creat(-1)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    f"SELECT lo_put({LARGE_OBJECT}, 0, 'x')",
    f"SELECT lo_unlink({LARGE_OBJECT})",
    f"SELECT lo_open({LARGE_OBJECT}, 131072)",
    "SELECT lo_import('/etc/hostname')",
    "COPY dagapp.of_a_test (name) FROM PROGRAM 'echo x'",
    "COPY dagapp.of_a_test (name) FROM '/etc/hostname'",
    "COPY dagapp.of_a_test TO '/tmp/of_a_test'",
    'SELECT pgstac.create_collection(\'{"id": "mine"}\')',
    'SELECT pgstac.upsert_collection(\'{"id": "mine"}\')',
    "SELECT pgstac.delete_collection('mine')",
    'SELECT pgstac.create_item(\'{"id": "mine", "collection": "mine"}\')',
    "SELECT pgstac.search('{}')",
    'INSERT INTO pgstac.collections (content) VALUES (\'{"id": "mine"}\')',
    "INSERT INTO public.spatial_ref_sys (srid) VALUES (999999)",
    "SELECT pg_read_file('/etc/hostname')",
    "SET ROLE graticule_owner",
    "SET ROLE graticule_orchestrator",
    "SET ROLE graticule_worker",
    "SET ROLE pgstac_admin",
    "SET SESSION AUTHORIZATION graticule_owner",
    "SET session_replication_role = replica",
)
OPENED: LiteralString = "SET default_transaction_read_only = off"


def _table_writes() -> list[sql.Composed]:
    made = []
    for model in TABLES:
        table, column = sql.Identifier("dagapp", model.table.name), sql.Identifier(list(model.model_fields)[-1])
        made += [
            sql.SQL("INSERT INTO {} DEFAULT VALUES").format(table),
            sql.SQL("UPDATE {} SET {} = {}").format(table, column, column),
            sql.SQL("DELETE FROM {}").format(table),
            sql.SQL("TRUNCATE {} CASCADE").format(table),
            sql.SQL("COPY {} FROM STDIN").format(table),
        ]
    return made


EVERY_WRITE: list[Any] = [*_table_writes(), *WRITES]


@pytest.fixture
async def target(shared_database: TestDatabase) -> AsyncIterator[TestDatabase]:
    """Give a database that was deployed in place, with something to write to; see that nothing was written."""
    async with database_schema(shared_database.url()) as schema:
        await schema.deploy()
    async with await AsyncConnection.connect(shared_database.url(), autocommit=True) as admin:
        for statement in PREPARATION:
            await admin.execute(statement)
        before = await _state(admin)
        yield shared_database
        after = await _state(admin)
        await admin.execute("DROP TABLE dagapp.of_a_test CASCADE")
        await admin.execute("DROP FUNCTION dagapp.writes, dagapp.writes_later")
        await admin.execute("SELECT lo_unlink(%s)", [LARGE_OBJECT])
        assert after == before


async def _state(admin: AsyncConnection[Any]) -> list[Any]:
    """Give what a write would have left behind."""
    queries: tuple[LiteralString, ...] = (
        "SELECT count(*) FROM dagapp.of_a_test",
        "SELECT count(*) FROM dagapp.platforms",
        "SELECT last_value, is_called FROM dagapp.of_a_test_id_seq",
        "SELECT last_value, is_called FROM dagapp.dag_task_results_result_id_seq",
        "SELECT count(*) FROM pg_largeobject_metadata",
        "SELECT count(*) FROM pg_largeobject",
        "SELECT count(*) FROM pg_class WHERE relname = 'mine'",
        "SELECT count(*) FROM pgstac.collections",
        "SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'",
    )
    return [await (await admin.execute(query)).fetchall() for query in queries]


async def _attempt(connection: AsyncConnection[Any], statement: Any) -> str:
    """Try a statement and tell how it was refused, or that it was not."""
    try:
        if isinstance(statement, sql.Composed) and statement.as_string().startswith("COPY"):
            async with connection.cursor() as cursor, cursor.copy(statement):
                pass
        else:
            await connection.execute(statement)
    except REFUSED:
        return "refused"
    except psycopg.Error as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def _text(statement: Any) -> str:
    return statement.as_string() if isinstance(statement, sql.Composed) else statement


async def _not_refused(connection: AsyncConnection[Any]) -> dict[str, str]:
    outcomes = {_text(statement): await _attempt(connection, statement) for statement in EVERY_WRITE}
    return {statement: outcome for statement, outcome in outcomes.items() if outcome != "refused"}


async def test_every_write_of_the_login_is_refused_also_outside_read_only_transactions(target: TestDatabase) -> None:
    url = target.url(DatabaseRole.GATEWAY)
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        assert await _not_refused(connection) == {}
        await connection.execute(OPENED)
        assert await _not_refused(connection) == {}


async def test_every_write_through_the_pool_is_refused_even_when_the_session_is_opened_for_writing(
    target: TestDatabase,
) -> None:
    async with (
        Database(target.url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY) as pool,
        pool.connection() as connection,
    ):
        assert await _not_refused(connection) == {}
        for opening in (OPENED, "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "RESET ALL", "RESET ROLE"):
            await connection.execute(opening.encode())
        assert await _not_refused(connection) == {}
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET TRANSACTION READ WRITE")
            assert await _attempt(connection, "UPDATE dagapp.platforms SET is_active = false") == "refused"


async def test_a_pool_of_the_gateway_acts_as_the_gateway_whoever_logs_in(target: TestDatabase) -> None:
    async with (
        Database(target.url(), DatabaseRole.GATEWAY) as pool,
        pool.connection() as connection,
    ):
        assert await _attempt(connection, "UPDATE dagapp.platforms SET is_active = false") == "refused"
        await connection.execute(OPENED)
        await connection.execute("RESET ROLE")
        assert await _attempt(connection, "UPDATE dagapp.platforms SET is_active = false") == "refused"


async def test_a_refused_write_is_a_permission_denied_of_the_domain(target: TestDatabase) -> None:
    async with Database(target.url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY) as pool:
        async with pool.connection() as connection:
            repository = PlatformRepository(connection)
            row = await repository.get(platform_id="ddh")
            for write in (repository.insert(row), repository.insert_many([row])):
                with pytest.raises(PermissionDenied, match="the database role may not do that"):
                    await write
        with pytest.raises(PermissionDenied):
            async with pool.connection() as connection, connection.transaction():
                await connection.execute("CREATE SCHEMA mine")


async def test_the_gateway_reads_every_table(target: TestDatabase) -> None:
    async def count(connection: Connection, table: str) -> int:
        query = sql.SQL("SELECT count(*) AS rows FROM {}").format(sql.Identifier("dagapp", table))
        row = await (await connection.execute(query)).fetchone()
        return int(row["rows"]) if row else -1

    async with (
        Database(target.url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY) as pool,
        pool.connection() as connection,
    ):
        counts = {model.table.name: await count(connection, model.table.name) for model in TABLES}
    assert counts["platforms"] == 3
    assert min(counts.values()) >= 0


@pytest.mark.parametrize("role", list(DatabaseRole))
async def test_a_pool_acts_as_its_role_in_utc_and_those_that_only_read_are_read_only(
    shared_database: TestDatabase, role: DatabaseRole
) -> None:
    async with Database(shared_database.url(role), role, name="a test") as pool, pool.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT current_user::text AS role, current_setting('timezone') AS timezone,"
                " current_setting('default_transaction_read_only') AS read_only,"
                " current_setting('application_name') AS name, current_setting('statement_timeout') AS timeout"
            )
        ).fetchone()
    reading = {DatabaseRole.GATEWAY, DatabaseRole.SERVE_INTERNAL, DatabaseRole.SERVE_EXTERNAL}
    bounds = {"read_only": "on", "timeout": "10s"} if role in reading else {"read_only": "off", "timeout": "0"}
    assert row == {"role": role.value, "timezone": "UTC", "name": "a test", **bounds}
