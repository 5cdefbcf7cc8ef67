"""Whatever a caller sends, it is answered by a problem that is the caller's, soon, and without the database's words."""

import json
import time
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Response
from tests.conftest import TestDatabase
from tests.integration.serve.stac.conftest import serving

from graticule.core.audience import Audience
from graticule.serve.stac.filters import MOST_LEVELS
from graticule.serve.stac.searches import MOST_ITEMS

pytestmark = pytest.mark.asyncio(loop_scope="module")

RING = [[float(number % 100), float(number % 50)] for number in range(10_001)]
SHAPE = {"type": "Polygon", "coordinates": [[*RING, RING[0]]]}
BOWTIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
WORDS = ("SELECT", "pgstac", "syntax", "operator does not exist", "relation", "Traceback", "asyncpg")

GIVEN: list[dict[str, Any]] = [
    {"url": "http://elsewhere/x.tif"},
    {"conf": '{"nohydrate": true}'},
    {"query": '{"id": {"eq": "x"}}'},
    {"limit": "0"},
    {"limit": "-1"},
    {"limit": "all"},
    {"ids": ",".join(["x"] * 101)},
    {"collections": ",".join(["x"] * 101)},
    {"ids": "x" * 257},
    {"ids": "a\x00b"},
    {"bbox": "nan,nan,nan,nan"},
    {"bbox": "inf,0,1,1"},
    {"bbox": "-200,-90,180,90"},
    {"bbox": "0,10,1,0"},
    {"bbox": "1,2,3"},
    {"bbox": "0,0,1,1", "intersects": json.dumps(BOWTIE)},
    {"datetime": "yesterday"},
    {"datetime": "2020-01-01T00:00:00Z/2019-01-01T00:00:00Z"},
    {"datetime": "' OR 1=1"},
    {"intersects": "POINT(0 0)"},
    {"intersects": "{"},
    {"intersects": '{"type": "Point", "coordinates": ["a", 1]}'},
    {"token": "next:../../etc:passwd"},
    {"token": "next:61:"},
    {"token": "next:6:6"},
    {"token": "next:ff:ff"},
    {"token": "'; DROP TABLE items; --"},
    {"token": "x" * 5000},
    {"sortby": "properties"},
    {"sortby": ",".join(f"p{number}" for number in range(11))},
    {"sortby": "x" * 300},
    {"fields": ",".join(f"p{number}" for number in range(101))},
    {"filter-lang": "cql2-sql", "filter": "a=1"},
    {"filter-crs": "http://www.opengis.net/def/crs/EPSG/0/3857", "filter": "a=1"},
    {"filter": "a"},
    {"filter": "a="},
    {"filter": "(" * 4000},
    {"filter": "a=" + "-" * 4000 + "1"},
    {"filter": "a=" + "^".join(["2"] * 1500)},
    {"filter": "a=" + "9" * 500},
    {"filter": "a=1e999"},
    {"filter": "s_intersects(geometry, POINT(1e999 0))"},
    {"filter": "s_intersects(geometry, " + "GEOMETRYCOLLECTION(" * 6 + "POINT(0 0)" + ")" * 7},
    {"filter": "NOT " * 1000 + "a=1"},
    {"filter": "f(" * 200 + ")" * 200},
    {"filter": "a=1 AND " * 900 + "a=1"},
    {"filter": "pg_sleep(10) = 1"},
    {"filter": "a + pg_sleep(10) > 1"},
    {"filter": "s_buffer(geometry, POINT(0 0))"},
    {"filter": "s_intersects(bbox, POINT(0 0))"},
    {"filter": "t_after(datetime, 'never')"},
    {"filter": "datetime > 'never'"},
    {"filter": "datetime = TIMESTAMP('never')"},
    {"filter": "platform:asset_id > 5"},
    {"filter": "datetime LIKE '2020%'"},
    {"filter": "geometry = 'x'"},
    {"filter-lang": "cql2-json", "filter": "a=1"},
    {"filter-lang": "cql2-json", "filter": "[" * 2000},
    {"filter-lang": "cql2-json", "filter": '{"op": "eq; DROP", "args": [1, 2]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "upper", "args": [1]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "=", "args": [{"upper": {"property": "id"}}, "X"]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "=", "args": [{"property": ""}, 1]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "=", "args": [{"property": "a\\u0000b"}, 1]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "=", "args": [{"property": ["a"]}, 1]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "=", "args": [{"property": "a"}]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "in", "args": [{"property": "a"}, []]}'},
    {"filter-lang": "cql2-json", "filter": '{"op": "and", "args": ["1=1"]}'},
    {"filter-lang": "cql2-json", "filter": '{"filter": {"op": "=", "args": [1, 1]}}'},
    {"filter-lang": "cql2-json", "filter": '{"eq": [{"property": "id"}, "x"]}'},
]

BODIES: list[Any] = [
    [],
    "x",
    {"conf": {"nohydrate": True}},
    {"query": {"id": {"eq": "x"}}},
    {"limit": 0},
    {"ids": ["x"] * 101},
    {"collections": [1]},
    {"bbox": [0, 0, 1]},
    {"bbox": [0, 0, 1e9, 1]},
    {"intersects": SHAPE},
    {"intersects": {"type": "Feature"}},
    {"intersects": {"type": "GeometryCollection", "geometries": [SHAPE]}},
    {"fields": None},
    {"fields": {"include": ["x" * 300]}},
    {"fields": {"include": ["a\x00"]}},
    {"sortby": [{"field": "id", "direction": "asc; DROP"}]},
    {"sortby": [{"field": "properties.", "direction": "asc"}]},
    {"token": "next:zz:zz"},
    {"filter": {"op": "s_intersects", "args": [{"property": "geometry"}, SHAPE]}},
    {"filter": {"op": "s_intersects", "args": [{"property": "geometry"}, {"type": "Point", "coordinates": "x"}]}},
    {"filter": {"op": "or", "args": [{"op": "=", "args": [{"property": "a"}, 1]}] * 1001}},
    {"filter": {"op": "in", "args": [{"property": "a"}, list(range(2000))]}},
    {"filter-crs": "EPSG:3857"},
    {"filter-lang": "cql2-text", "filter": {"op": "=", "args": [{"property": "a"}, 1]}},
]

COLLECTIONS: list[dict[str, Any]] = [
    {"url": "x"},
    {"offset": "-1"},
    {"offset": "99999999999999"},
    {"limit": "0"},
    {"bbox": "nan,0,1,1"},
    {"sortby": "properties"},
    {"fields": "id"},
    {"q": "x" * 201},
    {"q": "("},
    {"q": "'"},
    {"q": "@QUOTE@"},
    {"filter": "(" * 4000},
    {"filter": "id=" + "-" * 4000 + "1"},
    {"filter": "id=" + "9" * 500},
    {"filter": "foo(id) = 1"},
    {"datetime": "x"},
]


def _fault(response: Response, begun: float) -> str | None:
    """Tell what is wrong with an answer that should be a refusal."""
    if time.monotonic() - begun > 1:
        return "slow"
    if response.status_code != 400 or response.headers["content-type"] != "application/problem+json":
        return f"{response.status_code} {response.text[:200]}"
    told = f"{response.json()['detail']} {response.json().get('errors')}"
    return told if any(word in told for word in WORDS) else None


async def _faults(client: AsyncClient, method: str, path: str, how: str, all_given: list[Any]) -> dict[str, str]:
    found = {}
    for given in all_given:
        begun = time.monotonic()
        response = await client.request(method, path, **{how: given}, headers={"content-type": "application/json"})
        if fault := _fault(response, begun):
            found[str(given)[:100]] = fault
    return found


async def test_parameters_of_a_search_are_refused(internal: AsyncClient) -> None:
    assert await _faults(internal, "GET", "/stac/search", "params", GIVEN) == {}


async def test_so_are_those_of_the_items_of_a_collection(internal: AsyncClient) -> None:
    given = [*(each for each in GIVEN[-30:] if "intersects" not in each), {"collections": "latest"}]
    assert await _faults(internal, "GET", "/stac/collections/many/items", "params", given) == {}


async def test_those_of_collections_are_refused(internal: AsyncClient) -> None:
    assert await _faults(internal, "GET", "/stac/collections", "params", COLLECTIONS) == {}


async def test_bodies_of_a_search_are_refused(internal: AsyncClient) -> None:
    deep: dict[str, Any] = {"op": "=", "args": [{"property": "a"}, 1]}
    for _ in range(300):
        deep = {"op": "not", "args": [deep]}
    assert await _faults(internal, "POST", "/stac/search", "json", [*BODIES, {"filter": deep}]) == {}


def _nested(depth: int, start: str, core: str, end: str) -> bytes:
    return (start * depth + core + end * depth).encode()


POINT = '{"type": "Point", "coordinates": [0, 0]}'
# The name of a member, and something in it that can stand within itself.
NESTED = {
    "intersects": ('{"type": "GeometryCollection", "geometries": [', POINT, "]}"),
    "filter": ('{"op": "not", "args": [', '{"op": "=", "args": [1, 1]}', "]}"),
    "fields": ('{"include": [', '"id"', "]}"),
    "sortby": ("[", '{"field": "id", "direction": "asc"}', "]"),
    "query": ('{"a": ', "1", "}"),
    "conf": ('{"a": ', "1", "}"),
    "ids": ("[", '"x"', "]"),
    "bbox": ("[", "1", "]"),
}


@pytest.mark.parametrize("name", NESTED)
async def test_bodies_that_are_nested_are_refused_at_once(internal: AsyncClient, name: str) -> None:
    nested = [_nested(depth, *NESTED[name]) for depth in (30, 66, 150, 400)]
    bodies = [b'{"%s": %s}' % (name.encode(), each) for each in nested]
    assert await _faults(internal, "POST", "/stac/search", "content", bodies) == {}


async def test_shapes_have_the_depth_that_they_need(internal: AsyncClient) -> None:
    collection = {"type": "GeometryCollection", "geometries": [json.loads(POINT)]}
    deep = [{"type": kind, "coordinates": json.loads("[" * 5 + "0, 0" + "]" * 5)} for kind in ("Point", "MultiPolygon")]
    twice = {"type": "GeometryCollection", "geometries": [collection]}
    named = {"type": "Point", "coordinates": [0, 0], "geometries": [collection]}
    refused = [{"intersects": each} for each in (*deep, twice, {**twice, "geometries": [named]})]
    refused += [{"filter": {"op": "s_intersects", "args": [{"property": "geometry"}, each]}} for each in deep]
    refused += [{"intersects": {**json.loads(POINT), "other": json.loads("[" * 70 + "0" + "]" * 70)}}]
    assert await _faults(internal, "POST", "/stac/search", "json", refused) == {}
    assert (
        await _faults(
            internal, "GET", "/stac/search", "params", [{"intersects": json.dumps(each)} for each in (*deep, twice)]
        )
        == {}
    )
    for each in deep:
        assert "nested too deep" in (await internal.post("/stac/search", json={"intersects": each})).text
    square = {"type": "MultiPolygon", "coordinates": [[[[-61, 16], [-60, 16], [-60, 17], [-61, 16]]]]}
    for shape in (square, {"type": "GeometryCollection", "geometries": [square, json.loads(POINT)]}):
        found = await internal.post("/stac/search", json={"intersects": shape})
        assert (found.status_code, found.json().get("numberMatched")) == (200, 3)


async def test_a_filter_can_be_as_deep_as_is_allowed(internal: AsyncClient) -> None:
    text = "NOT " * (MOST_LEVELS - 2) + "(id = 'many-v0')"
    found = await internal.get("/stac/search", params={"filter": text})
    assert [item["id"] for item in found.json()["features"]] == ["many-v0"]


async def test_what_is_no_json_is_refused(internal: AsyncClient) -> None:
    bodies = [b"", b"{", b"[" * 100_000, b'{"ids": "\xff"}']
    assert await _faults(internal, "POST", "/stac/search", "content", bodies) == {}


@pytest.mark.parametrize("name", ["...", "a'b", "%2e%2e%2fsecret", "x" * 3000, "a%00b", "many' OR '1'='1", "*"])
async def test_names_that_nobody_has_are_not_there(internal: AsyncClient, name: str) -> None:
    for path in (f"/stac/collections/{name}", f"/stac/collections/many/items/{name}"):
        assert (await internal.get(path)).status_code in {400, 404}


async def test_names_are_only_names(internal: AsyncClient) -> None:
    """Hostile names of properties are looked for, and are nobody's; values are compared as they are."""
    for name in ("x') OR ('1'='1", "x'; DROP TABLE items; --", "a->>'b'", 'a"b', "%s %I", "$1"):
        given = {"op": "=", "args": [{"property": name}, "x'; DROP TABLE pgstac.items; --"]}
        found = await internal.post(
            "/stac/search", json={"filter": given, "sortby": [{"field": name, "direction": "asc"}]}
        )
        assert (found.status_code, found.json().get("numberMatched")) == (200, 0), name
        chosen = await internal.post("/stac/search", json={"fields": {"include": [name]}})
        assert chosen.status_code == 200
        assert all(set(item) <= {"id", "collection", "links", name.split(".")[0]} for item in chosen.json()["features"])


async def test_a_larger_page_than_there_are_is_cut(internal: AsyncClient) -> None:
    for limit in (MOST_ITEMS + 1, 2**40):
        assert (await internal.get("/stac/search", params={"limit": limit})).status_code == 200
        assert (await internal.get("/stac/collections", params={"limit": limit})).status_code == 200


async def test_nothing_can_be_written(internal: AsyncClient) -> None:
    for method in ("PUT", "PATCH", "DELETE", "POST"):
        for path in ("/stac/collections", "/stac/collections/many", "/stac/collections/many/items/many-v1"):
            assert (await internal.request(method, path, json={})).status_code == 405
    for path in ("/stac/_mgmt/ping", "/stac/_mgmt/health", "/stac/docs", "/stac/catalogs"):
        assert (await internal.get(path)).status_code == 404


async def test_a_search_that_takes_too_long_says_so(served_catalogue: TestDatabase) -> None:
    async with (
        serving(served_catalogue, Audience.INTERNAL, statement_timeout="1ms") as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://served.test") as client,
    ):
        answered = await client.get("/stac/search")
    assert answered.status_code == 504
    assert answered.json()["code"] == "gateway_timeout"
