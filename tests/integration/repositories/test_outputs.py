"""Outputs belong to a version: the database refuses every job that the version does not name."""

from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg.errors import CheckViolation, InsufficientPrivilege
from tests.conftest import TestDatabase
from tests.integration.repositories import rows
from tests.integration.repositories.output_jobs import (
    COLLECTION,
    CURRENT,
    DIRECT,
    ENDED,
    EXPORT,
    ITEM,
    KNOWN_BY_PARAMETERS,
    OUTDATED,
    OWN,
    PREFIX,
    TABLE,
    UNPUBLISH,
    outputs,
    pool,
    worker,
)

from graticule.core.direct_names import is_direct
from graticule.core.errors import OutputRefused
from graticule.core.ids import JobId
from graticule.core.models import Platform
from graticule.core.table import DatabaseRole
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.repositories.outputs import OutputKind, require_items, require_outputs
from graticule.repositories.overviews import overview_name
from graticule.repositories.queries import load_queries
from graticule.repositories.vectors import Description, FeatureTable, VectorRepository

__all__ = ["outputs", "pool", "worker"]


async def _require(pool: Database, job_id: JobId, kind: OutputKind, *names: str) -> None:
    async with pool.connection() as connection, connection.transaction():
        await require_outputs(connection, job_id, kind, *names)


@pytest.mark.parametrize(("kind", "name"), OWN)
async def test_the_job_that_a_version_names_writes_its_outputs(pool: Database, kind: OutputKind, name: str) -> None:
    await _require(pool, CURRENT, kind, name)


@pytest.mark.parametrize(("kind", "name"), OWN)
@pytest.mark.parametrize("job_id", [OUTDATED, EXPORT, DIRECT, ENDED, "nobody"])
async def test_no_other_job_writes_them(pool: Database, job_id: JobId, kind: OutputKind, name: str) -> None:
    with pytest.raises(OutputRefused, match="may not write"):
        await _require(pool, job_id, kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (OutputKind.TABLE, "roads_01234567_v0_r2"),
        (OutputKind.TABLE, "direct_x"),
        (OutputKind.PREFIX, f"{PREFIX}/more"),
        (OutputKind.PREFIX, "ddh/roads/01234567/v0"),
        (OutputKind.COLLECTION, f"{COLLECTION}-public"),
        (OutputKind.COLLECTION, f"{COLLECTION}-89abcdef"),
        (OutputKind.ITEM, f"{COLLECTION}/roads-01234567-v01"),
        (OutputKind.ITEM, f"ddh-others-89abcdef/{ITEM}"),
    ],
)
async def test_a_job_of_a_version_writes_nothing_else(pool: Database, kind: OutputKind, name: str) -> None:
    with pytest.raises(OutputRefused, match="not an output of the version"):
        await _require(pool, CURRENT, kind, name)


async def test_one_name_among_many_is_enough_to_refuse(pool: Database) -> None:
    async with pool.connection() as connection:
        await require_items(connection, CURRENT, f"{ITEM}-tiles", [f"{ITEM}-{number}" for number in range(500)])
        with pytest.raises(OutputRefused, match="others"):
            await require_items(connection, CURRENT, COLLECTION, [ITEM, "others", f"{ITEM}-1"])


async def test_a_version_that_was_deleted_takes_no_outputs(outputs: TestDatabase, pool: Database) -> None:
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute("UPDATE dagapp.asset_versions SET deleted_at = now(), deleted_by = 'r'")
        with pytest.raises(OutputRefused, match="was deleted"):
            await _require(pool, CURRENT, OutputKind.TABLE, TABLE)
        admin.execute("UPDATE dagapp.asset_versions SET deleted_at = NULL, deleted_by = NULL")


@pytest.mark.parametrize(
    ("parameter", "kind", "name", "is_allowed"),
    [
        ("table_name", OutputKind.TABLE, "direct_roads", True),
        ("table_name", OutputKind.TABLE, f"direct_{'x' * 56}", True),
        ("table_name", OutputKind.TABLE, f"direct_{'x' * 57}", False),
        ("table_name", OutputKind.TABLE, "direct_", False),
        ("table_name", OutputKind.TABLE, "direct", False),
        ("table_name", OutputKind.TABLE, "Direct_roads", False),
        ("table_name", OutputKind.TABLE, "direct_roads\n", False),
        ("table_name", OutputKind.TABLE, "direct_röads", False),
        ("table_name", OutputKind.TABLE, "d\u0131rect_roads", False),
        ("table_name", OutputKind.TABLE, 'direct_"; DROP TABLE x', False),
        ("table_name", OutputKind.TABLE, "staging_current", False),
        ("table_name", OutputKind.TABLE, "tiles_0123456789abcdef0123456789abcdef", False),
        ("blob_prefix", OutputKind.PREFIX, "direct/a/b.c", True),
        ("blob_prefix", OutputKind.PREFIX, "direct", False),
        ("blob_prefix", OutputKind.PREFIX, "direct/", False),
        ("blob_prefix", OutputKind.PREFIX, "direct/a/", False),
        ("blob_prefix", OutputKind.PREFIX, "direct//a", False),
        ("blob_prefix", OutputKind.PREFIX, "direct/../ddh/roads", False),
        ("blob_prefix", OutputKind.PREFIX, "direct/./a", False),
        ("blob_prefix", OutputKind.PREFIX, "/direct/a", False),
        ("blob_prefix", OutputKind.PREFIX, "DIRECT/a", False),
        ("blob_prefix", OutputKind.PREFIX, "ddh", False),
        ("blob_prefix", OutputKind.PREFIX, f"{PREFIX}/cogs", False),
        ("stac_collection_id", OutputKind.COLLECTION, "direct-bronze", True),
        ("stac_collection_id", OutputKind.COLLECTION, "direct-", False),
        ("stac_collection_id", OutputKind.COLLECTION, "Direct-bronze", False),
        ("stac_collection_id", OutputKind.COLLECTION, f"{COLLECTION}-public", False),
        ("stac_collection_id", OutputKind.COLLECTION, f"{COLLECTION}-tiles", False),
    ],
)
async def test_a_hand_made_job_writes_in_its_namespace_alone(
    pool: Database, parameter: str, kind: OutputKind, name: str, is_allowed: bool
) -> None:
    assert is_direct(parameter, name) is is_allowed
    if is_allowed:
        await _require(pool, DIRECT, kind, name)
    else:
        with pytest.raises(OutputRefused, match="direct_…, prefixes below direct/…"):
            await _require(pool, DIRECT, kind, name)


async def test_a_name_from_before_the_namespace_stays_its_assets(outputs: TestDatabase, pool: Database) -> None:
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute(
            "UPDATE dagapp.asset_versions SET table_name = 'direct_old_v0', stac_collection_id = 'direct-old'"
        )
        for kind, name in ((OutputKind.TABLE, "direct_old_v0"), (OutputKind.COLLECTION, "direct-old-public")):
            with pytest.raises(OutputRefused):
                await _require(pool, DIRECT, kind, name)
        admin.execute("UPDATE dagapp.asset_versions SET table_name = %s, stac_collection_id = %s", [TABLE, COLLECTION])


@pytest.mark.parametrize("item", ["direct-relief-v1-01234567-v0", "direct-relief-v2-01234567-v1-r3"])
async def test_tiles_of_an_item_that_begins_like_the_namespace_stay_its_assets(
    outputs: TestDatabase, pool: Database, item: str
) -> None:
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute("UPDATE dagapp.geospatial_assets SET short_id = '01234567' WHERE asset_id = %s", [rows.ASSET])
        with pytest.raises(OutputRefused):
            await _require(pool, DIRECT, OutputKind.COLLECTION, f"{item}-tiles")
        admin.execute("UPDATE dagapp.geospatial_assets SET short_id = NULL WHERE asset_id = %s", [rows.ASSET])
    await _require(pool, DIRECT, OutputKind.COLLECTION, f"{item}-tiles")


async def _load(pool: Database, job_id: JobId, name: str, sentence: str = "a test.") -> None:
    async with pool.connection() as connection, connection.transaction():
        tables = VectorRepository(connection, job_id)
        made = FeatureTable({"geom": "geometry(Point, 4326)"})
        await tables.create_staging(made, "a test")
        await tables.index_key(made)
        await tables.index_geometry(made)
        await tables.complete(Description(sentence, {"geom": "geom"}))
        assert await tables.swap(name)


async def test_a_live_table_is_replaced_by_the_job_of_its_version_and_by_nothing_else(
    outputs: TestDatabase, pool: Database, worker: psycopg.Connection[Any]
) -> None:
    await _load(pool, CURRENT, TABLE)
    query: LiteralString = f"SELECT 'geo.{TABLE}'::regclass::oid"
    made = worker.execute(query).fetchone()
    with pytest.raises(OutputRefused, match=TABLE):
        await _load(pool, DIRECT, TABLE)
    assert worker.execute(query).fetchone() == made
    worker.commit()
    for statement in (
        f"DROP TABLE geo.{TABLE}",
        f"DELETE FROM geo.{TABLE}",
        f"ALTER TABLE geo.{TABLE} RENAME TO x",
        f"COMMENT ON TABLE geo.{TABLE} IS 'Content: another.'",
    ):
        with pytest.raises(InsufficientPrivilege):
            worker.execute(statement.encode())
        worker.rollback()
    await _load(pool, CURRENT, TABLE)
    assert worker.execute(query).fetchone() != made
    with psycopg.connect(outputs.url(DatabaseRole.SERVE_INTERNAL)) as service:
        assert service.execute(f"SELECT count(*) FROM geo.{TABLE}".encode()).fetchone() == (0,)


async def test_a_job_whose_id_is_longer_than_a_name_can_be_loads_a_table(
    pool: Database, worker: psycopg.Connection[Any]
) -> None:
    await _load(pool, KNOWN_BY_PARAMETERS, "direct_roads")
    assert worker.execute("SELECT count(*) FROM geo.direct_roads").fetchone() == (0,)
    left = "SELECT count(*) FROM pg_class WHERE relname ^@ 'staging_0123' AND relnamespace = 'geo'::regnamespace"
    assert worker.execute(left).fetchone() == (0,)


async def test_a_live_table_stays_when_nothing_is_staged_in_its_place(
    pool: Database, worker: psycopg.Connection[Any]
) -> None:
    await _load(pool, CURRENT, TABLE)
    with pytest.raises(psycopg.DatabaseError, match="it has staged no table"):
        worker.execute("SELECT dagapp.promote_table(%s, %s)", [CURRENT, TABLE])
    worker.rollback()
    assert worker.execute(f"SELECT count(*) FROM geo.{TABLE}".encode()).fetchone() == (0,)


async def test_a_table_that_was_changed_is_told_apart_by_its_rows(outputs: TestDatabase, pool: Database) -> None:
    await _load(pool, CURRENT, TABLE)

    def fault(job_id: JobId = CURRENT, most_bytes: int = 2**20) -> Any:
        with psycopg.connect(outputs.url(DatabaseRole.ORCHESTRATOR)) as connection:
            query: LiteralString = "SELECT dagapp.fault_of_table(%s, %s, %s)"
            return (connection.execute(query, [job_id, TABLE, most_bytes]).fetchone() or ())[0]

    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        assert fault() is None
        assert fault(DIRECT) == "another job has made it"
        admin.execute(f"INSERT INTO geo.{TABLE} VALUES (2, NULL), (1, public.ST_SetSRID(public.ST_Point(1, 2), 4326))")
        assert fault() == "its rows are not those that the job loaded"
        assert fault(most_bytes=0) is None
        query: LiteralString = "SELECT dagapp.hash_table('geo', %s)"
        before = admin.execute(query, [TABLE]).fetchone()
        admin.execute(f"UPDATE geo.{TABLE} SET fid = fid WHERE fid = 1")
        admin.execute("SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'; SET extra_float_digits = -5")
        assert admin.execute(query, [TABLE]).fetchone() == before, "neither the order on disk nor the session counts"
        admin.execute(f"COMMENT ON TABLE geo.{TABLE} IS NULL")
        assert fault() == "another job has made it"
        with pytest.raises(psycopg.DatabaseError, match="no job has made the table"):
            admin.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
        admin.execute(f"DROP TABLE geo.{TABLE}")
        assert fault() == "it is not there"


async def test_the_name_of_a_layer_is_not_taken_for_the_hash_of_its_rows(outputs: TestDatabase, pool: Database) -> None:
    await _load(pool, CURRENT, TABLE, f"Content: {'0' * 64}.")
    with psycopg.connect(outputs.url()) as admin:
        row = admin.execute("SELECT dagapp.fault_of_table(%s, %s, 1000000)", [CURRENT, TABLE]).fetchone()
        assert row == (None,)
        admin.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
        admin.rollback()


ADDED_BY_HAND: Final[dict[str, LiteralString]] = {
    "the index geo.by_size computes": "CREATE INDEX by_size ON {} (abs(fid))",
    "has a condition": "CREATE INDEX ON {} (fid) WHERE fid > 0",
    "it has the extended statistics": 'CREATE STATISTICS geo."In pairs" ON fid, geom FROM {}',
    "it has the trigger": (
        "CREATE TRIGGER noted BEFORE INSERT ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "it has the rule": "CREATE RULE ignored AS ON DELETE TO {} DO INSTEAD NOTHING",
    "the column fid has a default": "ALTER TABLE {} ALTER fid SET DEFAULT 1",
    "it has the constraint": "ALTER TABLE {} ADD CHECK (fid > 0)",
    "it has the constraint one_each": "ALTER TABLE {} ADD CONSTRAINT one_each EXCLUDE ((abs(fid)) WITH =)",
    "it has row-level security": "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
    "a crash would empty it": "ALTER TABLE {} SET UNLOGGED",
    "geo.part inherits from": "CREATE TABLE geo.part () INHERITS ({})",
}


@pytest.mark.parametrize("what", ADDED_BY_HAND)
async def test_what_was_added_to_a_table_by_hand_is_named_with_what_removes_it(
    outputs: TestDatabase, pool: Database, what: str
) -> None:
    await _load(pool, CURRENT, TABLE)
    with psycopg.connect(outputs.url(), autocommit=True) as admin:

        def fault() -> str | None:
            query: LiteralString = "SELECT dagapp.fault_of_table(%s, %s, 1000000)"
            found: str | None = (admin.execute(query, [CURRENT, TABLE]).fetchone() or ())[0]
            return found

        assert fault() is None
        admin.execute(ADDED_BY_HAND[what].format(f"geo.{TABLE}").encode())
        try:
            found = str(fault())
            assert found.startswith("it is more than rows: ")
            assert what in found
            with pytest.raises(psycopg.DatabaseError, match="the table is more than rows: ") as refused:
                admin.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
            assert found.removeprefix("it is more than rows: ") in str(refused.value)
            assert refused.value.diag.message_hint.startswith("Then clear the asset once more")  # type: ignore[union-attr]
            for _ in range(2):  # of some, the catalog of PostgreSQL keeps a trace
                admin.execute(found.rpartition(": ")[2].removesuffix(")").encode())
                if (found := fault() or "") == "":
                    break
            assert fault() is None
        finally:
            admin.execute(f"DROP TABLE IF EXISTS geo.part, geo.{TABLE}".encode())


async def test_plain_indexes_may_be_added_to_a_table(outputs: TestDatabase, pool: Database) -> None:
    await _load(pool, CURRENT, TABLE)
    with psycopg.connect(outputs.url()) as admin:
        admin.execute(f"CREATE INDEX ON geo.{TABLE} (fid)".encode())
        row = admin.execute("SELECT dagapp.fault_of_table(%s, %s, 1000000)", [CURRENT, TABLE]).fetchone()
        assert row == (None,)
        admin.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
        admin.rollback()


async def test_a_table_of_somebody_else_is_told_of(outputs: TestDatabase, pool: Database) -> None:
    await _load(pool, CURRENT, TABLE)
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        for owner, fault in {
            "graticule_worker": "it belongs to graticule_worker and not to graticule_owner"
            " (take it over: graticule schema migrate)",
            "CURRENT_USER": f"it belongs to {admin.info.user} and not to graticule_owner",
        }.items():
            admin.execute(f"ALTER TABLE geo.{TABLE} OWNER TO {owner}".encode())
            row = admin.execute("SELECT dagapp.fault_of_table(%s, %s, 0)", [CURRENT, TABLE]).fetchone()
            assert row == (fault,)
        admin.execute(f"DROP TABLE geo.{TABLE}".encode())


def test_rows_of_a_table_whose_hash_nobody_recorded_are_not_read(outputs: TestDatabase) -> None:
    """It may be more than rows: something on it could run while the owner of the schema reads."""
    with psycopg.connect(outputs.url()) as admin:
        admin.execute(f"DROP TABLE IF EXISTS geo.{TABLE}".encode())
        admin.execute(f"CREATE TABLE geo.{TABLE} (without_number int)".encode())
        admin.execute(f"COMMENT ON TABLE geo.{TABLE} IS 'Made by job {CURRENT}: by an older release.'".encode())
        admin.execute(f"ALTER TABLE geo.{TABLE} OWNER TO graticule_owner".encode())
        query: LiteralString = "SELECT dagapp.fault_of_table(%s, %s, %s)"
        assert admin.execute(query, [CURRENT, TABLE, 2**20]).fetchone() == (None,)
        admin.rollback()


async def test_a_worker_cannot_keep_a_table_that_is_approved_and_copied(
    outputs: TestDatabase, pool: Database, worker: psycopg.Connection[Any]
) -> None:
    """A table that a worker makes by itself instead of promoting one stays its own, and its rows could still change."""
    await _load(pool, CURRENT, TABLE)
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute(f"DROP TABLE geo.{TABLE}".encode())
    worker.execute(f"CREATE TABLE geo.{TABLE} (fid bigint PRIMARY KEY)".encode())
    worker.execute(f"COMMENT ON TABLE geo.{TABLE} IS 'Made by job {CURRENT}: x.'".encode())
    with (
        pytest.raises(psycopg.DatabaseError, match="the table does not belong to graticule_owner"),
        worker.transaction(),
    ):
        worker.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
    query: LiteralString = "SELECT dagapp.fault_of_table(%s, %s, 1000000)"
    assert worker.execute(query, [CURRENT, TABLE]).fetchone() == (
        "it belongs to graticule_worker and not to graticule_owner (take it over: graticule schema migrate)",
    )


RUNS_AS = """
    CREATE FUNCTION geo.runs_as(anything anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN RAISE EXCEPTION 'it ran as %', current_user; END $$
"""
LADEN: Final[dict[str, LiteralString]] = {
    "a view": "DROP TABLE geo.staging_current; CREATE VIEW geo.staging_current AS SELECT 1::bigint AS fid",
    "rows that a crash removes": "ALTER TABLE geo.staging_current SET UNLOGGED",
    "a cast": (
        "CREATE FUNCTION geo.written(geo.staging_current) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;"
        " CREATE CAST (geo.staging_current AS text) WITH FUNCTION geo.written(geo.staging_current)"
    ),
    "an index on an expression": "CREATE INDEX ON geo.staging_current (abs(fid))",
    "a partial index": "CREATE INDEX ON geo.staging_current (fid) WHERE fid > 0",
    "statistics": "CREATE STATISTICS geo.told ON (abs(fid)) FROM geo.staging_current",
    "a policy": (
        "CREATE POLICY told ON geo.staging_current USING (geo.runs_as(fid));"
        " ALTER TABLE geo.staging_current ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    ),
    "a trigger": (
        "CREATE TRIGGER told BEFORE INSERT ON geo.staging_current EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "a check": "ALTER TABLE geo.staging_current ADD CHECK (geo.runs_as(fid)) NOT VALID",
    "a default": "ALTER TABLE geo.staging_current ALTER fid SET DEFAULT 1",
    "a type": "CREATE DOMAIN geo.told AS int; ALTER TABLE geo.staging_current ADD told geo.told",
    "a child": "CREATE TABLE geo.child () INHERITS (geo.staging_current)",
}


@pytest.mark.parametrize("what", LADEN)
def test_a_worker_hands_no_function_of_its_own_to_the_owner(worker: psycopg.Connection[Any], what: str) -> None:
    worker.execute(RUNS_AS)
    worker.execute("CREATE TABLE geo.staging_current (fid bigint NOT NULL)")
    worker.execute(LADEN[what])
    assert worker.execute("SELECT dagapp.hash_rows('geo', 'staging_current')").fetchone() == (None,)
    with pytest.raises(psycopg.DatabaseError, match="more than a table of rows"):
        worker.execute("SELECT dagapp.promote_table(%s, %s)", [CURRENT, TABLE])


def test_a_login_that_acts_as_a_worker_hands_no_function_of_its_own_to_the_owner(outputs: TestDatabase) -> None:
    """What it makes before it takes the role is its own, and not the worker's: how far apart two values of a range are
    is asked when a table is analyzed, as the owner of the table."""
    with psycopg.connect(outputs.url()) as login:
        login.execute("CREATE ROLE a_login LOGIN IN ROLE graticule_worker")
        login.execute("SET SESSION AUTHORIZATION a_login")
        login.execute(
            "CREATE FUNCTION geo.differs(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$"
            " BEGIN RAISE EXCEPTION 'it ran as %', current_user; END $$;"
            " CREATE TYPE geo.told AS RANGE (subtype = float8, subtype_diff = geo.differs);"
            " CREATE DOMAIN geo.listed AS text[] CHECK (geo.differs(1, 2) > 0)"
        )
        login.execute("SET ROLE graticule_worker")
        for kind in ("geo.told", "geo.told[]", "geo.listed"):
            login.execute(f"CREATE TABLE geo.staging_current (fid bigint NOT NULL, told {kind})".encode())
            assert login.execute("SELECT dagapp.hash_rows('geo', 'staging_current')").fetchone() == (None,)
            with pytest.raises(psycopg.DatabaseError, match="more than a table of rows"), login.transaction():
                login.execute("SELECT dagapp.promote_table(%s, %s)", [CURRENT, TABLE])
            login.execute("DROP TABLE geo.staging_current")
        login.rollback()


@pytest.mark.parametrize("what", LADEN)
def test_a_copy_for_the_public_runs_no_function_of_a_worker(worker: psycopg.Connection[Any], what: str) -> None:
    worker.execute(RUNS_AS)
    worker.execute(f"CREATE TABLE geo.{TABLE} (fid bigint NOT NULL)")
    worker.execute(LADEN[what].replace("staging_current", TABLE).encode())
    kind = "VIEW" if what == "a view" else "TABLE"
    worker.execute(f"COMMENT ON {kind} geo.{TABLE} IS 'Made by job {CURRENT}: roads.'".encode())
    with pytest.raises(psycopg.DatabaseError, match="more than rows"):
        worker.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])


@pytest.mark.parametrize("job_id", [CURRENT, OUTDATED, UNPUBLISH, DIRECT, ENDED])
def test_only_an_export_of_the_version_makes_its_copy(worker: psycopg.Connection[Any], job_id: JobId) -> None:
    with pytest.raises(psycopg.DatabaseError, match=f"{job_id} may not write the copy '{TABLE}'"):
        worker.execute("SELECT dagapp.make_copy(%s, %s)", [job_id, TABLE])


@pytest.mark.parametrize("statement", ["CREATE TABLE external.made ()", "SELECT dagapp.copy_aside('made', '')"])
def test_a_worker_makes_no_copy_of_its_own(worker: psycopg.Connection[Any], statement: LiteralString) -> None:
    with pytest.raises(InsufficientPrivilege):
        worker.execute(statement)


def test_a_worker_hashes_with_its_own_rights(worker: psycopg.Connection[Any]) -> None:
    query: LiteralString = "SELECT prosecdef FROM pg_proc WHERE oid = 'dagapp.hash_rows(text, text)'::regprocedure"
    assert worker.execute(query).fetchone() == (False,)
    with pytest.raises(InsufficientPrivilege):
        worker.execute("SELECT dagapp.hash_table('geo', 'staging_current')")


def test_rights_that_a_worker_gave_away_end_when_its_table_is_live(worker: psycopg.Connection[Any]) -> None:
    worker.execute("CREATE TABLE geo.staging_current (fid bigint NOT NULL)")
    worker.execute("GRANT ALL ON geo.staging_current TO graticule_serve_internal WITH GRANT OPTION")
    worker.execute("GRANT ALL ON geo.staging_current TO PUBLIC")
    worker.execute("GRANT UPDATE (fid) ON geo.staging_current TO PUBLIC")
    worker.execute("SELECT dagapp.promote_table(%s, %s)", [CURRENT, TABLE])
    for role in ("graticule_worker", "graticule_serve_internal", "graticule_serve_external"):
        row = worker.execute(
            "SELECT has_table_privilege(%(role)s, oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER, REFERENCES'),"
            " has_any_column_privilege(%(role)s, oid, 'INSERT, UPDATE'), has_table_privilege(%(role)s, oid, 'SELECT')"
            " FROM pg_class WHERE relname = %(table)s AND relnamespace = 'geo'::regnamespace",
            {"role": role, "table": TABLE},
        ).fetchone()
        assert row == (False, False, role != "graticule_serve_external")


async def test_tiles_beside_a_table_count_when_its_owner_made_them(
    pool: Database, worker: psycopg.Connection[Any]
) -> None:
    await _load(pool, CURRENT, TABLE)
    overview = f"geo.{overview_name(TABLE)}"
    comment = f"obj_description('geo.{TABLE}'::regclass, 'pg_class')"
    worker.execute(f"CREATE TABLE {overview} (z int)".encode())
    worker.execute(
        f"DO $$ BEGIN EXECUTE format('COMMENT ON TABLE {overview} IS %L', 'Tiles. ' || {comment}); END $$".encode()
    )
    query = load_queries("served_tables.sql")["find_overview"]
    assert worker.execute(query, {"overview": overview, "table": f"geo.{TABLE}"}).fetchone() == (False,)
    worker.execute("SELECT dagapp.make_copy(%s, %s)", [EXPORT, TABLE])
    copies = "SELECT relname FROM pg_class WHERE relnamespace = 'external'::regnamespace AND relkind = 'r'"
    assert worker.execute(copies).fetchall() == [(TABLE,)]


@pytest.mark.parametrize("platform_id", ["direct", "direct_partner"])
def test_no_new_platform_looks_like_the_namespace(outputs: TestDatabase, platform_id: str) -> None:
    row = Platform.model_validate(
        {
            "platform_id": platform_id,
            "display_name": "D",
            "required_refs": ["r"],
            "version_ref": "v",
            "created_at": rows.NOW,
            "updated_at": rows.NOW,
        }
    )
    with psycopg.connect(outputs.url(DatabaseRole.ORCHESTRATOR)) as connection, pytest.raises(CheckViolation):
        connection.execute(statements.insert(type(row)), statements.parameters(row))
