"""Features of one table: what is told of them, pages, filters, forms, and what is refused."""

import asyncio
import csv
import io
import json
import time
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import psycopg
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.conftest import TestDatabase
from tests.integration.serve.described import assert_takes_versions
from tests.integration.serve.features.conftest import COUNT, ROOT, Serving, served

from graticule.serve.features.asked import RESERVED

ITEMS = "/collections/features/items"
BASE = f"https://maps.example{ROOT}"
PROBLEM = "application/problem+json"


async def found(client: httpx.AsyncClient, **parameters: Any) -> list[int]:
    """Give the ids of the features that a request finds."""
    query = {name.replace("_", "-"): value for name, value in parameters.items()}
    response = await client.get(ITEMS, params={"limit": 1000, "properties": "", **query})
    assert response.status_code == 200, response.text
    page = response.json()
    assert page["numberMatched"] == page["numberReturned"] == len(page["features"])
    return [feature["id"] for feature in page["features"]]


async def refused(client: httpx.AsyncClient, path: str, expected: int = 400, /, **parameters: Any) -> dict[str, Any]:
    """Expect a refusal as a problem, quickly and without SQL."""
    begun = time.process_time()
    response = await client.get(path, params=parameters or None)
    assert response.status_code == expected, response.text
    assert response.headers["content-type"] == PROBLEM
    assert time.process_time() - begun < 1
    for word in ("SELECT", "CAST", "roads_v1", "served_"):
        assert word not in response.json()["detail"] or word in str(parameters)
    problem: dict[str, Any] = response.json()
    return problem


# What is told


async def test_all_links_of_all_documents_lead_somewhere_and_keep_the_version(client: httpx.AsyncClient) -> None:
    seen, ahead = set(), [f"{BASE}/?version=1"]
    while ahead:
        url = ahead.pop()
        assert dict(parse_qsl(urlsplit(url).query))["version"] == "1"
        assert url.startswith(BASE)
        for name in ("{tileMatrix}", "{tileCol}", "{tileRow}"):
            url = url.replace(name, "0")
        response = await client.get(url.removeprefix(BASE))
        assert response.status_code == 200, url
        seen.add(urlsplit(url).path.removeprefix(ROOT))
        ahead += [link for link in _links(response) if urlsplit(link).path.removeprefix(ROOT) not in seen]
    expected = ["/conformance", "/collections", "/collections/features", "/collections/features/queryables", ITEMS]
    assert {"/", "/openapi.json", "/tileMatrixSets", "/collections/features/tiles", *expected} <= seen
    assert {f"{ITEMS}/1", "/collections/features/tiles/WebMercatorQuad/map.html"} <= seen


def _links(response: httpx.Response) -> list[str]:
    """Find all links below an answer, but only the first grid's and the first page's."""
    if "json" not in response.headers["content-type"] or "openapi" in response.headers["content-type"]:
        return []
    links, ahead = [], [response.json()]
    while ahead:
        match ahead.pop():
            case {"rel": rel, "href": href} if rel != "next" and ("Quad" not in href or "WebMercatorQuad" in href):
                links.append(href)
            case dict() as members:
                ahead += members.values()
            case list() as members:
                ahead += members
    return links


async def test_there_is_one_collection_and_no_other(client: httpx.AsyncClient) -> None:
    collections = (await client.get("/collections")).json()["collections"]
    assert [(each["id"], each["title"]) for each in collections] == [("features", "Roads")]
    for other in ("geo.roads_v1", "roads_v1", "geo.other_v1", "public.st_subdivide", "features2", "%2e%2e%2f"):
        for rest in ("", "/items", "/queryables", "/tiles", "/tiles/WebMercatorQuad/0/0/0"):
            response = await client.get(f"/collections/{other}{rest}")
            assert response.status_code == 404, (other, rest)


async def test_the_extent_is_the_served_one_or_else_the_databases(client: httpx.AsyncClient, serving: Serving) -> None:
    (box,) = (await client.get("/collections/features")).json()["extent"]["spatial"]["bbox"]
    assert box == [-25, -25, 24.5, 24.5]
    serving.served = served("roads_v1", bbox=(170.0, -10.0, -170.0, 10.0))
    collection = (await client.get("/collections/features")).json()
    assert collection["extent"]["spatial"]["bbox"] == [[170, -10, -170, 10]]
    assert collection["title"] == "roads"


async def test_a_table_is_looked_at_once(client: httpx.AsyncClient, serving: Serving) -> None:
    counting = serving.app.state.pool = Counting(serving.app.state.pool)
    answers = await asyncio.gather(*(client.get("/collections/features") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    assert counting.acquired == 1


class Counting:
    """A pool that counts how often a connection was asked for."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.acquired = 0

    def acquire(self) -> Any:
        self.acquired += 1
        return self._pool.acquire()


async def test_a_table_too_large_to_be_looked_at_has_no_extent(
    client: httpx.AsyncClient, serving: Serving, tables: TestDatabase
) -> None:
    serving.app.state.pool = Hasty(serving.app.state.pool, milliseconds=500)  # enough to read the catalogue
    with psycopg.connect(tables.url()) as connection:
        connection.execute("LOCK TABLE geo.roads_v1")
        collection = (await client.get("/collections/features")).json()
    assert collection["id"] == "features"
    assert "extent" not in collection
    assert await found(client, bbox="-25,-25,-23.9,-23.9") == [1, 2]


async def test_queryables_are_a_schema_of_all_columns(client: httpx.AsyncClient) -> None:
    response = await client.get("/collections/features/queryables")
    assert response.headers["content-type"] == "application/schema+json"
    Draft202012Validator.check_schema(response.json())
    types = {name: each.get("type", each.get("format")) for name, each in response.json()["properties"].items()}
    assert types["fid"] == "integer"
    assert types["height"] == types["cost"] == "number"
    assert types["geom"] == "geometry-multipolygon"
    titles = {name: each["title"] for name, each in response.json()["properties"].items()}
    assert (titles["user"], titles["height"]) == ("Nutzer:in (Name)", "height"), "a field is called as in its source"


async def test_what_is_claimed_is_served(client: httpx.AsyncClient) -> None:
    classes = (await client.get("/conformance")).json()["conformsTo"]
    assert len(set(classes)) == len(classes)
    assert not [name for name in classes if "html" in name or "accent" in name or "functions/" in name]


async def test_the_description_of_the_api_names_its_own_asset_only(client: httpx.AsyncClient, serving: Serving) -> None:
    described = (await client.get("/openapi.json")).json()
    assert described["servers"] == [{"url": BASE}]
    assert ITEMS in described["paths"]
    parameters = {each["name"] for each in described["paths"][ITEMS]["get"]["parameters"]}
    assert {"bbox", "filter", "filter-lang", "limit", "offset", "sortby"} <= parameters
    filtered = [route["get"]["parameters"] for route in described["paths"].values() if "parameters" in route["get"]]
    names = [[each["name"] for each in declared if each["in"] == "query"] for declared in filtered]
    assert all(len(set(each)) == len(each) for each in names), "a name stands for one thing only"
    columns = {name for each in names for name in each} - RESERVED
    assert {"fid", "name", "height", "user"} <= columns, "properties are parameters"
    assert columns <= {"fid", "name", "height", "level", "built", "seen", "open", "cost", "extra", "user"}
    assert "servers" not in serving.app.openapi()
    assert_takes_versions(described)


# Pages


async def walk(client: httpx.AsyncClient, url: str, rel: str = "next") -> list[dict[str, Any]]:
    pages = []
    while url:
        assert url.startswith(BASE)
        page = (await client.get(url.removeprefix(BASE))).json()
        pages.append(page)
        assert len(pages) < 100
        url = next((link["href"] for link in page["links"] if link["rel"] == rel), "")
    return pages


@pytest.mark.parametrize("sortby", [None, "level", "-level,name"])
async def test_a_walk_over_all_pages_sees_every_feature_once(client: httpx.AsyncClient, sortby: str | None) -> None:
    sorting = f"&sortby={sortby}" if sortby else ""
    first = f"{BASE}{ITEMS}?limit=5&version=1&level=0&level=0&filter=height%20%3E%203{sorting}"
    pages = await walk(client, first)
    ids = [feature["id"] for page in pages for feature in page["features"]]
    expected = [i for i in range(1, COUNT + 1) if i % 5 == 0]
    assert sorted(ids) == expected
    assert [page["numberReturned"] for page in pages] == [5, 5]
    assert {page["numberMatched"] for page in pages} == {len(expected)}
    query = parse_qsl(urlsplit(pages[0]["links"][-1]["href"]).query)
    assert {("version", "1"), ("level", "0"), ("filter", "height > 3"), ("offset", "5"), ("limit", "5")} <= set(query)
    back = await walk(client, f"{first}&offset=5", "prev")
    assert [page["features"] for page in back] == [page["features"] for page in reversed(pages)]


async def test_pages_are_bounded(client: httpx.AsyncClient) -> None:
    assert len((await client.get(ITEMS)).json()["features"]) == 10
    beyond = (await client.get(ITEMS, params={"limit": 10**6})).json()  # OGC: no error, but as many as there can be
    assert beyond["numberReturned"] == COUNT
    for name, value in (
        ("limit", 0),
        ("limit", -1),
        ("limit", "x"),
        ("offset", -1),
        ("offset", 10**8),
        ("limit", "9" * 5000),
    ):
        await refused(client, ITEMS, 400, **{name: value})
    last = (await client.get(ITEMS, params={"offset": COUNT + 5})).json()
    assert (last["numberReturned"], last["numberMatched"]) == (0, COUNT)


async def test_the_order_is_as_asked_for(client: httpx.AsyncClient) -> None:
    assert await found(client) == list(range(1, COUNT + 1))
    assert (await found(client, sortby="-height"))[:2] == [50, 49]
    assert (await found(client, sortby="level, -fid"))[:3] == [50, 45, 40]


# Filters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("level = 3 AND height < 20", [3, 8, 13]),
        ("fid IN (3, 1, 2) AND NOT fid = 2", [1, 3]),
        ("name LIKE 'Stra_e 1%' AND fid <= 11", [1, 10, 11]),
        ("CASEI(name) = casei('STRAßE 4')", [4]),
        ("\"user\" = 'u1' AND fid < 8", [1, 4, 7]),
        ("cost = 4.25", [4]),
        ("open = false AND fid BETWEEN 2 AND 5", [3, 5]),
        ("open AND fid < 5", [2, 4]),
        ("seen IS NULL", [50]),
        ("fid / 2 = 2.5", [5]),
        ("height % 2 = 0.5 AND fid < 8", [3, 7]),
        ("fid div 10 = 4 AND fid ^ 2 > 2300", [48, 49]),
        ("fid + 1 = version + 1 AND fid * 2 - 2 = 4", [3]),
        ("height > fid AND fid = level", [1, 2, 3, 4]),
        ("S_INTERSECTS(geom, POINT(-24.9 -24.9))", [1]),
        ("S_INTERSECTS(geom, BBOX(-25, -25, -23.9, -23.9))", [1, 2]),
        ("S_WITHIN(geom, POLYGON((-26 -26, -23 -26, -23 -23, -26 -23, -26 -26)))", [1, 2]),
        ("S_CONTAINS(geom, POINT(-24.9 -24.9))", [1]),
        ("S_CROSSES(geom, LINESTRING(-24.9 -24.9, -22 -24.9)) OR S_TOUCHES(geom, POINT(-24 -24))", [1, 2]),
        ("S_EQUALS(geom, POLYGON((-25 -25, -24.5 -25, -24.5 -24.5, -25 -24.5, -25 -25)))", [1]),
        ("S_OVERLAPS(geom, BBOX(-24.8, -24.8, -24, -24.1))", [1]),
        ("NOT S_DISJOINT(geom, BBOX(-25, -25, -24, -24))", [1, 2]),
        ("built = DATE('2020-01-04')", [3]),
        ("T_BEFORE(seen, DATE('2020-01-03'))", [1]),
        ("T_AFTER(built, TIMESTAMP('2020-02-18T12:00:00Z'))", [49]),
        ("T_INTERSECTS(seen, INTERVAL('2020-01-03', '2020-01-04'))", [2, 3]),
        ("T_DURING(built, INTERVAL('..', '2020-01-04'))", [1, 2]),
        ("T_EQUALS(built, DATE('2020-01-04'))", [3]),
        ("T_FINISHES(built, INTERVAL('2020-01-01', '2020-01-04'))", [3]),
        ("seen >= TIMESTAMP('2020-02-19T12:00:00Z')", [49]),
        ("name = '''; DROP TABLE geo.roads_v1; --'", [7]),
    ],
)
async def test_cql2_finds_what_it_says(client: httpx.AsyncClient, text: str, expected: list[int]) -> None:
    assert await found(client, filter=text) == expected


async def test_cql2_as_json(client: httpx.AsyncClient) -> None:
    node = {
        "op": "and",
        "args": [{"op": "<", "args": [{"property": "fid"}, 3]}, {"op": "not", "args": [{"property": "open"}]}],
    }
    assert await found(client, filter=json.dumps(node), filter_lang="cql2-json") == [1]
    crs84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
    assert await found(client, filter="fid = 1", filter_lang="cql2-text", filter_crs=crs84) == [1]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"ids": "3,1, 2"}, [1, 2, 3]),
        ({"bbox": "-25,-25,-23.9,-23.9"}, [1, 2]),
        ({"bbox": "-25,-25,0,-23.9,-23.9,9"}, [1, 2]),
        ({"bbox": "20,-25,-24.2,90"}, [1, 46, 47, 48, 49, 50]),  # across the antimeridian
        ({"datetime": "2020-01-02T12:00:00Z", "datetime-column": "seen"}, [1, 50]),  # one that has no time is of any
        ({"datetime": "2020-01-02"}, [1, 50]),
        ({"datetime": "../2020-01-03"}, [1, 2, 50]),
        ({"datetime": "2020-02-19/.."}, [49, 50]),
        ({"datetime": "2020-01-03T00:00:00Z/2020-01-04T00:00:00Z"}, [2, 3, 50]),
        ({"level": "3", "user": "u0"}, [3, 18, 33, 48]),
        ({"name": "'; DROP TABLE geo.roads_v1; --"}, [7]),
        ({"open": "true", "ids": "1,2"}, [2]),
        ({"extra": '{"n": 9}'}, [9]),
        ({"built": "2020-01-04"}, [3]),
        ({"version": "latest", "fid": "4"}, [4]),  # `version` is never a filter
    ],
)
async def test_plain_parameters_find_what_they_say(
    client: httpx.AsyncClient, parameters: dict[str, str], expected: list[int]
) -> None:
    assert await found(client, **parameters) == expected


async def test_a_table_without_times_has_all_of_them(client: httpx.AsyncClient, serving: Serving) -> None:
    serving.served = served("islands_v1")
    assert await found(client, datetime="2020-01-02") == [1, 2, 3]
    for text in ("2020-99-99", "../..", "2020-01-01/2020-01-02/2020-01-03", "2020-01-01/x"):
        await refused(client, ITEMS, datetime=text)


async def test_a_table_of_another_projection_is_asked_in_degrees(client: httpx.AsyncClient, serving: Serving) -> None:
    serving.served = served("swiss_v1")
    assert await found(client, bbox="-180,-90,180,90") == [1, 2]
    assert await found(client, bbox="8,47,9,48") == [2]
    assert await found(client, bbox="-100,-10,-90,10") == []
    assert await found(client, filter="S_INTERSECTS(geom, BBOX(8, 47, 9, 48))") == [2]
    feature = (await client.get(f"{ITEMS}/1")).json()
    assert feature["geometry"]["coordinates"] == pytest.approx([7.44, 46.95], abs=1e-6)


# What is refused


@pytest.mark.parametrize(
    "parameters",
    [
        {"filter": "pg_sleep(10) = 1"},
        {"filter": "level = query_to_xml('select 1', true, true, '')"},
        {"filter": "name = 'a'; DROP TABLE geo.roads_v1"},
        {"filter": '"name"" = 1) --" = 1'},
        {"filter": "(" * 4000},
        {"filter": "-" * 8000},
        {"filter": "other = 1"},
        {"filter": "fid / 0 = 1"},
        {"filter": "fid * 9223372036854775807 = 1"},
        {"filter": "name LIKE 'a\\'"},
        {"filter": "fid ^ 100000.5 = 1"},
        {"filter": "fid = 1", "filter-lang": "cql2-json"},
        {"filter": "fid = 1", "filter-lang": "cql-text"},
        {"filter": "fid = 1", "filter-crs": "http://www.opengis.net/def/crs/EPSG/0/2056"},
        {"sortby": "other"},
        {"sortby": 'fid"; DROP TABLE geo.roads_v1'},
        {"sortby": "geom"},
        {"sortby": ",".join(["fid"] * 11)},
        {"sortby": "--fid"},
        {"properties": "fid,other"},
        {"properties": 'fid" FROM geo.other_v1 --'},
        {"ids": "1,x"},
        {"ids": "1' OR 1=1"},
        {"ids": "9" * 30},
        {"ids": ",".join(["1"] * 1001)},
        {"bbox": "1,2,3"},
        {"bbox": "nan,0,1,1"},
        {"bbox": "0,0,inf,1"},
        {"bbox": "-181,0,1,1"},
        {"bbox": "0,5,1,1"},
        {"bbox": "a,b,c,d"},
        {"datetime": "yesterday"},
        {"datetime": "../.."},
        {"datetime": "2020-01-01/2020-01-02/2020-01-03"},
        {"datetime": "2020-01-01T00:00:00Z'); --"},
        {"datetime": "2020-01-01", "datetime-column": "name"},
        {"geom-column": "other"},
        {"geom-column": 'geom"'},
        {"simplify": "nan"},
        {"simplify": "-1"},
        {"simplify": "1e300"},
        {"bbox-only": "x"},
        {"f": "html"},
        {"f": "xml"},
        {"level": "x"},
        {"level": "99999999999999999999"},
        {"built": "never"},
        {"name": "a\0b"},
        {"geom": "POINT(1 2)"},
        {"extra": "{"},
        {"url": "https://example.org/a.gpkg"},
        {"table": "geo.other_v1"},
        {"secret": "x"},
        {"x' OR 1=1": "1"},
    ],
)
async def test_hostile_parameters_are_refused(client: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    await refused(client, ITEMS, 400, **parameters)


async def test_single_features(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{ITEMS}/9?version=1")
    feature = response.json()
    assert response.headers["content-type"] == "application/geo+json"
    assert feature["id"] == 9
    assert feature["properties"]["extra"] == {"n": 9}
    assert feature["properties"]["cost"] == 9.25
    assert feature["properties"]["seen"] == "2020-01-10T12:00:00+00:00"
    assert feature["links"][0]["href"] == f"{BASE}{ITEMS}/9?version=1"
    for absent in ("0", "99", "x", "9" * 40, "1'--", "1e0", "-1"):
        await refused(client, f"{ITEMS}/{absent}", 404)


async def test_what_is_shown_of_a_feature(client: httpx.AsyncClient) -> None:
    async def one(**parameters: str) -> dict[str, Any]:
        query = {name.replace("_", "-"): value for name, value in parameters.items()}
        feature: dict[str, Any] = (await client.get(f"{ITEMS}/1", params=query)).json()
        return feature

    assert (await one(properties="name,level"))["properties"] == {"name": "Straße 1", "level": 1}
    assert (await one(properties=""))["properties"] == {}
    assert (await one(geom_column="none"))["geometry"] is None
    assert (await one(geom_column="geom"))["geometry"]["type"] == "MultiPolygon"
    assert (await one(bbox_only="true"))["geometry"]["type"] == "Polygon"
    assert len((await one(simplify="0.1"))["geometry"]["coordinates"]) == 1


async def test_forms(client: httpx.AsyncClient) -> None:
    table = await client.get(ITEMS, params={"f": "csv", "limit": 2})
    assert table.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [(row["fid"], row["name"], row["extra"]) for row in rows] == [
        ("1", "Straße 1", '{"n": 1}'),
        ("2", "Straße 2", '{"n": 2}'),
    ]
    unknown = await client.get(ITEMS, params={"f": "csv", "ids": "50", "properties": "seen", "geom-column": "none"})
    assert unknown.text == 'seen\r\n""\r\n'
    assert rows[0]["geom"].startswith("MULTIPOLYGON(((")
    empty = await client.get(ITEMS, params={"f": "csv", "ids": "999"})
    assert (empty.status_code, len(empty.text.splitlines())) == (200, 1)
    lines = await client.get(ITEMS, params={"f": "ndjson", "limit": 2})
    assert [json.loads(line)["extra"] for line in lines.text.splitlines()] == [{"n": 1}, {"n": 2}]
    sequence = await client.get(ITEMS, params={"f": "geojsonseq", "limit": 2})
    assert [json.loads(part)["id"] for part in sequence.text.split("\x1e")[1:]] == [1, 2]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/geo+json"),
        ("application/json", "application/geo+json"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("*/*", "application/geo+json"),
    ],
)
async def test_accept_decides_when_nothing_else_does(client: httpx.AsyncClient, accept: str, kind: str) -> None:
    response = await client.get(ITEMS, headers={"Accept": accept})
    assert response.headers["content-type"] == kind


async def test_no_page_is_html_but_the_map(client: httpx.AsyncClient) -> None:
    for path in ("/", "/conformance", "/collections", "/collections/features", "/tileMatrixSets"):
        response = await client.get(path, headers={"Accept": "text/html"})
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        await refused(client, path, f="html")


# Errors of the database


async def test_a_query_that_takes_too_long_is_given_up(
    client: httpx.AsyncClient, serving: Serving, tables: TestDatabase
) -> None:
    """A lock that is held elsewhere makes the query wait, until its time is over."""
    await client.get(ITEMS)
    serving.app.state.pool = Hasty(serving.app.state.pool)
    with psycopg.connect(tables.url()) as connection:
        connection.execute("LOCK TABLE geo.roads_v1")
        await refused(client, ITEMS, 504)
        await refused(client, "/collections/features/tiles/WebMercatorQuad/0/0/0", 504)


class Hasty:
    """A pool whose connections wait for a moment only."""

    def __init__(self, pool: Any, milliseconds: int = 50) -> None:
        self._pool = pool
        self._milliseconds = milliseconds

    def acquire(self) -> "Hasty":
        self._opened = self._pool.acquire()
        return self

    async def __aenter__(self) -> Any:
        connection = await self._opened.__aenter__()
        await connection.execute(f"SET statement_timeout = {self._milliseconds:d}")
        return connection

    async def __aexit__(self, *error: Any) -> None:
        await self._opened.__aexit__(*error)


async def test_a_table_that_is_gone_or_not_to_be_seen(client: httpx.AsyncClient, serving: Serving) -> None:
    serving.served = served("nothing_v1")
    assert (await refused(client, ITEMS, 503))["code"] == "output_unreadable"
    serving.served = served("roads_v1", blob_path="x")
    await client.get("/collections")
    async with serving.app.state.pool.acquire() as connection:
        with pytest.raises(Exception, match="read-only"):
            await connection.execute("DELETE FROM geo.roads_v1")


async def test_a_database_that_is_away_is_told(client: httpx.AsyncClient, serving: Serving) -> None:
    await serving.app.state.pool.close()
    problem = await refused(client, ITEMS, 503)
    assert problem["code"] == "unavailable"
