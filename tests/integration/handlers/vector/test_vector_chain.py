"""A file of features becomes a table of PostGIS: the handlers of `vector_ingest`, one after the other."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import shapely
from psycopg import sql
from tests.conftest import TestDatabase
from tests.integration.handlers.vector.vector_chain import (
    FILE,
    JOB,
    OTHER_JOB,
    SQUARES,
    TABLE,
    Chain,
    begin_job,
    codes,
    output_of,
    write_features,
)
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows

from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.handlers.context import Signals
from graticule.handlers.vector import loading
from graticule.handlers.vector.preparing.bounds import Bounds
from graticule.repositories import statements, vectors
from graticule.repositories.database import Database

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY tablename"
STAGED = [(f"staging_{JOB}",), (f"staging_{JOB}_chunks",)]
COUNT = f"SELECT count(*) FROM geo.staging_{JOB}"
COMMENT = f"SELECT obj_description('geo.{TABLE}'::regclass, 'pg_class')"


@pytest.fixture
async def chain(emptied_database: TestDatabase, tmp_path: Path) -> AsyncIterator[Chain]:
    """Give the handlers of two jobs that run; the tables that they make are dropped after the test."""
    with psycopg.connect(emptied_database.url(DatabaseRole.ORCHESTRATOR)) as connection:
        workflow = rows.workflow()
        connection.execute(statements.insert(type(workflow)), statements.parameters(workflow))
    for job_id in (JOB, OTHER_JOB):
        begin_job(emptied_database.url(DatabaseRole.ORCHESTRATOR), job_id)
    async with Database(emptied_database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=6) as database:
        yield Chain(tmp_path, database)
    with psycopg.connect(emptied_database.url(), autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("geo", table)))


@pytest.fixture
def looking(tmp_path: Path) -> Chain:
    """Give what `vector.validate` needs, which knows no database."""
    return Chain(tmp_path, None)  # type: ignore[arg-type]


def asked(database: TestDatabase, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url(DatabaseRole.WORKER)) as connection:
        return connection.execute(query.encode()).fetchall()


def done(database: TestDatabase, *statements: str) -> None:
    with psycopg.connect(database.url(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def test_a_file_becomes_a_table_in_degrees(chain: Chain, emptied_database: TestDatabase) -> None:
    fields = {
        "Parcel No.": np.array(["a", "b\t\\", None, "d", "ü"], dtype=object),
        "parcel-no": np.array([1, 2, 3, 4, 5], dtype=np.int32),
        "fid_of_others": np.array([1, 2, 3, 4, 2**40], dtype=np.int64),
        "area": np.array([0.5, np.nan, 2, 3, 4]),
        "kept": np.array([True, False, True, True, False]),
        "surveyed": np.array(["2024-05-01"] * 5, dtype="datetime64[D]"),
    }
    data = write_features(chain.folder / FILE, SQUARES, fields)
    result = await chain.run(rows_per_chunk=2)
    assert (result["table_name"], result["row_count"], result["srid"]) == (TABLE, 5, 4326)
    assert (result["shape"], result["repaired"], result["divided"]) == ("MultiPolygon", 0, 0)
    assert result["content_hash"] == hashlib.sha256(data).hexdigest()
    facts = result["validation"]["facts"]
    assert (facts["repaired"], facts["divided"]) == (0, 0)
    assert result["bbox"] == pytest.approx([-62.0721, 14.4706, -62.0266, 14.4790], abs=1e-3)
    assert result["column_details"][0] == {"name": "parcel_no", "field": "Parcel No.", "type": "text"}
    assert (chain.told[-1]["message"], chain.told[-1]["percent"]) == ("features", 100.0)
    types = asked(
        emptied_database,
        "SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute"
        f" WHERE attrelid = 'geo.{TABLE}'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert types == [
        ("fid", "bigint", None),
        ("parcel_no", "text", "Parcel No."),
        ("parcel_no_2", "integer", "parcel-no"),
        ("fid_of_others", "bigint", "fid_of_others"),
        ("area", "double precision", "area"),
        ("kept", "boolean", "kept"),
        ("surveyed", "date", "surveyed"),
        ("geom", "geometry(MultiPolygon,4326)", None),
    ]
    assert {name: kind.replace(", ", ",") for name, kind in result["columns"].items()} == {
        name: kind for name, kind, _ in types[1:]
    }
    found = asked(
        emptied_database,
        f"SELECT fid, parcel_no, fid_of_others, area, kept, surveyed::text FROM geo.{TABLE} ORDER BY fid",
    )
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    assert found[0] == (1, "a", 1, 0.5, True, "2024-05-01")
    assert [row[1] for row in found] == ["a", "b\t\\", None, "d", "ü"]
    assert found[1][3] is None
    assert found[4][2] == 2**40


async def test_geometries_lie_where_postgis_would_put_them(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    sent = ", ".join(f"({number}, 'SRID=32620;{square.wkt}'::geometry)" for number, square in enumerate(SQUARES))
    distances = asked(
        emptied_database,
        f"SELECT ST_HausdorffDistance(geom, ST_Transform(sent, 4326)) FROM (VALUES {sent}) AS given (n, sent)"
        f" JOIN geo.{TABLE} USING (n)",
    )
    assert [distance for (distance,) in distances] == pytest.approx([0] * len(SQUARES), abs=1e-9)


async def test_the_table_is_ready_for_use(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    indexes = asked(
        emptied_database,
        "SELECT amname, indisprimary FROM pg_index JOIN pg_class ON oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
        f" WHERE indrelid = 'geo.{TABLE}'::regclass ORDER BY amname",
    )
    assert indexes == [("btree", True), ("gist", False)]
    known = f"SELECT attname FROM pg_stats WHERE schemaname = 'geo' AND tablename = '{TABLE}' ORDER BY attname"
    assert asked(emptied_database, known) == [("fid",), ("geom",), ("n",)]
    assert asked(emptied_database, TABLES) == [(TABLE,)]
    assert asked(emptied_database, f"SELECT reloptions FROM pg_class WHERE oid = 'geo.{TABLE}'::regclass") == [(None,)]
    ((hash_of_rows,),) = asked(emptied_database, f"SELECT dagapp.hash_rows('geo', '{TABLE}')")
    assert asked(emptied_database, COMMENT) == [
        (f"Made by job {JOB}: 5 rows of the layer 'parcels' of {FILE}, in EPSG:4326. Content: {hash_of_rows}.",)
    ]


async def test_each_step_may_run_twice(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source(rows_per_chunk=2)
    first = await chain.prepare(source)
    data = (chain.folder / FILE).read_bytes()
    (chain.folder / FILE).unlink()  # what is loaded is not read again
    assert await chain.prepare(source) == first
    chain.put(FILE, data)
    assert asked(emptied_database, COUNT) == [(5,)]
    published = output_of(await chain.finalize(source, first))
    assert output_of(await chain.finalize(source, first)) == published
    assert asked(emptied_database, f"SELECT count(*) FROM geo.{TABLE}") == [(5,)]


async def test_the_hash_of_a_table_is_of_its_rows(chain: Chain, emptied_database: TestDatabase) -> None:
    hashes = []
    for last in ("e", "f", "e"):
        fields = {"name": np.array(["a", "b", "c", "d", last], dtype=object)}
        write_features(chain.folder / FILE, SQUARES, fields)
        hashes.append((await chain.run(rows_per_chunk=2))["table_hash"])
        assert asked(emptied_database, f"SELECT dagapp.hash_rows('geo', '{TABLE}')") == [(hashes[-1],)]
    assert hashes[0] == hashes[2] != hashes[1]


async def test_chunks_may_come_in_any_order_and_at_once(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source(rows_per_chunk=1)
    output_of(await chain.stage(source))
    results = await asyncio.gather(*(chain.load(source, index) for index in (4, 0, 3, 1, 2)))
    loaded = [output_of(result) for result in results]
    output_of(await chain.finalize(source, sorted(loaded, key=lambda each: each["chunk"])))
    assert asked(emptied_database, f"SELECT fid, n FROM geo.{TABLE} ORDER BY fid") == [(n + 1, n) for n in range(5)]


async def test_a_chunk_whose_answer_was_lost_is_not_doubled(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    output_of(await chain.stage(source))
    chain.lost = "commit"
    result = await chain.load(source)
    assert (result.error_message, result.retryable) == ("The answer was lost.", True)
    assert asked(emptied_database, COUNT) == [(5,)]
    chain.lost = None
    assert output_of(await chain.load(source))["row_count"] == 5
    assert asked(emptied_database, COUNT) == [(5,)]


async def test_two_attempts_at_a_chunk_at_once_load_it_once(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    output_of(await chain.stage(source))
    results = await asyncio.gather(chain.load(source), chain.load(source))
    assert any(result.error_message is None for result in results)
    assert all(result.retryable for result in results)
    assert asked(emptied_database, COUNT) == [(5,)]


async def test_an_attempt_that_lost_its_task_changes_nothing(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    loaded = await chain.prepare(source)
    done(emptied_database, "UPDATE dagapp.dag_tasks SET delivery_count = 2")
    other = {**source, "etag": "another"}
    for step in (chain.stage(other), chain.finalize(source, loaded)):
        with pytest.raises(vectors.LeaseLost):
            await step
    assert asked(emptied_database, TABLES) == STAGED
    done(emptied_database, f"TRUNCATE geo.staging_{JOB}, geo.staging_{JOB}_chunks")
    assert "no longer this worker's" in str((await chain.load(source)).error_message)
    assert asked(emptied_database, COUNT) == [(0,)]


async def test_a_later_run_takes_the_place_of_the_table(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    write_features(chain.folder / FILE, SQUARES[:2])
    assert (await chain.run())["row_count"] == 2  # the same job, begun anew
    assert asked(emptied_database, f"SELECT count(*) FROM geo.{TABLE}") == [(2,)]


async def test_what_was_loaded_of_another_source_does_not_count(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.prepare(chain.source())
    write_features(chain.folder / FILE, SQUARES[:2])
    assert (await chain.run())["row_count"] == 2
    assert asked(emptied_database, TABLES) == [(TABLE,)]


async def test_geometries_of_many_kinds_and_the_projection_that_is_wanted(
    chain: Chain, emptied_database: TestDatabase
) -> None:
    shapes: list[dict[str, Any]] = [
        {"type": "Point", "coordinates": [-62, 14]},
        {"type": "LineString", "coordinates": [[-62, 14], [-61, 15]]},
    ]
    features: list[dict[str, Any]] = [
        {"type": "Feature", "properties": {"tags": ["a", "b"]}, "geometry": shape} for shape in [*shapes, None]
    ]
    chain.put(FILE, json.dumps({"type": "FeatureCollection", "features": features}).encode())
    result = await chain.run(target_crs="EPSG:3857")
    assert result["bbox"] == pytest.approx([-62, 14, -61, 15])
    found = asked(
        emptied_database, f"SELECT GeometryType(geom), ST_SRID(geom), tags::text FROM geo.{TABLE} ORDER BY fid"
    )
    assert [row[:2] for row in found] == [("MULTIPOINT", 3857), ("MULTILINESTRING", 3857), (None, None)]
    assert json.loads(found[0][2]) == ["a", "b"]


@pytest.mark.parametrize(
    ("crs", "bounds", "of_source", "bbox"),
    [
        ("EPSG:4326", (170.0, -5.0, 190.0, 5.0), [169, -6, -169, 6], [170, -5, -170, 5]),
        ("EPSG:4167", (170.0, -5.0, 190.0, 5.0), [169, -6, -169, 6], [170, -5, -170, 5]),
        ("EPSG:4326", (181.0, -5.0, 182.0, 5.0), [179.9, -6, -178, 6], [-179, -5, -178, 5]),
        ("EPSG:4326", (-10.0, -5.0, 10.0, 5.0), [-10, -5, 10, 5], [-10, -5, 10, 5]),
        ("EPSG:3832", (2226389.0, 0.0, 4452779.0, 1000.0), [170, 0, -170, 0.1], [170, 0, -170, 0.009]),
        ("EPSG:3857", (0.0, 0.0, 111319.5, 111325.1), [0, 0, 1, 1], [0, 0, 1, 1]),
    ],
    ids=["divided", "in another datum", "less than it seemed", "plain", "across in meters", "meters"],
)
def test_bounds_cross_the_antimeridian_as_the_source_does(
    crs: str, bounds: Bounds, of_source: list[float], bbox: list[float]
) -> None:
    assert loading.bbox_of([None, bounds], crs, of_source) == pytest.approx(bbox, abs=1e-3)
    assert loading.bbox_of([None], crs, of_source) is None


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_file_that_changes_is_rejected_and_leaves_nothing(
    chain: Chain, emptied_database: TestDatabase, when: str
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    output_of(await chain.stage(source))
    if when == "before":
        chain.put(FILE, b"something else")
    else:
        chain.report = lambda _: chain.put(FILE, b"something else")
    result = await chain.load(source)
    assert codes(result) == ["source_changed"]
    assert not result.retryable
    assert asked(emptied_database, COUNT) == [(0,)]


@pytest.mark.parametrize("signals", [Signals(cancelled=True), Signals(shutdown_requested=True)], ids=["cancel", "stop"])
async def test_a_load_that_is_not_wanted_any_more_ends(
    chain: Chain, emptied_database: TestDatabase, signals: Signals
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    output_of(await chain.stage(source))
    chain.signals = signals
    result = await chain.load(source)
    assert result.is_interrupted is signals.shutdown_requested
    assert (result.error_message == "cancelled") is signals.cancelled
    assert asked(emptied_database, COUNT) == [(0,)]


async def test_a_chunk_with_other_rows_than_it_was_to_have_is_rejected(
    chain: Chain, emptied_database: TestDatabase
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source(rows_per_chunk=2)
    output_of(await chain.stage(source))
    source["chunks"][1]["row_count"] = 3
    result = await chain.load(source, 1)
    assert codes(result) == ["corrupt"]
    assert "3 features, and 2 can be read" in str(result.error_message)
    assert asked(emptied_database, COUNT) == [(0,)]


@pytest.mark.parametrize(
    ("state", "told", "retryable"),
    [("53100", "the database has no room left on its disk. Make room", True), ("22008", "A value does not fit", False)],
    ids=["full disk", "unfit value"],
)
async def test_what_the_database_refuses_in_the_middle_leaves_nothing(
    chain: Chain, emptied_database: TestDatabase, state: str, told: str, retryable: bool
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    output_of(await chain.stage(source))
    done(
        emptied_database,
        "CREATE FUNCTION geo.fails() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$",
        f"CREATE TRIGGER fails BEFORE INSERT ON geo.staging_{JOB} FOR EACH ROW WHEN (new.fid = 4)"
        " EXECUTE FUNCTION geo.fails()",
    )
    result = await chain.load(source)
    done(emptied_database, "DROP FUNCTION geo.fails CASCADE")
    assert told in str(result.error_message)
    assert result.retryable is retryable
    assert asked(emptied_database, COUNT) == [(0,)]


async def test_nothing_is_published_before_all_chunks_are_loaded(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source(rows_per_chunk=2)
    output_of(await chain.stage(source))
    loaded = [output_of(await chain.load(source, 0))]
    result = await chain.finalize(source, loaded)
    assert result.error_message == "2 of 3 chunks are not loaded: 1, 2. Let the job load them again."
    assert not result.retryable
    rest = await chain.load_all(source)
    done(emptied_database, f"UPDATE geo.staging_{JOB}_chunks SET row_count = 3 WHERE chunk = 0")
    result = await chain.finalize(source, rest)
    assert result.error_message == "The source has 5 features, and 6 are loaded."
    assert asked(emptied_database, TABLES) == STAGED
    done(emptied_database, f"DROP TABLE geo.staging_{JOB}")
    result = await chain.finalize(source, rest)
    assert "The loaded table is gone" in str(result.error_message)


async def test_a_long_reader_delays_the_swap_and_no_other_reader(
    chain: Chain, emptied_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(loading, "BETWEEN_TRIES_SECONDS", 0.05)
    monkeypatch.setattr(loading, "TRIES", 4)
    write_features(chain.folder / FILE, SQUARES[:2])
    await chain.run()
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    loaded = await chain.prepare(source)
    count = f"SELECT count(*) FROM geo.{TABLE}"
    url = emptied_database.url(DatabaseRole.SERVE_INTERNAL)
    async with await psycopg.AsyncConnection.connect(url) as reader:
        await reader.execute(count.encode())
        swapping = asyncio.create_task(chain.finalize(source, loaded))
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
            await other.execute("SET statement_timeout = '2s'")
            while not swapping.done():
                found = await (await other.execute(count.encode())).fetchone()
                assert found == (2,)
                await asyncio.sleep(0.01)
        result = await swapping
        assert (result.retryable, "is being read without a pause" in str(result.error_message)) == (True, True)
        swapping = asyncio.create_task(chain.finalize(source, loaded))
        await asyncio.sleep(0)
        await reader.rollback()
        output_of(await swapping)
    assert asked(emptied_database, count) == [(5,)]
    assert asked(emptied_database, TABLES) == [(TABLE,)]


async def test_two_jobs_that_load_one_table_at_once_do_not_mix(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    other_file = "bronze/island/others.gpkg"
    write_features(chain.folder / other_file, SQUARES[:2], {"m": np.array([7, 8])})
    other = Chain(chain.folder, chain.database, job_id=OTHER_JOB)
    sources = [chain.source(rows_per_chunk=2), other.source(path=other_file)]
    prepared = await asyncio.gather(chain.prepare(sources[0]), other.prepare(sources[1]))
    results = await asyncio.gather(chain.finalize(sources[0], prepared[0]), other.finalize(sources[1], prepared[1]))
    assert [output_of(result)["row_count"] for result in results] == [5, 2]
    assert asked(emptied_database, TABLES) == [(TABLE,)]
    ((comment,),) = asked(emptied_database, COMMENT)
    count = 5 if JOB in comment else 2
    assert asked(emptied_database, f"SELECT count(*) FROM geo.{TABLE}") == [(count,)]


async def test_of_two_swaps_to_a_name_that_is_new_one_waits(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    for chain.job_id in (JOB, OTHER_JOB):
        await chain.prepare(chain.source())
    described, table = vectors.Description("a test", {}), vectors.FeatureTable({})
    async with chain.database.connection() as one, chain.database.connection() as two:
        first, second = vectors.VectorRepository(one, JOB), vectors.VectorRepository(two, OTHER_JOB)
        for tables in (first, second):
            await tables.index_key(table)
            await tables.index_geometry(table)
        async with two.transaction():
            async with one.transaction():
                assert await first.complete(described)
                assert await second.complete(described)
                assert await first.swap(TABLE)
                waits = await (await one.execute("SHOW lock_timeout")).fetchone()
                assert waits == {"lock_timeout": "0"}, "who holds the lease next waits as long as anyone"
                swapping = asyncio.create_task(second.swap(TABLE))
                await waiting_for_a_lock(one)
            assert await swapping
        assert (await first.is_live(TABLE), await second.is_live(TABLE)) == (False, True)
    assert asked(emptied_database, TABLES) == [(TABLE,)]


async def test_a_stage_that_waits_keeps_no_lease_from_being_renewed(
    chain: Chain, emptied_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    await chain.prepare(source)
    other = {**source, "etag": "another"}
    with psycopg.connect(emptied_database.url(DatabaseRole.WORKER)) as loading_still:
        loading_still.execute(f"INSERT INTO geo.staging_{JOB} (fid) VALUES (9)".encode())
        staging = asyncio.create_task(chain.stage(other))
        async with chain.database.connection() as renewing, renewing.transaction():
            await waiting_for_a_lock(renewing)
            await renewing.execute("SET LOCAL lock_timeout = '300ms'")
            await renewing.execute("UPDATE dagapp.dag_tasks SET lease_expires_at = now() + interval '60 s'")
        loading_still.rollback()
        output_of(await staging)
        assert asked(emptied_database, COUNT) == [(0,)]
        monkeypatch.setattr(vectors, "LOCK_TIMEOUT", "20ms")
        monkeypatch.setattr(loading, "BETWEEN_TRIES_SECONDS", 0.01)
        loading_still.execute(f"INSERT INTO geo.staging_{JOB} (fid) VALUES (9)".encode())
        result = await chain.stage(source)
    assert result.error_message == "An earlier attempt of this job still loads its table. Try again later."
    assert result.retryable


async def test_of_two_attempts_to_index_one_waits_and_finds_it_done(
    chain: Chain, emptied_database: TestDatabase
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    loaded = await chain.prepare(source)
    async with chain.database.connection() as one:
        async with one.transaction():
            await vectors.VectorRepository(one, JOB).index_key(vectors.FeatureTable({}))
            finalizing = asyncio.create_task(chain.finalize(source, loaded))
            await waiting_for_a_lock(one)
        assert output_of(await finalizing)["row_count"] == 5
        await vectors.VectorRepository(one, JOB).index_key(vectors.FeatureTable({}))  # when it is published by another
    assert asked(emptied_database, TABLES) == [(TABLE,)]


async def test_a_view_on_the_live_table_is_told_and_not_tried_again(
    chain: Chain, emptied_database: TestDatabase
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    chain.job_id = OTHER_JOB
    source = chain.source()
    loaded = await chain.prepare(source)
    done(emptied_database, f"CREATE VIEW geo.looking AS SELECT * FROM geo.{TABLE}")
    result = await chain.finalize(source, loaded)
    done(emptied_database, "DROP VIEW geo.looking")
    assert "such as a view, depends on it. Drop what depends on it" in str(result.error_message)
    assert not result.retryable
    output_of(await chain.finalize(source, loaded))


async def test_a_table_is_not_for_the_service_before_it_is_whole(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.source()
    loaded = await chain.prepare(source)
    with psycopg.connect(emptied_database.url(DatabaseRole.SERVE_INTERNAL), autocommit=True) as service:
        for (table,) in STAGED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                service.execute(f"SELECT FROM geo.{table}".encode())
        output_of(await chain.finalize(source, loaded))
        assert service.execute(f"SELECT count(*) FROM geo.{TABLE}".encode()).fetchall() == [(5,)]


async def test_more_fields_than_a_row_can_hold_are_told_as_such(chain: Chain) -> None:
    fields = {f"f{n}": np.array(["x" * 18], dtype=object) for n in range(1000)}
    write_features(chain.folder / FILE, SQUARES[:1], fields)
    source = chain.source()
    output_of(await chain.stage(source))
    result = await chain.load(source)
    assert codes(result) == ["too_many_fields"]
    assert "A row of these 1000 fields needs more room" in str(result.error_message)
    assert not result.retryable


@pytest.mark.parametrize(
    ("days", "is_kept"),
    [(None, True), (6, True), (8, False), ("gone", False)],
    ids=["running", "to be resumed", "long ago", "pruned"],
)
async def test_a_job_that_may_go_on_keeps_what_it_has_loaded(
    chain: Chain, emptied_database: TestDatabase, days: int | str | None, is_kept: bool
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.prepare(chain.source())
    done(emptied_database, f"DELETE FROM dagapp.dag_jobs WHERE job_id = '{JOB}'")
    if days != "gone":
        ended = {} if days is None else {"status": JobStatus.CANCELLED, "ended_at": datetime.now(UTC) - timedelta(days)}  # type: ignore[arg-type]
        begin_job(emptied_database.url(DatabaseRole.ORCHESTRATOR), JOB, **ended)
    chain.job_id = OTHER_JOB
    await chain.run()
    assert asked(emptied_database, TABLES) == [(TABLE,), *(STAGED if is_kept else [])]


async def test_an_abandoned_table_that_someone_holds_is_left_for_later(
    chain: Chain, emptied_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "LOCK_TIMEOUT", "50ms")
    write_features(chain.folder / FILE, SQUARES)
    await chain.prepare(chain.source())
    done(emptied_database, f"DELETE FROM dagapp.dag_jobs WHERE job_id = '{JOB}'")
    chain.job_id = OTHER_JOB
    with psycopg.connect(emptied_database.url(DatabaseRole.WORKER)) as holder:
        holder.execute(COUNT.encode())
        await chain.run()
    assert asked(emptied_database, TABLES) == [(TABLE,), *STAGED]


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": [{"field": "n", "name": "n", "type": "text); DROP SCHEMA geo; --"}]},
        {"columns": [{"field": "n", "name": 'n" text', "type": "text"}]},
        {"shape": {"type": "MultiPoint, 4326)); --"}},
    ],
    ids=["type", "name", "geometry"],
)
def test_what_a_table_is_made_of_is_checked(looking: Chain, changed: dict[str, Any]) -> None:
    write_features(looking.folder / FILE, SQUARES)
    source = looking.source()
    loading.Stage(source=source)
    with pytest.raises(ValueError, match="validation error"):
        loading.Stage(source={**source, **changed})
    with pytest.raises(ValueError, match="pattern"):
        loading.Stage(source=source, target_crs="EPSG:4326)); --")


VRT = '<OGRVRTDataSource><OGRVRTLayer name="a"><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer>'


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"plain text", "not_a_vector"),
        (VRT.encode(), "not_a_vector"),
        (b"{ \n" + VRT.encode(), "not_a_vector"),
        (b'{"type": "Topology", "arcs": [], "objects": {}}', "no_layer"),
        (b"SQLite format 3\x00" + bytes(600), "not_a_vector"),
        (b'{"type": "FeatureCollection", "features": [{', "corrupt"),
        (b'{"type": "FeatureCollection", "features": []}', "no_features"),
    ],
    ids=["empty", "text", "vrt", "vrt in disguise", "topology", "sqlite", "truncated", "no features"],
)
def test_what_is_no_file_of_features_is_rejected(looking: Chain, data: bytes, code: str) -> None:
    looking.put(FILE, data)
    result = looking.validate()
    assert codes(result) == [code]
    assert not result.retryable


def test_a_file_that_is_not_there_is_told_to_the_partner(looking: Chain) -> None:
    assert codes(looking.validate()) == ["not_found"]


def test_a_truncated_geopackage_is_rejected(looking: Chain) -> None:
    data = write_features(looking.folder / FILE, SQUARES)
    looking.put(FILE, data[: len(data) // 3])
    assert codes(looking.validate()) == ["corrupt"]


def test_a_layer_that_lies_nowhere_is_rejected(looking: Chain) -> None:
    with pytest.warns(UserWarning, match="crs"):
        write_features(looking.folder / FILE, SQUARES, crs=None)
    assert codes(looking.validate()) == ["no_crs"]
    (looking.folder / FILE).unlink()
    write_features(looking.folder / FILE, [shapely.box(1e8, 1e8, 1e9, 1e9)])
    assert codes(looking.validate()) == ["absurd_bounds"]


def test_one_of_several_layers_has_to_be_named(looking: Chain) -> None:
    write_features(looking.folder / FILE, SQUARES)
    write_features(looking.folder / FILE, SQUARES[:2], layer="other", append=True)
    assert codes(looking.validate()) == ["several_layers"]
    assert codes(looking.validate(layer="none")) == ["unknown_layer"]
    output: Any = looking.validate(layer="other").output
    assert (output["opening"]["layer"], output["feature_count"]) == ("other", 2)
