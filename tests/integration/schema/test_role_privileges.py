"""Who may do what: every role, table and privilege, as PostgreSQL itself answers."""

from collections.abc import Iterator
from importlib.resources import files
from itertools import product

import psycopg
import pytest
import pytest_asyncio
from psycopg.rows import TupleRow
from tests.conftest import TestDatabase

from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.schema.deploy import database_schema

PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
# Workers write the catalogue, and orchestrators for those that do not reach the database.
WRITERS = [DatabaseRole.WORKER, DatabaseRole.ORCHESTRATOR]
# What they may do with the tables of pgstac, and with no other of them.
CATALOGUE = {
    "collections": "SIU",
    "items": "SID",
    "base_items": "S",
    "partition_stats": "SIU",
    "pgstac_settings": "S",
    "format_item_cache": "SD",
}
OTHERS = [role for role in DatabaseRole if role is not DatabaseRole.OWNER]
SERVING = [DatabaseRole.SERVE_INTERNAL, DatabaseRole.SERVE_EXTERNAL]
READERS = [DatabaseRole.GATEWAY, *SERVING]
# orchestrator, worker; the gateway reads everything. Written down apart from the models.
EXPECTED = {
    "schema_deployments": ("S", "S"),
    "dag_workflows": ("SID", ""),
    "dag_definitions": ("SIUD", ""),
    "dag_jobs": ("SIUD", "S"),
    "dag_nodes": ("SIUD", ""),
    "dag_tasks": ("SIUD", "SU"),
    "dag_task_results": ("SIUD", "SI"),
    "dag_job_events": ("SID", ""),
    "dag_checkpoints": ("SIUD", "SIU"),
    "dag_held_prefixes": ("SIUD", "S"),
    "dag_job_messages": ("SIUD", ""),
    "dag_callbacks": ("SIUD", ""),
    "dag_orchestrators": ("SIUD", ""),
    "dag_workers": ("SIUD", "SIU"),
    "platforms": ("SIU", "S"),
    "geospatial_assets": ("SIU", "S"),
    "asset_versions": ("SIU", ""),
    "asset_revisions": ("SI", ""),
    "platform_requests": ("SIU", ""),
    "api_clients": ("SIUD", ""),
    "layer_metadata": ("SIU", ""),
    "layer_catalog": ("SIUD", ""),
    "output_checks": ("SIUD", ""),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deployed(shared_database: TestDatabase) -> TestDatabase:
    """Give a database that was deployed in place: a clone has not its template's own privileges.

    Once for all of these tests: they change no privilege for good.
    """
    async with database_schema(shared_database.url()) as schema:
        assert (await schema.deploy()).current
    return shared_database


@pytest.fixture
def ask(deployed: TestDatabase) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a connection of the administrator."""
    with psycopg.connect(deployed.url(), autocommit=True) as opened:
        yield opened


def test_every_role_has_on_every_table_exactly_what_it_was_given(ask: psycopg.Connection[TupleRow]) -> None:
    wanted = {("graticule_serve_internal", "api_clients", "SELECT")}
    for table, (orchestrator, worker) in EXPECTED.items():
        granted = {"graticule_orchestrator": orchestrator, "graticule_worker": worker, "graticule_gateway": "S"}
        wanted |= {
            (role, table, privilege)
            for (role, letters), privilege in product(granted.items(), PRIVILEGES[:4])
            if privilege[0] in letters
        }
    found = set()
    for role, model, privilege in product(OTHERS, TABLES, PRIVILEGES):
        answer = ask.execute(
            "SELECT has_table_privilege(%s, %s, %s)", [role, f"dagapp.{model.table.name}", privilege]
        ).fetchone()
        found |= {(role.value, model.table.name, privilege)} if answer == (True,) else set()
    assert found == wanted


def test_the_models_give_what_the_database_has(ask: psycopg.Connection[TupleRow]) -> None:
    for model, role, privilege in product(TABLES, OTHERS, PRIVILEGES):
        answer = ask.execute(
            "SELECT has_table_privilege(%s, %s, %s)", [role, f"dagapp.{model.table.name}", privilege]
        ).fetchone()
        assert answer == (privilege in model.table.grants.get(role, frozenset()),), (model, role, privilege)


def test_nobody_but_the_owner_may_truncate_or_own_anything(ask: psycopg.Connection[TupleRow]) -> None:
    may = ask.execute(
        "SELECT r.rolname, c.relname FROM pg_roles r, pg_class c"
        " WHERE c.relnamespace = 'dagapp'::regnamespace AND c.relkind IN ('r', 'p') AND NOT r.rolsuper"
        "   AND has_table_privilege(r.oid, c.oid, 'TRUNCATE') AND NOT pg_has_role(r.oid, 'graticule_owner', 'MEMBER')"
    ).fetchall()
    assert may == []
    owners = "SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'dagapp'::regnamespace"
    assert ask.execute(owners).fetchall() == [("graticule_owner",)]


@pytest.mark.parametrize("role", OTHERS)
def test_partitions_and_sequences_are_no_way_around_the_table(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    reached = ask.execute(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'dagapp'::regnamespace AND CASE c.relkind"
        " WHEN 'r' THEN c.relispartition AND has_table_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, DELETE')"
        " WHEN 'S' THEN has_sequence_privilege(%(role)s, c.oid, 'USAGE, SELECT, UPDATE') END",
        {"role": role},
    ).fetchall()
    assert reached == []


@pytest.mark.parametrize("role", OTHERS)
def test_no_process_may_make_schemas_or_become_another_role_and_workers_alone_make_tables_of_features(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    schemas = "SELECT nspname FROM pg_namespace WHERE has_schema_privilege(%s, oid, 'CREATE')"
    makes = {("geo",)} if role is DatabaseRole.WORKER else set()
    assert set(ask.execute(schemas, [role]).fetchall()) == makes
    assert ask.execute("SELECT has_database_privilege(%s, current_database(), 'CREATE')", [role]).fetchone() == (False,)
    become = "SELECT rolname FROM pg_roles WHERE pg_has_role(%(role)s, oid, 'MEMBER') AND rolname <> %(role)s"
    assert ask.execute(become, {"role": role}).fetchall() == []
    attributes = "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles"
    assert ask.execute(f"{attributes} WHERE rolname = %s", [role]).fetchone() == (False,)


@pytest.mark.parametrize("role", OTHERS)
def test_the_views_for_earlier_monitoring_are_read_by_the_gateway_alone(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    query = "SELECT has_schema_privilege(%s, 'dagapp_compat', 'USAGE')"
    assert ask.execute(query, [role]).fetchone() == (role is DatabaseRole.GATEWAY,)


@pytest.mark.parametrize("role", READERS)
def test_who_only_reads_may_write_to_no_relation_of_any_schema(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    writable = ask.execute(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND CASE"
        " WHEN c.relkind IN ('r', 'p', 'v', 'm', 'f') THEN"
        "   has_table_privilege(%(role)s, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
        "   OR has_any_column_privilege(%(role)s, c.oid, 'INSERT, UPDATE')"
        " WHEN c.relkind = 'S' THEN has_sequence_privilege(%(role)s, c.oid, 'USAGE, UPDATE') END",
        {"role": role},
    ).fetchall()
    assert writable == []


@pytest.mark.parametrize("role", READERS)
def test_who_only_reads_can_call_no_function_that_could_write_as_someone_else(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    definers = ask.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE p.prosecdef AND p.provolatile = 'v' AND has_function_privilege(%(role)s, p.oid, 'EXECUTE')"
        "   AND has_schema_privilege(%(role)s, n.oid, 'USAGE')",
        {"role": role},
    ).fetchall()
    assert definers == []


@pytest.mark.parametrize("role", SERVING)
def test_a_service_reads_what_is_meant_for_its_audience_and_no_more(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    audience = role.removeprefix("graticule_serve_")
    readable = ask.execute(
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname IN ('dagapp', 'serving', 'geo', 'external', 'pgstac') AND c.relkind IN ('r', 'p', 'v', 'm')"
        "   AND has_any_column_privilege(%s, c.oid, 'SELECT') AND has_schema_privilege(%s, n.oid, 'USAGE')",
        [role, role],
    ).fetchall()
    views = {f"serving.{audience}_versions", f"serving.{audience}_items"}
    ours = views | ({"serving.previews", "dagapp.api_clients"} if role is DatabaseRole.SERVE_INTERNAL else set())
    assert {name for (name,) in readable if not name.startswith("pgstac.")} == ours
    guarded = ask.execute(
        "SELECT 'pgstac.' || relname FROM pg_class WHERE relnamespace = 'pgstac'::regnamespace AND relrowsecurity"
    ).fetchall()
    public = {"queryables", "cql2_ops", "pgstac_settings", "partition_stats", "collections_asitems"}
    assert {name for (name,) in readable if name.startswith("pgstac.")} - {name for (name,) in guarded} == {
        f"pgstac.{name}" for name in public
    }
    zones = ask.execute(
        "SELECT nspname FROM pg_namespace"
        " WHERE nspname IN ('geo', 'external') AND has_schema_privilege(%s, oid, 'USAGE')",
        [role],
    ).fetchall()
    assert zones == [("geo" if role is DatabaseRole.SERVE_INTERNAL else "external",)]


def test_no_process_may_make_temporary_tables(ask: psycopg.Connection[TupleRow]) -> None:
    for role in OTHERS:
        answer = ask.execute("SELECT has_database_privilege(%s, current_database(), 'TEMPORARY')", [role]).fetchone()
        assert answer == (False,)


def test_no_process_writes_large_objects(ask: psycopg.Connection[TupleRow]) -> None:
    writers = ask.execute(
        "SELECT role, oid::regprocedure::text FROM pg_proc, unnest(%s::text[]) AS role"
        " WHERE pronamespace = 'pg_catalog'::regnamespace AND has_function_privilege(role, oid, 'EXECUTE')"
        "   AND proname ~ '^(lo_|lowrite)' AND proname !~ 'close|get|lseek|tell'",
        [list(OTHERS)],
    ).fetchall()
    assert writers == []


@pytest.mark.parametrize("role", WRITERS)
def test_who_writes_the_catalogue_has_what_that_needs_also_after_it_has_made_a_partition(
    deployed: TestDatabase, role: DatabaseRole
) -> None:
    with psycopg.connect(deployed.url(role)) as worker:
        worker.execute("SELECT pgstac.upsert_collection(%s::jsonb)", ['{"id": "mine", "type": "Collection"}'])
        made = worker.execute("SELECT pgstac.check_partition('mine', '[2020-01-01, 2020-01-02]', '[2020-01-01,)')")
        assert made.fetchone() is not None
        found = worker.execute(
            "SELECT relname, privilege FROM pg_class, unnest(%s::text[]) AS privilege"
            " WHERE relnamespace = 'pgstac'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
            "   AND has_table_privilege(pg_class.oid, privilege)",
            [list(PRIVILEGES)],
        ).fetchall()
        worker.rollback()
    wanted = {(name, each) for name, letters in CATALOGUE.items() for each in PRIVILEGES[:4] if each[0] in letters}
    assert set(found) == wanted


def _definers(ask: psycopg.Connection[TupleRow], role: DatabaseRole) -> set[str]:
    """Give the functions of pgstac that run as its administrator, of those that a role may call."""
    found = ask.execute(
        "SELECT oid::regproc::text FROM pg_proc WHERE prosecdef AND prokind <> 'a'"
        "   AND pronamespace = 'pgstac'::regnamespace AND has_function_privilege(%s, oid, 'EXECUTE')",
        [role],
    ).fetchall()
    return {name for (name,) in found}


def test_a_worker_has_nothing_run_as_someone_else(ask: psycopg.Connection[TupleRow]) -> None:
    """It makes functions in geo, so nobody may look for names there, and no table of others may have its triggers."""
    triggers = ask.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f')"
        "   AND relowner <> 'graticule_worker'::regrole"
        "   AND has_table_privilege('graticule_worker', oid, 'TRIGGER, TRUNCATE, REFERENCES')"
    ).fetchall()
    assert triggers == []
    assert _definers(ask, DatabaseRole.WORKER) == {"pgstac.check_partition"}
    assert _definers(ask, DatabaseRole.ORCHESTRATOR) == {"pgstac.check_partition"}
    paths = ask.execute(
        "SELECT setting FROM pg_db_role_setting, unnest(setconfig) AS setting WHERE setting LIKE 'search_path=%geo%'"
        " UNION ALL SELECT setting FROM pg_settings WHERE name = 'search_path' AND setting LIKE '%geo%'"
    ).fetchall()
    assert paths == []


@pytest.mark.parametrize("role", WRITERS)
def test_who_was_given_all_of_the_catalogue_by_an_earlier_deployment_loses_it(
    deployed: TestDatabase, role: DatabaseRole
) -> None:
    worker = f"SELECT pg_has_role('{role}', 'pgstac_ingest', 'MEMBER'),"
    temporary = f"has_database_privilege('{role}', current_database(), 'TEMPORARY')"
    with psycopg.connect(deployed.url()) as connection:  # roles are the server's: nothing of this is committed
        connection.execute(f"GRANT pgstac_ingest TO {role}".encode())
        connection.execute(f"GRANT TEMPORARY ON DATABASE {deployed.name} TO {role}".encode())
        assert connection.execute(f"{worker} {temporary}".encode()).fetchone() == (True, True)
        connection.execute(files("graticule.schema").joinpath("restrict.sql").read_bytes())
        assert connection.execute(f"{worker} {temporary}".encode()).fetchone() == (False, False)
        connection.rollback()
