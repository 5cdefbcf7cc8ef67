"""What is written for COPY is what PostgreSQL and PostGIS read."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any, get_args

import psycopg
import pyarrow as pa
import pytest
import shapely
from psycopg import sql
from tests.conftest import SharedDatabase

from graticule.handlers.vector.described import Column, ColumnType, Shape
from graticule.handlers.vector.preparing.attributes import ARROW_TYPES, converted
from graticule.handlers.vector.preparing.copy_format import CopyWriter
from graticule.handlers.vector.preparing.geometries import Preparer, target_crs

NAIVE = datetime(1, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001 - a time without a zone
VALUES: dict[ColumnType, list[Any]] = {
    "boolean": [True, False],
    "smallint": [-32768, 32767],
    "integer": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "numeric": [
        *map(Decimal, ("0", "1", "-1", "10000", "99990000", "0.1", "-0.0001", "0.00012", "123456.789", "-12345.6")),
        *map(Decimal, (str(2**64 - 1), "0.000000000000000001", "99999999999999999999.999999999999999999")),
    ],
    "real": [0.10000000149011612, float("-inf")],
    "double precision": [0.1, -1e308, float("inf")],
    "date": [date(1, 1, 1), date(1999, 12, 31), date(9999, 12, 31)],
    "time": [time(0), time(23, 59, 59, 999999)],
    "timestamp": [NAIVE, NAIVE.replace(year=9999)],
    "timestamptz": [datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)],
    "bytea": [b"", b"\0\xff"],
    "jsonb": ['{"a": [9223372036854775807, "ü"]}', "null"],
    "text": ["", "Größe\t\n\\N 😀"],
}


@pytest.fixture(scope="module")
def connection(shared_clone: SharedDatabase) -> Any:
    with psycopg.connect(shared_clone.database.url(), autocommit=True) as opened:
        opened.execute("SET TimeZone = 'America/Barbados'")
        yield opened


def loaded(connection: psycopg.Connection, columns: list[Column], batches: list[pa.RecordBatch], geometry: str) -> None:
    """Fill a table of this session."""
    plain = [sql.SQL("{} {}").format(sql.Identifier(each.name), sql.SQL(each.type)) for each in columns]
    parts = [sql.SQL("fid bigint"), *plain, sql.SQL("geom geometry({})").format(sql.SQL(geometry))]
    connection.execute("DROP TABLE IF EXISTS pg_temp.loaded")
    connection.execute(sql.SQL("CREATE TEMP TABLE loaded ({})").format(sql.SQL(", ").join(parts)))
    writer = CopyWriter(columns)
    with connection.cursor().copy("COPY loaded FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(writer.begin())
        for batch in batches:
            copy.write(writer.rows(batch))
        copy.write(writer.end())


def rows(columns: list[Column], values: list[list[Any]], wkb: list[bytes | None], first: int = 1) -> pa.RecordBatch:
    arrays = [pa.array(each, ARROW_TYPES[column.type]) for column, each in zip(columns, values, strict=True)]
    fids = pa.array(range(first, first + len(wkb)), pa.int64())
    names = ["fid", *(column.name for column in columns), "geom"]
    return pa.RecordBatch.from_arrays([fids, *arrays, pa.array(wkb, pa.binary())], names=names)


def test_values_of_all_types_come_back(connection: psycopg.Connection) -> None:
    assert set(VALUES) == set(get_args(ColumnType)) == set(ARROW_TYPES)
    columns = [Column(field=f"F{place}", name=f"c{place}", type=name) for place, name in enumerate(VALUES)]
    longest = max(map(len, VALUES.values())) + 1
    values = [[*each, *[None] * (longest - len(each))] for each in VALUES.values()]
    batch = rows(columns, values, [None] * longest)
    loaded(connection, columns, [batch.slice(0, 2), batch.slice(2)], "Point, 4326")
    for column, each in zip(columns, values, strict=True):
        shown = {"jsonb": "{}::text", "real": "{}::float8"}.get(column.type, "{}")
        query = sql.SQL(f"SELECT {shown} FROM loaded ORDER BY fid").format(sql.Identifier(column.name))
        assert [found for (found,) in connection.execute(query)] == each, column.type


def test_numbers_have_no_zeros_at_their_end(connection: psycopg.Connection) -> None:
    columns = [Column(field="N", name="n", type="numeric")]
    values = [Decimal("1.500000000000000000"), Decimal(100), Decimal("-0.000100000000000000"), Decimal("0E-18")]
    loaded(connection, columns, [rows(columns, [values], [None] * len(values))], "Point, 4326")
    found = [text for (text,) in connection.execute("SELECT n::text FROM loaded ORDER BY fid")]
    assert found == ["1.5", "100", "-0.0001", "0"]


def test_numbers_of_all_lengths_come_back(connection: psycopg.Connection) -> None:
    random = Random(8)
    lengths = [(random.randint(0, 20), random.randint(0, 18), random.choice((1, -1))) for _ in range(400)]
    values = [
        sign * (Decimal(random.randrange(10**whole)) + Decimal(random.randrange(10**decimals)).scaleb(-decimals))
        for whole, decimals, sign in lengths
    ]
    columns = [Column(field="N", name="n", type="numeric")]
    batch = rows(columns, [[None if place % 50 == 0 else value for place, value in enumerate(values)]], [None] * 400)
    sliced = [batch.slice(at, 37) for at in range(0, 400, 37)]
    loaded(connection, columns, sliced, "Point, 4326")
    found = [number for (number,) in connection.execute("SELECT n FROM loaded ORDER BY fid")]
    assert found == batch.column("n").to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": 1e999}',
            "1e-999",
            "[" * 1000 + "]" * 1000,
            r'"\u0000"',
            r'"\ud83d\ude00"',
            "no",
            "",
            '{"\\u0000": 1}',
        ),
        *("-0", "1" * 500, '"' + "\x7f" + '"', '{"a": 1, "a": 2}', r'"\/\b"', "0.1e+308"),
    ],
)
def test_any_json_is_taken(connection: psycopg.Connection, text: str) -> None:
    columns = [Column(field="J", name="j", type="jsonb")]
    made = converted(pa.array([text]), "jsonb").to_pylist()
    loaded(connection, columns, [rows(columns, [made], [None])], "Point, 4326")
    assert connection.execute("SELECT jsonb_typeof(j) FROM loaded").fetchone() is not None


TEXTS = {
    "MultiPoint": ["POINT {0} (1 2{1})", "POINT EMPTY", "MULTIPOINT {0} ((1 2{1}), (3 4{1}))"],
    "MultiLineString": ["LINESTRING {0} (0 0{1}, 1 1{1})", "LINESTRING EMPTY"],
    "MultiPolygon": [
        "POLYGON {0} ((0 0{1}, 9 0{1}, 9 9{1}, 0 0{1}), (4 1{1}, 5 2{1}, 5 1{1}, 4 1{1}))",
        "POLYGON EMPTY",
        "POLYGON {0} ((0 0{1}, 2 2{1}, 2 0{1}, 0 2{1}, 0 0{1}))",
    ],
    "GeometryCollection": ["GEOMETRYCOLLECTION {0} (POINT {0} (1 2{1}))", "GEOMETRYCOLLECTION EMPTY"],
}
TEXTS["Geometry"] = [text for texts in TEXTS.values() for text in texts]


@pytest.mark.parametrize(("has_z", "has_m"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("name", TEXTS)
def test_postgis_reads_the_geometries(connection: psycopg.Connection, name: Any, has_z: bool, has_m: bool) -> None:
    shape = Shape(type=name, has_z=has_z, has_m=has_m)
    dimensions, more = "Z" * has_z + "M" * has_m, " 7" * has_z + " 8" * has_m
    texts = [text.format(dimensions, more) for text in TEXTS[name]]
    given = [shapely.to_wkb(shapely.from_wkt(text), output_dimension=4, flavor="iso") for text in texts]
    made = Preparer("EPSG:4326", target_crs("EPSG:4326"), shape, False).prepared(pa.array([*given, None]))
    loaded(connection, [], [rows([], [], made.wkb.to_pylist())], f"{shape.column_type}, 4326")
    query = """SELECT ST_AsBinary(geom, 'NDR'), ST_SRID(geom), ST_IsValid(geom), ST_Zmflag(geom), ST_IsEmpty(geom)
               FROM loaded ORDER BY fid"""
    *found, nothing = connection.execute(query).fetchall()
    assert nothing == (None,) * 5
    for text, expected, (wkb, srid, is_valid, flag, is_empty) in zip(texts, made.wkb.to_pylist(), found, strict=False):
        assert (wkb, srid, is_valid, flag) == (expected, 4326, True, 2 * has_z + has_m)
        assert is_empty == ("EMPTY" in text)
