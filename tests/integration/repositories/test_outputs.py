"""Outputs belong to a version: the database refuses every job that the version does not name."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg.errors import CheckViolation, InsufficientPrivilege
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase, new_database
from tests.integration.repositories import rows

from graticule.core.direct_names import is_direct
from graticule.core.errors import OutputRefused
from graticule.core.ids import JobId
from graticule.core.models import Platform
from graticule.core.models.engine import JobPurpose
from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.repositories.outputs import OutputKind, require_items, require_outputs
from graticule.repositories.overviews import overview_name
from graticule.repositories.queries import load_queries
from graticule.repositories.vectors import Description, FeatureTable, VectorRepository

TABLE, PREFIX = "roads_01234567_v0", "ddh/roads/01234567/v0/r1"
COLLECTION, ITEM = "ddh-roads-01234567", "roads-01234567-v0"
INPUTS: Final = {
    "table_name": TABLE,
    "blob_prefix": PREFIX,
    "stac_collection_id": COLLECTION,
    "stac_item_id": ITEM,
    "version_prefix": "ddh/roads/01234567/v0",
}
DONE, CURRENT, OUTDATED, DIRECT, ENDED = map(JobId, ("done", "current", "outdated", "direct", "ended"))
EXPORT, UNPUBLISH = map(JobId, ("export", "unpublish"))
KNOWN_BY_PARAMETERS = JobId("0123456789abcdef" * 4)
OWN = [
    (OutputKind.TABLE, TABLE),
    (OutputKind.PREFIX, PREFIX),
    (OutputKind.COLLECTION, COLLECTION),
    (OutputKind.ITEM, f"{COLLECTION}/{ITEM}"),
]
INSERT_ITEM: LiteralString = """
    INSERT INTO pgstac.items (id, geometry, collection, datetime, end_datetime, content)
    VALUES (%s, ST_SetSRID(ST_Point(0, 0), 4326), %s, '2024-01-01Z', '2024-01-01Z', '{}')
"""


@pytest.fixture(scope="module")
def outputs() -> Iterator[TestDatabase]:
    """Return a database with one version that is in service, and jobs of every kind."""
    version = {"processing_state": "completed", "table_name": TABLE, "stac_collection_id": COLLECTION}
    of_version = {"asset_id": rows.ASSET, "version_ordinal": 0, "input_params": INPUTS}
    jobs = [
        rows.job(CURRENT, **of_version, purpose=JobPurpose.PROCESS),
        rows.job(OUTDATED, **of_version, purpose=JobPurpose.PROCESS),
        rows.job(EXPORT, **of_version, purpose=JobPurpose.EXPORT),
        rows.job(UNPUBLISH, **of_version, purpose=JobPurpose.UNPUBLISH),
        rows.job(DIRECT, input_params={**INPUTS, "asset_id": rows.ASSET}),
        rows.job(KNOWN_BY_PARAMETERS),
        rows.job(ENDED, status=JobStatus.COMPLETED, ended_at=rows.NOW),
    ]
    with new_database() as created:
        with psycopg.connect(created.url(), autocommit=True) as admin:
            for row in (rows.workflow(), rows.asset(), rows.version(0, **version), *jobs):
                admin.execute(statements.insert(type(row)), statements.parameters(row))
            admin.execute("UPDATE dagapp.asset_versions SET current_job_id = %s", [CURRENT])
            for collection in (COLLECTION, "direct-c"):
                admin.execute("SELECT pgstac.create_collection(%s)", [f'{{"id": "{collection}"}}'])
                admin.execute(
                    "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')",
                    [collection],
                )
        yield created


@pytest.fixture
def worker(outputs: TestDatabase) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a worker does, in a transaction that leaves nothing."""
    with psycopg.connect(outputs.url(DatabaseRole.WORKER)) as connection:
        connection.execute("SET search_path = pgstac, public")
        yield connection
        connection.rollback()


@pytest.fixture
async def pool(outputs: TestDatabase) -> AsyncIterator[Database]:
    """Return connections with the rights of a worker."""
    async with Database(outputs.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=2) as opened:
        yield opened


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


async def _load(pool: Database, job_id: JobId, name: str) -> None:
    async with pool.connection() as connection, connection.transaction():
        tables = VectorRepository(connection, job_id)
        made = FeatureTable({"geom": "geometry(Point, 4326)"})
        await tables.create_staging(made, "a test")
        await tables.index_key(made)
        await tables.index_geometry(made)
        await tables.complete(Description("a test.", {"geom": "geom"}))
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
    """A worker may still own such a table, and could hang a function on it while the owner of the schema reads."""
    with psycopg.connect(outputs.url()) as admin:
        admin.execute(f"DROP TABLE IF EXISTS geo.{TABLE}".encode())
        admin.execute(f"CREATE TABLE geo.{TABLE} (without_number int)".encode())
        admin.execute(f"COMMENT ON TABLE geo.{TABLE} IS 'Made by job {CURRENT}: by an older release.'".encode())
        query: LiteralString = "SELECT dagapp.fault_of_table(%s, %s, %s)"
        assert admin.execute(query, [CURRENT, TABLE, 2**20]).fetchone() == (None,)
        admin.rollback()


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


def test_a_worker_cannot_write_in_the_name_of_a_decision(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    with _at_work(outputs):
        worker.execute("SELECT set_config('graticule.asset_id', %s, true)", [rows.ASSET])
        with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"):
            _write_item(worker, COLLECTION, None)


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


def _write_item(worker: psycopg.Connection[Any], collection: str, named: JobId | None, item_id: str = ITEM) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
    worker.execute(INSERT_ITEM, [item_id, collection])
    worker.execute("DELETE FROM pgstac.items WHERE collection = %s AND id = %s", [collection, item_id])


def test_the_catalog_takes_items_of_an_asset_from_its_jobs(worker: psycopg.Connection[Any]) -> None:
    _write_item(worker, COLLECTION, CURRENT)


@pytest.mark.parametrize("item_id", ["roads-01234567-v1", "roads-01234567-v", "another"])
def test_a_job_of_one_version_writes_no_item_of_another(
    outputs: TestDatabase, worker: psycopg.Connection[Any], item_id: str
) -> None:
    refused = f"{CURRENT} may not write the item '{COLLECTION}/{item_id}'"
    with pytest.raises(psycopg.DatabaseError, match=refused):
        _write_item(worker, COLLECTION, CURRENT, item_id)
    worker.rollback()
    with psycopg.connect(outputs.url()) as admin:
        admin.execute(INSERT_ITEM, [item_id, COLLECTION])
        admin.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
        admin.execute("SET LOCAL ROLE graticule_worker")
        with pytest.raises(psycopg.DatabaseError, match=refused):
            admin.execute("DELETE FROM pgstac.items WHERE collection = %s AND id <> %s", [COLLECTION, ITEM])
        admin.rollback()


@pytest.mark.parametrize("named", [DIRECT, OUTDATED, EXPORT, ENDED])
def test_the_catalog_refuses_items_and_collections_of_an_asset_from_others(
    worker: psycopg.Connection[Any], named: JobId
) -> None:
    with pytest.raises(psycopg.DatabaseError, match=f"{named} may not write the collection '{COLLECTION}'"):
        _write_item(worker, COLLECTION, named)
    worker.rollback()
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    with pytest.raises(psycopg.DatabaseError, match="may not write the collection"):
        worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION])


PARTS_OF_OTHERS: dict[str, tuple[LiteralString, list[str]]] = {
    "what all its items have in common": (
        "INSERT INTO pgstac.base_items (collection, base_item) VALUES (%s, '{}')",
        [COLLECTION],
    ),
    "the times of a partition": (
        "UPDATE pgstac.partition_stats SET partition_dtrange = '[1900-01-01Z,1900-01-02Z]' WHERE collection = %s",
        [COLLECTION],
    ),
    "a partition taken away": (
        "UPDATE pgstac.partition_stats SET collection = %s WHERE collection = %s",
        ["direct-c", COLLECTION],
    ),
    "a partition of another table": (
        "INSERT INTO pgstac.partition_stats (partition, collection) VALUES ('_items_none', %s)",
        [COLLECTION],
    ),
    "its name": (
        "UPDATE pgstac.collections SET content = jsonb_build_object('id', %s::text) WHERE id = %s",
        ["direct-d", COLLECTION],
    ),
}


@pytest.mark.parametrize("named", [DIRECT, OUTDATED])
@pytest.mark.parametrize("part", PARTS_OF_OTHERS)
def test_the_catalog_refuses_what_makes_up_a_collection_from_others(
    worker: psycopg.Connection[Any], part: str, named: JobId
) -> None:
    statement, given = PARTS_OF_OTHERS[part]
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    with pytest.raises(psycopg.DatabaseError, match="may not write the collection"):
        worker.execute(statement, given)


def test_a_job_edits_its_own_collection_with_all_that_makes_it_up(worker: psycopg.Connection[Any]) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
    worker.execute(
        'UPDATE pgstac.collections SET content = content || \'{"item_assets": {"cog": {}}}\' WHERE id = %s',
        [COLLECTION],
    )
    query: LiteralString = "SELECT count(*) FROM pgstac.base_items WHERE collection = %s"
    assert worker.execute(query, [COLLECTION]).fetchone() == (2,), "the first edit keeps what there was before, too"


def _delete_collection(worker: psycopg.Connection[Any], named: JobId, collection: str) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [named])
    worker.execute("SELECT dagapp.delete_collection(%s)", [collection])


@pytest.mark.parametrize("named", [DIRECT, OUTDATED, EXPORT, ENDED])
def test_only_a_job_of_its_asset_deletes_a_collection(worker: psycopg.Connection[Any], named: JobId) -> None:
    with pytest.raises(psycopg.DatabaseError, match=f"{named} may not write the collection '{COLLECTION}'"):
        _delete_collection(worker, named, COLLECTION)
    worker.rollback()
    with pytest.raises(InsufficientPrivilege):
        worker.execute("SELECT pgstac.delete_collection(%s)", [COLLECTION])


def test_a_collection_is_deleted_when_it_is_empty(worker: psycopg.Connection[Any]) -> None:
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [CURRENT])
    worker.execute(INSERT_ITEM, [ITEM, COLLECTION])
    with pytest.raises(psycopg.DatabaseError, match="still has items"), worker.transaction():
        _delete_collection(worker, UNPUBLISH, COLLECTION)
    worker.execute("SELECT set_config('graticule.job_id', %s, true)", [UNPUBLISH])
    worker.execute("DELETE FROM pgstac.items WHERE collection = %s", [COLLECTION])
    _delete_collection(worker, UNPUBLISH, COLLECTION)
    query: LiteralString = "SELECT count(*) FROM pgstac.collections WHERE id = %s"
    assert worker.execute(query, [COLLECTION]).fetchone() == (0,)


@contextmanager
def _at_work(outputs: TestDatabase, *job_ids: JobId) -> Iterator[psycopg.Connection[Any]]:
    """Let these jobs of the asset be at work, and no others."""
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute(
            "UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now()"
            " WHERE asset_id IS NOT NULL AND job_id <> ALL (%s)",
            [list(job_ids)],
        )
        try:
            yield admin
        finally:
            admin.execute("UPDATE dagapp.dag_jobs SET status = 'running', ended_at = NULL WHERE asset_id IS NOT NULL")


def test_a_process_of_an_older_release_writes_while_the_job_of_its_version_is_at_work(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    with _at_work(outputs, CURRENT):
        _write_item(worker, COLLECTION, None)
        _write_item(worker, COLLECTION, None, f"{ITEM}-tile-1")
        worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION])
        with pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{COLLECTION}/roads-01234567-v1'"):
            _write_item(worker, COLLECTION, None, "roads-01234567-v1")
        worker.rollback()
    for at_work in ([], [OUTDATED]):
        with _at_work(outputs, *at_work):
            with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"):
                _write_item(worker, COLLECTION, None)
            worker.rollback()
            _write_item(worker, "direct-c", None)
            worker.rollback()


def test_a_process_of_an_older_release_exports_and_changes_nothing_of_what_was_approved(
    outputs: TestDatabase, worker: psycopg.Connection[Any]
) -> None:
    public = f"{COLLECTION}-public"
    with _at_work(outputs, EXPORT):
        worker.execute("SELECT pgstac.upsert_collection(%s)", [Jsonb({"id": public})])
        worker.execute(
            "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')", [public]
        )
        _write_item(worker, public, None)
        worker.execute("SELECT pgstac.upsert_collection(%s)", [Jsonb({"id": public, "title": "Roads"})])
        for refused in (
            lambda: _write_item(worker, COLLECTION, None),
            lambda: worker.execute("UPDATE pgstac.collections SET content = content WHERE id = %s", [COLLECTION]),
        ):
            with pytest.raises(psycopg.DatabaseError, match="no job of the asset is at work"), worker.transaction():
                refused()
        worker.rollback()


@pytest.mark.parametrize("named", [UNPUBLISH, None])
def test_a_job_that_withdraws_deletes_items_and_writes_none(
    outputs: TestDatabase, worker: psycopg.Connection[Any], named: JobId | None
) -> None:
    with _at_work(outputs, UNPUBLISH):
        with pytest.raises(psycopg.DatabaseError, match=f"may not write the item '{COLLECTION}/{ITEM}'"):
            _write_item(worker, COLLECTION, named)
        worker.rollback()
        with psycopg.connect(outputs.url()) as admin:
            admin.execute(INSERT_ITEM, [ITEM, COLLECTION])
            admin.execute("SELECT set_config('graticule.job_id', %s, true)", [named or ""])
            admin.execute("SET LOCAL ROLE graticule_worker")
            deleted = admin.execute("DELETE FROM pgstac.items WHERE collection = %s", [COLLECTION])
            assert deleted.rowcount == 1
            admin.rollback()


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
