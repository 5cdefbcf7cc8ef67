"""Filters: both forms of CQL2 are read, and only what is allowed is written, with all values as parameters."""

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.repositories.served_tables import ServedColumn
from graticule.serve.features.cql2 import Compiler, Parameters, read_filter
from graticule.serve.features.limits import MOST_DEPTH, MOST_NODES, MOST_VERTICES, FilterError

DAY = datetime.fromisoformat("2020-01-02")
COLUMNS = {
    column.name: column
    for column in (
        ServedColumn("fid", "bigint", is_key=True),
        ServedColumn("name", "text"),
        ServedColumn("user", "text"),
        ServedColumn("level", "integer"),
        ServedColumn("open", "boolean"),
        ServedColumn("built", "date"),
        ServedColumn("seen", "timestamp with time zone"),
        ServedColumn("extra", "jsonb"),
        ServedColumn("geom", "geometry", geometry_type="Point", srid=4326),
    )
}


def compiled(node: Any, srid: int = 4326) -> tuple[str, list[Any]]:
    parameters = Parameters()
    return Compiler(COLUMNS, parameters, srid).condition(node), parameters.values


def compiled_text(text: str) -> tuple[str, list[Any]]:
    return compiled(read_filter(text, "cql2-text"))


def test_integers_stay_exact() -> None:
    assert compiled_text("fid = 9007199254740993")[1] == [9007199254740993]


# What is written


@pytest.mark.parametrize(
    ("text", "sql", "values"),
    [
        ("name = 'a'", '("name" = CAST($1 AS text))', ["a"]),
        ("user = 'a'", '("user" = CAST($1 AS text))', ["a"]),
        ("level > 1.5", '("level" > CAST($1 AS double precision))', [1.5]),
        ("open", '"open"', []),
        ("NOT open", '(NOT "open")', []),
        ("CASEI(name) LIKE casei('A%')", '(lower("name") LIKE lower(CAST($1 AS text)))', ["A%"]),
        ("extra IS NULL", '("extra" IS NULL)', []),
        ("built > DATE('2020-01-02')", '(CAST("built" AS timestamp) > CAST($1 AS timestamp))', [DAY]),
        (
            "seen = TIMESTAMP('2020-01-02T03:00:00+02:00')",
            "((\"seen\" AT TIME ZONE 'UTC') = CAST($1 AS timestamp))",
            [DAY + timedelta(hours=1)],
        ),
    ],
)
def test_a_condition_has_names_of_columns_and_numbers_of_values(text: str, sql: str, values: list[Any]) -> None:
    assert compiled_text(text) == (sql, values)


def test_a_geometry_is_taken_to_the_projection_of_the_table() -> None:
    sql, _ = compiled(read_filter("S_INTERSECTS(geom, POINT(1 2))", "cql2-text"), srid=2056)
    assert "ST_Transform(ST_SetSRID(ST_GeomFromGeoJSON(" in sql
    assert ", 2056))" in sql


@pytest.mark.parametrize(
    "name", ["pg_sleep", "query_to_xml", "lo_import", "accenti", "a_contains", "st_buffer", "ST_X"]
)
def test_there_are_no_functions_but_the_standards(name: str) -> None:
    for text in (f"{name}(level) = 1", "a_overlaps(level, (1, 2))"):
        with pytest.raises(FilterError, match="no operator or function"):
            compiled_text(text)
    with pytest.raises(FilterError, match="no operator or function"):
        compiled({"op": "=", "args": [{"property": "level"}, {"op": name, "args": [1]}]})


@pytest.mark.parametrize(
    "text",
    [
        "other = 1",  # no such property
        "ctid = 'a'",
        '"name"" OR 1=1 --" = \'a\'',
        "name = 1",  # not of one kind
        "level = 'a'",
        "extra = 'a'",
        "geom = 'a'",
        "name = POINT(1 2)",
        "level",  # no condition
        "1 + 1",
        "name LIKE 5",
        "name AND level = 1",
        "name",
        "",
        "name =",
        "name = 'a",
        "name = 'a' name",
        "name = 'a';",
        "name = 'a' -- x",
        "name = 'a\0'",
        "NOT",
        "level IN ()",
        "level BETWEEN 1",
        "level > 1e999",
        "level = " + "9" * 5000,
        "S_INTERSECTS(geom, POINT(1))",
        "S_INTERSECTS(geom, POINT())",
        "S_INTERSECTS(geom, POINT(1 2, 3 4))",
        "S_INTERSECTS(geom, POINT(181 2))",
        "S_INTERSECTS(geom, POLYGON((0 0, 1 0, 1 1)))",
        "S_INTERSECTS(geom, POLYGON((0 0, 1 0, 1 1, 0 0.5)))",
        "S_INTERSECTS(geom, BBOX(1, 2, 3))",
        "S_INTERSECTS(geom, BBOX(1, 5, 3, 4))",
        "S_INTERSECTS(geom)",
        "S_INTERSECTS(geom, name)",
        "built > DATE('2020-13-01')",
        "built > DATE('today')",
        "seen > TIMESTAMP('2020-01-01')",
        "T_AFTER(name, DATE('2020-01-01'))",
        "T_DURING(built, INTERVAL('x', '..'))",
        "built = INTERVAL('2020-01-01', '..')",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        compiled_text(text)


@pytest.mark.parametrize(
    "node",
    [
        None,
        [],
        {},
        {"op": "="},
        {"op": "=", "args": "ab"},
        {"op": ["="], "args": [1, 1]},
        {"op": "and", "args": [True]},
        {"op": "not", "args": [True, False]},
        {"property": {"a": 1}},
        {"op": "in", "args": [{"property": "level"}, 1]},
        {"op": "=", "args": [{"property": "name"}, "\ud800"]},
        {"op": "=", "args": [{"property": "level"}, 10**400]},
        {"op": "s_intersects", "args": [{"property": "geom"}, {"type": "Point"}]},
        {"op": "s_intersects", "args": [{"property": "geom"}, {"type": "Curve", "coordinates": [1, 2]}]},
        {"op": "s_intersects", "args": [{"property": "geom"}, {"type": "Polygon", "coordinates": [[]]}]},
        {"op": "s_intersects", "args": [{"property": "geom"}, {"type": "GeometryCollection", "geometries": [1]}]},
        {"op": "s_intersects", "args": [{"property": "geom"}, {"type": "Point", "coordinates": [True, 1]}]},
    ],
)
def test_json_of_another_form_is_refused(node: Any) -> None:
    with pytest.raises(FilterError):
        compiled(node)


@pytest.mark.parametrize("text", ["{", "[" * 5000, "NaN", '{"op": NaN}', "name = 'a'"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        compiled(read_filter(text, "cql2-json"))


# Limits. The first ones take the library minutes, or end its process.


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8000,
        "a=(" * 2500,
        "level in ((1," * 500,
        "a_equals(" + "(" * 4000,
        "level=" + "-" * 8000 + "1",
        "=".join(["level"] * 1300),
        "NOT " * 2000 + "open",
        "level = " + "^".join(["1"] * 4000),
        " AND ".join(["open"] * (MOST_NODES + 1)),
        "level IN (" + ",".join(["1"] * 3000) + ")",
        "'" * 8001,
        "x" * 8193,
    ],
)
def test_a_filter_that_is_too_much_is_refused_at_once(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(FilterError):
        compiled_text(text)
    assert time.process_time() - begun < 0.5


def test_json_that_is_too_deep_or_too_wide_is_refused() -> None:
    deep: Any = {"property": "open"}
    for _ in range(MOST_DEPTH + 1):
        deep = {"op": "not", "args": [deep]}
    with pytest.raises(FilterError, match="nested"):
        compiled(deep)
    line = {"type": "LineString", "coordinates": [[0, 0]] * (MOST_VERTICES // 2 + 1)}
    touches = {"op": "s_touches", "args": [{"property": "geom"}, line]}
    compiled(touches)
    with pytest.raises(FilterError, match="vertices"):
        compiled({"op": "or", "args": [touches, touches]})


# Nothing of the caller's reaches the SQL

HOSTILE = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="'\"\\;-$%_()*/ \0abc1", max_size=40),
    st.sampled_from(["'; DROP TABLE geo.walk; --", '" OR "1"="1', "$1", "\\'; --", "E'\\''", "$$x$$", "/**/"]),
)


def written(text: str) -> tuple[str, list[Any]] | None:
    try:
        return compiled_text(text)
    except FilterError:
        return None


@settings(max_examples=examples(200))
@given(HOSTILE)
def test_a_hostile_text_is_only_a_value(text: str) -> None:
    made = written("name = '" + text.replace("'", "''") + "'")
    assert made == (None if "\0" in text else ('("name" = CAST($1 AS text))', [text]))
    by_json = read_filter(json.dumps({"op": "=", "args": [{"property": "name"}, text]}), "cql2-json")
    if "\0" not in text:
        assert compiled(by_json) == ('("name" = CAST($1 AS text))', [text])


@settings(max_examples=examples(200))
@given(HOSTILE)
def test_a_hostile_name_is_no_property(name: str) -> None:
    with pytest.raises(FilterError):
        compiled({"op": "=", "args": [{"property": name}, "x"]})
    with pytest.raises(FilterError):
        compiled({"op": name, "args": [{"property": "name"}, "x", "y", "z"]})


@settings(max_examples=examples(200))
@given(HOSTILE)
def test_hostile_filters_write_only_what_is_known(text: str) -> None:
    made = written(text)
    if made is not None:
        assert not set(made[0]) & set(";\\-")
