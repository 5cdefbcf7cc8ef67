"""Who may do what: every role, table and privilege, as PostgreSQL itself answers."""

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from psycopg.rows import TupleRow
from tests.conftest import TestDatabase

from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.schema.deploy import database_schema

PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
OTHERS = [role for role in DatabaseRole if role is not DatabaseRole.OWNER]
# orchestrator, worker; the gateway reads everything. Written down apart from the models.
EXPECTED = {
    "schema_deployments": ("S", "S"),
    "dag_workflows": ("SID", ""),
    "dag_jobs": ("SIUD", "S"),
    "dag_nodes": ("SIUD", ""),
    "dag_tasks": ("SIUD", "SU"),
    "dag_task_results": ("SIUD", "SI"),
    "dag_job_events": ("SID", ""),
    "dag_checkpoints": ("SIUD", "SIU"),
    "dag_job_messages": ("SIUD", ""),
    "dag_callbacks": ("SIUD", ""),
    "dag_orchestrators": ("SIUD", ""),
    "dag_workers": ("SIUD", "SIU"),
    "platforms": ("SIU", ""),
    "geospatial_assets": ("SIU", ""),
    "asset_versions": ("SIU", ""),
    "asset_revisions": ("SI", ""),
    "platform_requests": ("SIU", ""),
    "api_clients": ("SIUD", ""),
    "layer_metadata": ("SIU", ""),
    "layer_catalog": ("SIUD", ""),
}


@pytest.fixture
async def deployed(shared_database: TestDatabase) -> TestDatabase:
    """Give a database that was deployed in place: a clone has not its template's own privileges."""
    async with database_schema(shared_database.url()) as schema:
        assert (await schema.deploy()).current
    return shared_database


@pytest.fixture
def ask(deployed: TestDatabase) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a connection of the administrator."""
    with psycopg.connect(deployed.url(), autocommit=True) as opened:
        yield opened


def test_every_role_has_on_every_table_exactly_what_it_was_given(ask: psycopg.Connection[TupleRow]) -> None:
    wanted = set()
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
        "   AND has_table_privilege(r.oid, c.oid, 'TRUNCATE') AND r.rolname <> 'graticule_owner'"
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
def test_no_process_may_make_schemas_or_tables_or_become_another_role(
    ask: psycopg.Connection[TupleRow], role: DatabaseRole
) -> None:
    schemas = "SELECT nspname FROM pg_namespace WHERE has_schema_privilege(%s, oid, 'CREATE')"
    assert ask.execute(schemas, [role]).fetchall() == []
    assert ask.execute("SELECT has_database_privilege(%s, current_database(), 'CREATE')", [role]).fetchone() == (False,)
    become = "SELECT rolname FROM pg_roles WHERE pg_has_role(%(role)s, oid, 'MEMBER') AND rolname <> %(role)s"
    assert ask.execute(become, {"role": role}).fetchall() == []
    attributes = "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles"
    assert ask.execute(f"{attributes} WHERE rolname = %s", [role]).fetchone() == (False,)


def test_the_gateway_may_write_to_no_relation_of_any_schema(ask: psycopg.Connection[TupleRow]) -> None:
    writable = ask.execute(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND CASE"
        " WHEN c.relkind IN ('r', 'p', 'v', 'm', 'f') THEN"
        "   has_table_privilege('graticule_gateway', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
        "   OR has_any_column_privilege('graticule_gateway', c.oid, 'INSERT, UPDATE')"
        " WHEN c.relkind = 'S' THEN has_sequence_privilege('graticule_gateway', c.oid, 'USAGE, UPDATE') END"
    ).fetchall()
    assert writable == []


def test_the_gateway_can_call_no_function_that_could_write_as_someone_else(ask: psycopg.Connection[TupleRow]) -> None:
    definers = ask.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE p.prosecdef AND p.provolatile = 'v' AND has_function_privilege('graticule_gateway', p.oid, 'EXECUTE')"
        "   AND has_schema_privilege('graticule_gateway', n.oid, 'USAGE')"
    ).fetchall()
    assert definers == []


def test_the_gateway_may_not_make_temporary_tables_and_the_others_may(ask: psycopg.Connection[TupleRow]) -> None:
    for role in OTHERS:
        answer = ask.execute("SELECT has_database_privilege(%s, current_database(), 'TEMPORARY')", [role]).fetchone()
        assert answer == (role is not DatabaseRole.GATEWAY,)
