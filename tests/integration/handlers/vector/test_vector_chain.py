"""A file of features becomes a table of PostGIS: the handlers of `vector_ingest`, one after the other."""

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
from tests.integration.handlers.vector.vector_chain import FILE, JOB, SQUARES, Chain, codes, write_features
from tests.integration.repositories import rows

from graticule.core.ids import JobId
from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.handlers.context import Signals
from graticule.handlers.vector import loading
from graticule.repositories import statements
from graticule.repositories.database import Database

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo'"


@pytest.fixture
async def chain(emptied_database: TestDatabase, tmp_path: Path) -> AsyncIterator[Chain]:
    """Give the handlers; the tables that they make are dropped after the test."""
    async with Database(emptied_database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=2) as database:
        yield Chain(tmp_path, database)
    with psycopg.connect(emptied_database.url(DatabaseRole.WORKER), autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("geo", table)))


@pytest.fixture
def looking(tmp_path: Path) -> Chain:
    """Give what `vector.validate` needs, which knows no database."""
    return Chain(tmp_path, None)  # type: ignore[arg-type]


def asked(database: TestDatabase, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url(DatabaseRole.WORKER)) as connection:
        return connection.execute(query.encode()).fetchall()


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
    result = await chain.run()
    assert (result["table_name"], result["row_count"]) == ("parcels_v0", 5)
    assert result["content_hash"] == hashlib.sha256(data).hexdigest()
    assert result["validation"]["facts"]["crs"] == "WGS 84 / UTM zone 20N"
    assert result["bbox"] == pytest.approx([-62.0721, 14.4706, -62.0266, 14.4790], abs=1e-3)
    told = [(each["message"], each["percent"]) for each in chain.told]
    assert told[-2:] == [("features", 100.0), ("bytes", 100.0)]
    assert not list(chain.folder.glob("silver/*"))
    types = asked(
        emptied_database,
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'geo.parcels_v0'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert types == [
        ("fid", "bigint"),
        ("parcel_no", "text"),
        ("parcel_no_2", "integer"),
        ("fid_of_others", "bigint"),
        ("area", "double precision"),
        ("kept", "boolean"),
        ("surveyed", "date"),
        ("geom", "geometry(MultiPolygon,4326)"),
    ]
    found = asked(
        emptied_database, "SELECT fid, parcel_no, fid_of_others, area, kept, surveyed::text FROM geo.parcels_v0"
    )
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
        " JOIN geo.parcels_v0 USING (n)",
    )
    assert [distance for (distance,) in distances] == pytest.approx([0] * len(SQUARES), abs=1e-9)


async def test_the_table_is_ready_for_use(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    indexes = asked(
        emptied_database,
        "SELECT amname, indisprimary FROM pg_index JOIN pg_class ON oid = indexrelid JOIN pg_am ON pg_am.oid = relam"
        " WHERE indrelid = 'geo.parcels_v0'::regclass ORDER BY amname",
    )
    assert indexes == [("btree", True), ("gist", False)]
    known = "SELECT attname FROM pg_stats WHERE schemaname = 'geo' AND tablename = 'parcels_v0' ORDER BY attname"
    assert asked(emptied_database, known) == [("fid",), ("geom",), ("n",)]
    assert asked(emptied_database, TABLES) == [("parcels_v0",)]


async def test_each_step_may_run_twice(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.validate().output
    chain.read(source)
    features = chain.read(source).output
    await chain.load(features)
    loaded = (await chain.load(features)).output
    first = await chain.finalize(source, loaded)
    assert first.output is not None
    assert (await chain.finalize(source, loaded)).output == first.output
    assert asked(emptied_database, "SELECT count(*) FROM geo.parcels_v0") == [(5,)]


async def test_a_later_run_takes_the_place_of_the_table(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.run()
    write_features(chain.folder / FILE, SQUARES[:2])
    assert (await chain.run())["row_count"] == 2
    assert asked(emptied_database, "SELECT count(*) FROM geo.parcels_v0") == [(2,)]


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
        emptied_database, "SELECT GeometryType(geom), ST_SRID(geom), tags::text FROM geo.parcels_v0 ORDER BY fid"
    )
    assert [row[:2] for row in found] == [("MULTIPOINT", 3857), ("MULTILINESTRING", 3857), (None, None)]
    assert json.loads(found[0][2]) == ["a", "b"]


async def test_heights_are_kept(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, [shapely.Point(600_000, 1_600_000, 12.5)], geometry_type="Point Z")
    await chain.run()
    assert asked(emptied_database, "SELECT ST_Z(ST_GeometryN(geom, 1)), ST_NDims(geom) FROM geo.parcels_v0") == [
        (12.5, 3)
    ]


def test_a_file_that_was_changed_is_rejected(looking: Chain) -> None:
    write_features(looking.folder / FILE, SQUARES)
    source = looking.validate().output
    looking.put(FILE, b"something else")
    assert codes(looking.read(source)) == ["source_changed"]


def test_a_file_that_changes_while_it_is_read_leaves_nothing(looking: Chain) -> None:
    write_features(looking.folder / FILE, SQUARES)
    source = looking.validate().output
    looking.report = lambda _: looking.put(FILE, b"something else")
    result = looking.read(source)
    assert codes(result) == ["source_changed"]
    assert not result.retryable
    assert not [file for file in looking.folder.rglob("silver/**/*") if file.is_file()]


@pytest.mark.parametrize("signals", [Signals(cancelled=True), Signals(shutdown_requested=True)], ids=["cancel", "stop"])
async def test_a_load_that_is_not_wanted_any_more_ends(
    chain: Chain, emptied_database: TestDatabase, signals: Signals
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    source = chain.validate().output
    features = chain.read(source).output
    chain.signals = signals
    for result in (chain.read(source), await chain.load(features)):
        assert result.is_interrupted is signals.shutdown_requested
        assert (result.error_message == "cancelled") is signals.cancelled
    assert asked(emptied_database, TABLES) == []


async def test_a_load_without_its_features_or_with_others_fails(chain: Chain, emptied_database: TestDatabase) -> None:
    write_features(chain.folder / FILE, SQUARES)
    features: Any = chain.read(chain.validate().output).output
    result = await chain.load({**features, "row_count": 6})
    assert result.error_message == "6 features were read, but 5 loaded."
    (written,) = chain.folder.glob("silver/*/features.copy")
    written.write_bytes(written.read_bytes().replace(b"1\t", b"one\t"))
    assert codes(await chain.load(features)) == ["unfit_value"]
    written.unlink()
    result = await chain.load(features)
    assert (result.retryable, result.error_message) == (False, "The features are gone; read them again.")
    assert asked(emptied_database, TABLES) == []


@pytest.mark.parametrize(
    "column",
    [("n", "text); DROP SCHEMA geo; --"), ('n" text', "text"), ("g", "geometry(MultiPoint, 4326)); --")],
    ids=["type", "name", "geometry"],
)
def test_what_a_table_is_made_of_is_checked(column: tuple[str, str]) -> None:
    given = [{"name": column[0], "type": column[1]}]
    with pytest.raises(ValueError, match="pattern"):
        loading.Load.model_validate({"features": {"row_count": 1, "columns": given}})


async def test_tables_that_were_never_published_are_dropped_by_a_later_load(
    chain: Chain, emptied_database: TestDatabase
) -> None:
    write_features(chain.folder / FILE, SQUARES)
    await chain.load(chain.read(chain.validate().output).output)
    chain.job_id = JobId("f" * 32)
    await chain.run()
    assert asked(emptied_database, TABLES) == [("parcels_v0",)]


@pytest.mark.parametrize(
    ("days", "is_kept"), [(None, True), (6, True), (8, False)], ids=["running", "to be resumed", "long ago"]
)
async def test_a_job_that_may_go_on_keeps_what_it_has_loaded(
    chain: Chain, emptied_database: TestDatabase, days: int | None, is_kept: bool
) -> None:
    ended = {} if days is None else {"status": JobStatus.CANCELLED, "ended_at": datetime.now(UTC) - timedelta(days)}
    with psycopg.connect(emptied_database.url(DatabaseRole.ORCHESTRATOR)) as connection:
        for row in (rows.workflow(), rows.job(JOB, **ended)):
            connection.execute(statements.insert(type(row)), statements.parameters(row))
    write_features(chain.folder / FILE, SQUARES)
    await chain.load(chain.read(chain.validate().output).output)
    chain.job_id = JobId("f" * 32)
    await chain.run()
    assert ((f"staging_{JOB}",) in asked(emptied_database, TABLES)) is is_kept


VRT = '<OGRVRTDataSource><OGRVRTLayer name="a"><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer>'


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"plain text", "not_a_vector"),
        (VRT.encode(), "not_a_vector"),
        (b"{ \n" + VRT.encode(), "not_a_vector"),
        (b'{"type": "Topology", "arcs": [], "objects": {}}', "not_a_vector"),
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
    assert (output["layer"], output["feature_count"]) == ("other", 2)
