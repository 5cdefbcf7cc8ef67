"""CQL2 as text is read as the library for it reads it, and where that one fails."""

import time

import pytest
from cql2 import Expr

from graticule.serve.cql2_text import UnreadableFilter, parse

DEPTH = 20


@pytest.mark.parametrize(
    "text",
    [
        "name = 'a'",
        "name = 'it''s; DROP TABLE'",
        "\"user\" <> 'a'",
        "name LIKE 'a%'",
        "name NOT LIKE 'a%'",
        "level BETWEEN 1 AND 5",
        "level NOT BETWEEN 1 AND 5 AND open = true",
        "level IN (1, 2, 3)",
        "level NOT IN (1)",
        "name IS NULL",
        "name IS NOT NULL",
        "NOT (level = 1 AND open = TRUE)",
        "(level = 1 OR level = 2) AND name = 'x' OR open = false",
        "level + 1 * 2 > 3",
        "(level + 1) * 2 - 4 / 2 >= 3",
        "level % 2 = 1 AND level div 2 = 1",
        "level = -3 AND -level = 3",
        "CASEI(name) = casei('A')",
        "S_INTERSECTS(geom, POINT(1 -2))",
        "S_INTERSECTS(geom, BBOX(1, 2, 3, 4))",
        "S_WITHIN(geom, POLYGON((0 0, 1 0, 1 1, 0 0), (0.1 0.1, 0.2 0.1, 0.2 0.2, 0.1 0.1)))",
        "S_CROSSES(geom, LINESTRING(0 0, 1 1))",
        "S_TOUCHES(geom, MULTIPOINT((0 0), (1 1)))",
        "S_TOUCHES(geom, MULTILINESTRING((0 0, 1 1), (2 2, 3 3)))",
        "S_DISJOINT(geom, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5))))",
        "S_EQUALS(geom, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1)))",
        "S_INTERSECTS(geom, POINT Z(1 2 3))",
        "T_AFTER(built, DATE('2020-01-01'))",
        "seen >= TIMESTAMP('2020-01-01T00:00:00Z')",
        "T_DURING(built, INTERVAL('2020-01-01', '..'))",
        "T_INTERSECTS(INTERVAL(built, seen), INTERVAL('2020-01-01', '2021-01-01'))",
        "open",
        "a:b.c = 1",
        "eo:cloud_cover < +10 AND properties.eo:cloud_cover > -1.5e1",
        '"eo:cloud cover" = 1 AND "a""b" = 2 AND "LIKE" = 3',
        "ACCENTI(CASEI(title)) LIKE accenti(casei('É%'))",
        "CASEI(name) IN (casei('A'), casei('b'))",
        "A_CONTAINS(keywords, ('a'))",
        "A_EQUALS(keywords, ('a', 'b')) OR NOT a_overlaps((1, 2), levels)",
        "A_CONTAINS(keywords, (1, (2, 3)))",
        "A_CONTAINS(keywords, others)",
        "S_INTERSECTS(geom, POINTZ(1 2 3))",
        "T_AFTER(datetime, '2020-01-01')",
        "platform:revision > platform:version_ordinal",
    ],
)
def test_text_means_what_the_library_reads(text: str) -> None:
    assert parse(text, most_depth=DEPTH) == Expr(text).to_json()


@pytest.mark.parametrize("name", [":a", "_a", "e\u0301t\u0301e", "Größe", "a.b:c"])
def test_names_are_those_of_the_standard(name: str) -> None:
    assert parse(f"{name} = 1", most_depth=DEPTH) == {"op": "=", "args": [{"property": name}, 1]}


@pytest.mark.parametrize(
    "text",
    [
        "a=" + "-" * 4000 + "1",
        "a=" + "- " * 2000 + "1",
        "a=" + "+" * 4000 + "1",
        "a=" + "^".join(["2"] * 1500),
        "(" * 4000,
        "NOT " * 1000 + "a",
        "f(" * 1000 + ")" * 1000,
        "a_equals(" + "(" * 4000,
        "S_INTERSECTS(geometry, " + "GEOMETRYCOLLECTION(" * 200,
        "S_INTERSECTS(geometry, POLYGON" + "(" * 4000,
        "'" * 4001,
        '"' * 4001,
        "a=" + "[" * 4000,
        "a=" + "9" * 5000,
        "a = 1 = 2",
        "a_equals(a, ())",
        "a.b = 'x\\'y'",
        "1a = 1",
    ],
)
def test_what_is_deep_or_no_cql2_is_refused_at_once(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(UnreadableFilter):
        parse(text, most_depth=DEPTH)
    assert time.process_time() - begun < 0.5


def test_a_filter_can_be_as_deep_as_is_said() -> None:
    text = "(" * DEPTH + "a = 1" + ")" * DEPTH
    assert parse(text, most_depth=DEPTH) == parse("a = 1", most_depth=0)
    with pytest.raises(UnreadableFilter, match="nested more than 19 times"):
        parse(text, most_depth=DEPTH - 1)
