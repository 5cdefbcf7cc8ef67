"""Deploying the whole schema: by script or by command the same, once or twice, alone or at once; and rebuilding it."""

import asyncio
import os
import subprocess
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from tests.conftest import TestDatabase

from graticule.core.errors import Conflict, GraticuleError, PermissionDenied, SchemaOutdated, Unavailable
from graticule.core.models import TABLES, Platform
from graticule.core.table import DatabaseRole
from graticule.embedded.binaries import find_binaries
from graticule.repositories.database import Database
from graticule.schema import deploy
from graticule.schema.ddl import fingerprint
from graticule.schema.deploy import database_schema, ddl_script
from graticule.schema.report import SchemaReport
from graticule.services.readiness import ReadinessService


def _run(program: str, database: TestDatabase, *arguments: str, script: str | None = None) -> str:
    """Run a program of PostgreSQL on a database, with the clock of another time zone."""
    done = subprocess.run(
        [find_binaries(None).program(program), database.url(), *arguments],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PGTZ": "America/New_York"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _dump(database: TestDatabase) -> list[str]:
    lines = _run("pg_dump", database, "--schema-only").splitlines()
    return [line for line in lines if not line.startswith(("\\restrict", "\\unrestrict"))]


def _privileges(database: TestDatabase) -> Any:
    """Give who may do what with the database itself and with large objects, which the dump leaves out."""
    with psycopg.connect(database.url()) as connection:
        acl = "SELECT array_agg(acl::text ORDER BY acl::text) FROM pg_database, unnest(datacl) acl WHERE datname = %s"
        functions = (
            "SELECT oid::regprocedure::text, proacl::text FROM pg_proc WHERE proname ~ '^lo_|^lowrite' ORDER BY 1"
        )
        return connection.execute(acl, [database.name]).fetchall(), connection.execute(functions).fetchall()


def _seeds(database: TestDatabase) -> list[Any]:
    with psycopg.connect(database.url()) as connection:
        seeds = connection.execute(
            "SELECT platform_id, display_name, required_refs, optional_refs, version_ref, is_active"
            " FROM dagapp.platforms ORDER BY platform_id"
        ).fetchall()
        deployments = "SELECT fingerprint, program_version, deployed_by FROM dagapp.schema_deployments"
        return [*seeds, *connection.execute(deployments).fetchall()]


async def _deploy(database: TestDatabase) -> SchemaReport:
    async with database_schema(database.url()) as schema:
        return await schema.deploy()


@pytest.mark.usefixtures("quiet_server")
async def test_the_script_by_psql_and_the_command_make_the_same_database(empty_databases: list[TestDatabase]) -> None:
    by_script, by_command = empty_databases
    _run("psql", by_script, "-v", "ON_ERROR_STOP=1", "-q", "-f", "-", script=ddl_script())
    report = await _deploy(by_command)
    assert (report.current, report.pending, report.differences) == (True, [], [])
    assert _dump(by_script) == _dump(by_command)
    assert _privileges(by_script) == _privileges(by_command)
    assert _seeds(by_script) == _seeds(by_command)
    assert len(_seeds(by_command)) == len(Platform.table.seeds) + 1
    async with database_schema(by_script.url()) as schema:
        status = await schema.status()
        assert (status.current, status.pending, status.differences) == (True, [], [])
        assert status.deployed_fingerprint == status.fingerprint == fingerprint(TABLES)
        assert (await schema.deploy()).applied == []


@pytest.mark.usefixtures("quiet_server")
async def test_two_deployments_at_once_make_one_schema(empty_databases: list[TestDatabase]) -> None:
    database = empty_databases[0]
    reports = await asyncio.gather(_deploy(database), _deploy(database), _deploy(database))
    assert [report.current for report in reports] == [True, True, True]
    assert sorted(bool(report.applied) for report in reports) == [False, False, True]
    async with database_schema(database.url()) as schema:
        assert (await schema.status()).current
    assert len(_seeds(database)) == len(Platform.table.seeds) + 1


@pytest.mark.usefixtures("quiet_server")
async def test_databases_of_one_server_can_be_deployed_at_once(empty_databases: list[TestDatabase]) -> None:
    """pgstac alters roles, which the whole server shares: whoever comes second waits for it or tries again."""
    database, other = empty_databases
    async with await AsyncConnection.connect(other.url()) as elsewhere:
        await elsewhere.execute("ALTER ROLE pgstac_admin SET search_path TO pgstac, public")
        deployment = asyncio.create_task(_deploy(database))
        await _until_it_waits(other, database)
        await elsewhere.commit()
        assert (await deployment).current


async def _until_it_waits(other: TestDatabase, database: TestDatabase) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock' AND query ~ 'pgstac'"
    )
    async with await AsyncConnection.connect(other.url(), autocommit=True) as connection:
        for _ in range(2000):
            row = await (await connection.execute(waiting, [database.name])).fetchone()
            if row and row[0]:
                return
            await asyncio.sleep(0.005)
    pytest.fail("pgstac's script never came to the role that another transaction holds.")


async def test_a_second_deployment_applies_nothing_and_records_nothing(shared_database: TestDatabase) -> None:
    await _deploy(shared_database)
    before = _privileges(shared_database), _seeds(shared_database)
    report = await _deploy(shared_database)
    assert (report.applied, report.pending, report.differences, report.notices) == ([], [], [], [])
    assert report.current
    assert (_privileges(shared_database), _seeds(shared_database)) == before


def _guards(connection: psycopg.Connection[TupleRow]) -> list[TupleRow]:
    """List our functions with their privileges, and the triggers that call them."""
    return connection.execute(
        "SELECT oid::regprocedure::text, coalesce(proacl::text, '') FROM pg_proc"
        " WHERE pronamespace = 'dagapp'::regnamespace"
        " UNION ALL SELECT tgrelid::regclass::text, tgname::text FROM pg_trigger"
        " JOIN pg_proc ON pg_proc.oid = tgfoid WHERE pronamespace = 'dagapp'::regnamespace ORDER BY 1, 2"
    ).fetchall()


async def test_a_rebuild_is_refused_without_development_mode_and_without_the_right_name_and_else_begins_anew(
    database: TestDatabase,
) -> None:
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("UPDATE dagapp.platforms SET display_name = 'mine'")
        connection.execute("INSERT INTO dagapp.dag_job_messages (message_id, queue, body) VALUES ('m', 'q', '{}')")
        count = (
            "SELECT (SELECT count(*) FROM dagapp.dag_job_messages), (SELECT min(display_name) FROM dagapp.platforms)"
        )
        async with database_schema(database.url()) as schema:
            with pytest.raises(PermissionDenied, match="does not run in development mode"):
                await schema.rebuild(confirm=database.name, development=False)
            for wrong in ("", "yes", database.name.upper(), "graticule", database.name + " "):
                with pytest.raises(Conflict, match="was not confirmed"):
                    await schema.rebuild(confirm=wrong, development=True)
            assert connection.execute(count).fetchone() == (1, "mine")
            before = _guards(connection)
            report = await schema.rebuild(confirm=database.name, development=True)
            assert report.current
            assert connection.execute(count).fetchone() == (0, "ArcGIS")
            assert (await schema.status()).current
            views = "SELECT to_regclass('serving.states'), to_regclass('dagapp_compat.dag_node_states')"
            assert None not in (connection.execute(views).fetchone() or (None,))
            assert ("pgstac.items", "graticule_insert") in before
            assert _guards(connection) == before, "functions and triggers that check outputs, and who may call them"


@pytest.mark.parametrize(
    ("outdated", "missing"),
    [
        ("COMMENT ON SCHEMA serving IS 'of another release'", "schema serving"),
        ("COMMENT ON FUNCTION dagapp.keep_first_times() IS 'of another release'", "triggers"),
    ],
)
async def test_a_migration_keeps_others_waiting_only_briefly(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch, outdated: LiteralString, missing: str
) -> None:
    """Whoever comes after one that waits for a table waits, too: the versions of assets are such a table."""
    monkeypatch.setattr(deploy, "WAIT_BRIEFLY", "SET LOCAL lock_timeout = '100ms'")
    with psycopg.connect(database.url(), autocommit=True) as other:
        other.execute(outdated)
        async with database_schema(database.url()) as schema, asyncio.timeout(60):
            with other.transaction():
                other.execute("LOCK TABLE dagapp.asset_versions IN ROW EXCLUSIVE MODE")
                with pytest.raises(Unavailable, match=f"holds a lock that `{missing}` needs"):
                    await schema.migrate()
            assert (await schema.migrate()).current


async def test_live_tables_of_workers_are_taken_over_one_by_one(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server has room for the locks of some hundred tables, and nobody must wait for the last of them."""
    monkeypatch.setattr(deploy, "WAIT_A_MOMENT", "SET LOCAL lock_timeout = '30s'")
    waiting = "SELECT FROM pg_locks WHERE relation = 'geo.b'::regclass AND NOT granted"
    with psycopg.connect(database.url(), autocommit=True) as other:
        _make_live_tables(other, "a", "b")
        async with database_schema(database.url()) as schema, asyncio.timeout(60):
            with other.transaction():
                other.execute("LOCK TABLE geo.b IN ACCESS SHARE MODE")
                migration = asyncio.create_task(schema.migrate())
                while not other.execute(waiting).fetchall():
                    assert not migration.done(), migration.result()
                    await asyncio.sleep(0.01)
                assert _owners(other) == {"a": "graticule_owner", "b": "graticule_worker"}
            assert not (await migration).notices
        assert _owners(other) == {"a": "graticule_owner", "b": "graticule_owner"}


async def test_live_tables_that_are_in_use_are_taken_over_by_the_next_migration(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "WAIT_A_MOMENT", "SET LOCAL lock_timeout = '100ms'")
    monkeypatch.setattr(deploy, "MAX_TRIES", 1)
    with psycopg.connect(database.url(), autocommit=True) as other:
        _make_live_tables(other, "a", "b", "c")
        async with database_schema(database.url()) as schema, asyncio.timeout(60):
            with other.transaction():
                other.execute("LOCK TABLE geo.a, geo.c IN ACCESS SHARE MODE")
                report = await schema.migrate()
            assert report.current
            assert [notice for notice in report.notices if "still belong to the workers: 2, such as geo.a" in notice]
            assert _owners(other) == {"a": "graticule_worker", "b": "graticule_owner", "c": "graticule_worker"}
            assert not (await schema.migrate()).notices
        assert set(_owners(other).values()) == {"graticule_owner"}


async def test_live_tables_that_are_more_than_rows_are_named_with_what_is_on_them(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "MAX_NAMED", 1)
    with psycopg.connect(database.url(), autocommit=True) as other:
        _make_live_tables(other, "a", "b", "c")
        other.execute("CREATE INDEX by_size ON geo.a (abs(fid))")
        other.execute("ALTER TABLE geo.b ALTER fid SET DEFAULT 1")
        async with database_schema(database.url()) as schema:
            report = await schema.migrate()
            assert report.current
            named, rest = report.notices
            assert named == (
                "A table still belongs to the workers: geo.a: the index geo.by_size computes an expression or has a"
                " condition (remove it: DROP INDEX geo.by_size). Then migrate again: graticule schema migrate"
            )
            assert rest == "Tables that still belong to the workers and are not named here: 1."
            other.execute("DROP INDEX geo.by_size")
            other.execute("ALTER TABLE geo.b ALTER fid DROP DEFAULT")
            assert (await schema.migrate()).notices == []
        assert set(_owners(other).values()) == {"graticule_owner"}


def _make_live_tables(connection: psycopg.Connection[TupleRow], *names: LiteralString) -> None:
    """Make tables as releases did in which workers owned what is live."""
    for name in names:
        connection.execute(f"CREATE TABLE geo.{name} (fid int PRIMARY KEY)".encode())
        connection.execute(f"COMMENT ON TABLE geo.{name} IS 'Made by job job-1: roads.'".encode())
        connection.execute(f"ALTER TABLE geo.{name} OWNER TO graticule_worker".encode())
    connection.execute("COMMENT ON SCHEMA serving IS 'of another release'")


def _owners(connection: psycopg.Connection[TupleRow]) -> dict[str, str]:
    owners = (
        "SELECT relname::text, pg_get_userbyid(relowner)::text FROM pg_class"
        " WHERE relnamespace = 'geo'::regnamespace AND relkind = 'r'"
    )
    return dict(connection.execute(owners).fetchall())


async def test_status_tells_an_empty_database_from_a_deployed_one(empty_databases: list[TestDatabase]) -> None:
    async with database_schema(empty_databases[0].url()) as schema:
        status = await schema.status()
        assert (status.deployed, status.current, status.deployed_fingerprint) == (False, False, None)
        assert status.postgis_version is None
        assert status.pgstac_version is None


async def test_a_process_is_ready_only_when_its_schema_was_deployed(
    shared_database: TestDatabase, empty_databases: list[TestDatabase]
) -> None:
    url, role = shared_database.url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY
    async with Database(url, role) as pool:
        assert await ReadinessService(pool).schema() == {"fingerprint": fingerprint(TABLES)}
    async with Database(empty_databases[0].url(), DatabaseRole.GATEWAY) as pool:
        with pytest.raises(SchemaOutdated, match="graticule schema migrate"):
            await ReadinessService(pool).schema()


@pytest.mark.parametrize("command", ["status", "deploy", "migrate"])
async def test_a_login_that_may_not_change_the_schema_gets_a_domain_error(
    shared_database: TestDatabase, command: str
) -> None:
    async with database_schema(shared_database.url(DatabaseRole.GATEWAY)) as schema:
        with pytest.raises(GraticuleError) as refused:
            await getattr(schema, command)()
    assert isinstance(refused.value, PermissionDenied)


@pytest.mark.parametrize("command", ["status", "deploy", "migrate"])
async def test_the_owners_login_needs_no_more_once_the_database_is_prepared(
    shared_database: TestDatabase, command: str
) -> None:
    """Repeated steps ask for no privilege when nothing is left to do: an administrator is needed once."""
    await _deploy(shared_database)
    async with database_schema(shared_database.url(DatabaseRole.OWNER)) as schema:
        assert (await getattr(schema, command)()).current


async def test_many_status_questions_at_once_do_not_disturb_each_other(shared_database: TestDatabase) -> None:
    await _deploy(shared_database)

    async def ask() -> bool:
        async with database_schema(shared_database.url()) as schema:
            return (await schema.status()).current

    assert all(await asyncio.gather(ask(), ask(), ask()))
