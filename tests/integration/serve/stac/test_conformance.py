"""What the API claims to conform to, tried class by class; and the links by which it is found."""

import json
from typing import Any

import pytest
from httpx import AsyncClient
from tests.integration.serve.stac.conftest import HOST, LATEST, MANY

pytestmark = pytest.mark.asyncio(loop_scope="module")

CQL2 = "http://www.opengis.net/spec/cql2/1.0/conf"
FEATURES = "http://www.opengis.net/spec/ogcapi-features"
STAC = "https://api.stacspec.org"
V0, V1, LAST = "many-v0", "many-v1", "latest-v1"
ALL = {V0, V1, LAST}
ORDINAL = "platform:version_ordinal"
AREA = "POLYGON((-63 15, -57 15, -57 19, -63 19, -63 15))"
AT = "TIMESTAMP('2024-05-06T07:08:09Z')"
LONG = "INTERVAL('2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z')"

# For each class: filters as text, and which items they find.
FILTERS: dict[str, dict[str, set[str]]] = {
    f"{CQL2}/basic-cql2": {
        f"{ORDINAL} = 0": {V0},
        f"{ORDINAL} <> 0": {V1, LAST},
        f"{ORDINAL} < 1": {V0},
        f"{ORDINAL} <= 1": ALL,
        f"{ORDINAL} > 0": {V1, LAST},
        f"{ORDINAL} >= 1 AND id = '{V1}'": {V1},
        f"id = '{V0}' OR id = '{LAST}'": {V0, LAST},
        f"NOT (id = '{V0}' OR id = '{LAST}')": {V1},
        "description IS NULL": ALL,
        "title IS NOT NULL": ALL,
        f"{ORDINAL} IS NOT NULL": ALL,
        f"datetime = {AT}": ALL,
        "datetime < DATE('2024-05-07')": ALL,
        "datetime < DATE('2024-05-06')": set(),
        f"platform:asset_id = '{LATEST}'": {LAST},
        f"properties.platform:asset_id = '{LATEST}'": {LAST},
        "collection = 'many'": {V0, V1},
    },
    f"{CQL2}/advanced-comparison-operators": {
        "id LIKE 'many-%'": {V0, V1},
        "id NOT LIKE '%-v_'": set(),
        f"{ORDINAL} BETWEEN 1 AND 2": {V1, LAST},
        f"{ORDINAL} NOT BETWEEN 1 AND 2": {V0},
        f"id IN ('{V0}', 'x')": {V0},
        f"id NOT IN ('{V0}', 'x')": {V1, LAST},
        f"{ORDINAL} IN (0, 7)": {V0},
    },
    f"{CQL2}/case-insensitive-comparison": {
        "CASEI(platform:platform_id) = CASEI('DDH')": ALL,
        "CASEI(id) LIKE CASEI('MANY-%')": {V0, V1},
        "platform:platform_id = 'DDH'": set(),
    },
    f"{CQL2}/accent-insensitive-comparison": {
        "ACCENTI(platform:platform_id) = ACCENTI('ddḣ')": ALL,
        "platform:platform_id = 'ddḣ'": set(),
    },
    f"{CQL2}/basic-spatial-functions": {
        "S_INTERSECTS(geometry, POINT(-60 16))": ALL,
        "S_INTERSECTS(geometry, POINT(10 16))": set(),
        f"S_INTERSECTS(geometry, {AREA})": ALL,
        "S_INTERSECTS(geometry, BBOX(-61, 16, -60, 17))": ALL,
        "NOT S_INTERSECTS(geometry, BBOX(-61, 16, -60, 17))": set(),
    },
    f"{CQL2}/temporal-functions": {
        "T_AFTER(datetime, DATE('2024-05-05')) AND T_BEFORE(datetime, DATE('2024-05-07'))": ALL,
        f"T_DURING(datetime, {LONG})": ALL,
        f"T_INTERSECTS(datetime, {LONG})": ALL,
        f"T_DISJOINT(datetime, {LONG})": set(),
        f"T_EQUALS(datetime, {AT})": ALL,
        f"T_CONTAINS({LONG}, datetime)": ALL,
        "T_INTERSECTS(datetime, INTERVAL('..', '2020-01-01'))": set(),
        "T_STARTS(INTERVAL('2024-05-06T07:08:09Z', '2024-06-01'), INTERVAL(datetime, '2024-07-01'))": ALL,
        "T_STARTEDBY(INTERVAL(datetime, '2024-07-01'), INTERVAL(datetime, '2024-06-01'))": ALL,
        "T_FINISHES(INTERVAL('2024-02-01', datetime), INTERVAL('2024-01-01', datetime))": ALL,
        "T_FINISHEDBY(INTERVAL('2024-01-01', datetime), INTERVAL('2024-02-01', datetime))": ALL,
        "T_MEETS(INTERVAL('2024-01-01', datetime), INTERVAL(datetime, '2025-01-01'))": ALL,
        "T_METBY(INTERVAL(datetime, '2025-01-01'), INTERVAL('2024-01-01', datetime))": ALL,
        "T_OVERLAPS(INTERVAL('2024-01-01', '2024-06-01'), INTERVAL(datetime, '2025-01-01'))": ALL,
        "T_OVERLAPPEDBY(INTERVAL(datetime, '2025-01-01'), INTERVAL('2024-01-01', '2024-06-01'))": ALL,
    },
    f"{CQL2}/array-functions": {
        "A_CONTAINS(stac_extensions, ('https://stac-extensions.github.io/file/v2.1.0/schema.json'))": ALL,
        "A_CONTAINS(stac_extensions, ('x', 'y'))": set(),
        "A_OVERLAPS(stac_extensions, ('x', 'https://stac-extensions.github.io/file/v2.1.0/schema.json'))": ALL,
        "A_CONTAINEDBY(stac_extensions, ('x', 'y'))": set(),
        "A_EQUALS(stac_extensions, ('x', 'y'))": set(),
    },
    f"{CQL2}/property-property": {
        f"platform:revision > {ORDINAL}": {V0},
        f"platform:version_label = {ORDINAL}": ALL,
    },
}
# What is tried in other tests here, and by the validator.
OTHERS = {
    f"{CQL2}/cql2-text",
    f"{CQL2}/cql2-json",
    f"{FEATURES}-3/1.0/conf/filter",
    f"{FEATURES}-3/1.0/conf/features-filter",
    f"{FEATURES}-1/1.0/conf/core",
    f"{FEATURES}-1/1.0/conf/geojson",
    f"{FEATURES}-1/1.0/conf/oas30",
    "http://www.opengis.net/spec/ogcapi-common-2/1.0/conf/simple-query",
    *(f"{STAC}/v1.0.0/{name}" for name in ("core", "collections", "ogcapi-features", "item-search")),
    *(f"{STAC}/v1.0.0-rc.1/collection-search{name}" for name in ("", "#filter", "#free-text")),
    f"{STAC}/v1.1.0/collection-search#sort",
    f"{STAC}/v1.0.0-rc.2/item-search#filter",
    *(f"{STAC}/v1.{minor}.0/{name}#sort" for minor in (0, 1) for name in ("item-search", "ogcapi-features")),
    *(f"{STAC}/v1.0.0/{name}#fields" for name in ("item-search", "ogcapi-features")),
}


def _ids(document: dict[str, Any]) -> set[str]:
    return {item["id"] for item in document["features"]}


async def test_every_class_that_is_claimed_is_tried(internal: AsyncClient) -> None:
    claimed = (await internal.get("/stac/conformance")).json()["conformsTo"]
    assert set(claimed) == {*FILTERS, *OTHERS}
    assert (await internal.get("/stac/")).json()["conformsTo"] == claimed


@pytest.mark.parametrize("kind", FILTERS)
async def test_filters_find_what_they_say(internal: AsyncClient, kind: str) -> None:
    found, expected = {}, FILTERS[kind]
    for text in expected:
        response = await internal.get("/stac/search", params={"filter": text})
        found[text] = _ids(response.json()) if response.status_code == 200 else response.text
    assert found == expected


@pytest.mark.parametrize("path", ["/stac/search", "/stac/collections/many/items"])
async def test_a_filter_can_be_text_or_json(internal: AsyncClient, path: str) -> None:
    given = {"op": "=", "args": [{"property": "id"}, V0]}
    for params in ({"filter": f"id = '{V0}'"}, {"filter": json.dumps(given), "filter-lang": "cql2-json"}):
        assert _ids((await internal.get(path, params=params)).json()) == {V0}
    crs = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
    body = {"filter": given, "filter-lang": "cql2-json", "filter-crs": crs}
    assert _ids((await internal.post("/stac/search", json=body)).json()) == {V0}


async def test_items_come_in_the_order_that_is_asked_for(internal: AsyncClient) -> None:
    async def order(sortby: str, path: str = "/stac/search") -> list[str]:
        found = (await internal.get(path, params={"sortby": sortby})).json()
        return [item["id"] for item in found["features"]]

    assert await order("id") == [LAST, V0, V1]
    assert await order(f"-properties.{ORDINAL},+id") == [LAST, V1, V0]
    assert await order("-id", "/stac/collections/many/items") == [V1, V0]


@pytest.mark.parametrize("path", ["/stac/search", "/stac/collections/latest/items"])
async def test_fields_can_be_chosen(internal: AsyncClient, path: str) -> None:
    async def keys(fields: str) -> set[str]:
        response = await internal.get(path, params={"fields": fields, "ids": LAST})
        assert response.headers["content-type"] == "application/geo+json"
        (item,) = response.json()["features"]
        return set(item) | {f"properties.{name}" for name in item.get("properties", ())}

    assert await keys("properties.platform:revision,-links") == {
        *("id", "collection", "properties", "properties.platform:revision")
    }
    without = await keys("-assets,-geometry,-id")
    assert not {"assets", "geometry"} & without
    assert {"id", "links", "bbox", "properties.datetime"} <= without
    (item,) = (await internal.get(path, params={"fields": "assets.data.href,links", "ids": LAST})).json()["features"]
    assert item["assets"] == {"data": {"href": "urn:graticule:blob:silver/ddh/latest-v1%20%C3%A9.tif"}}
    assert any(link["href"].startswith(f"{HOST}/tiles/{LATEST}/") for link in item["links"])


async def test_collections_are_searched(internal: AsyncClient) -> None:
    async def found(**params: Any) -> list[str]:
        return [each["id"] for each in (await internal.get("/stac/collections", params=params)).json()["collections"]]

    assert await found(sortby="id") == ["latest", "many"]
    assert await found(sortby="-id") == ["many", "latest"]
    assert await found(filter="title = 'many'") == ["many"]
    assert await found(q="latest") == ["latest"]
    assert await found(q="latest,many", sortby="id") == ["latest", "many"]
    assert await found(q="elsewhere") == []
    assert await found(datetime="2024-01-01T00:00:00Z/..", bbox="-61,16,-60,17", sortby="id") == ["latest", "many"]
    first = (await internal.get("/stac/collections", params={"limit": 1, "sortby": "id"})).json()
    assert (first["numberMatched"], first["numberReturned"]) == (2, 1)
    (following,) = [link["href"] for link in first["links"] if link["rel"] == "next"]
    assert [each["id"] for each in (await internal.get(following)).json()["collections"]] == ["many"]


async def test_a_box_may_have_heights(internal: AsyncClient) -> None:
    inside, outside = [-61, 16, -50, -60, 17, 9000], [10, 16, -50, 11, 17, 9000]
    for box, found in ((inside, ALL), (outside, set())):
        text = ",".join(map(str, box))
        searched = [
            await internal.get("/stac/search", params={"bbox": text}),
            await internal.post("/stac/search", json={"bbox": box}),
        ]
        for answer in searched:
            assert {each["id"] for each in answer.json()["features"]} == found, answer.text
        items = (await internal.get("/stac/collections/many/items", params={"bbox": text})).json()
        assert {each["id"] for each in items["features"]} == found - {LAST}
        collections = (await internal.get("/stac/collections", params={"bbox": text})).json()
        assert len(collections["collections"]) == 2  # these say that they are everywhere
    for wrong in ([-61, 16, 9000, -60, 17, -50], [-61, 17, 0, -60, 16, 1], [-61, 16, None, -60, 17, 1]):
        assert (await internal.post("/stac/search", json={"bbox": wrong})).status_code == 400, wrong


async def test_a_page_of_a_search_with_heights_leads_to_the_next(internal: AsyncClient) -> None:
    asked = {"bbox": [-61, 16, -50, -60, 17, 9000], "limit": 2}
    first = (await internal.post("/stac/search", json=asked)).json()
    (following,) = [link for link in first["links"] if link["rel"] == "next"]
    second = (await internal.post("/stac/search", json=following["body"])).json()
    assert {each["id"] for page in (first, second) for each in page["features"]} == ALL


async def test_every_link_leads_to_what_it_says(internal: AsyncClient) -> None:
    pages = ["/stac", "/stac/", "/stac/collections", "/stac/collections/many", "/stac/collections/many/items?limit=1"]
    pages += [f"/stac/collections/many/items/{V0}", "/stac/search?limit=1"]
    for page in pages:
        document = (await internal.get(page, follow_redirects=True)).json()
        links = [*document["links"], *(link for each in document.get("features", ()) for link in each["links"])]
        for link in links:
            assert link["href"].startswith(f"{HOST}/"), link
            if link["rel"] != "tilejson" and link.get("method", "GET") == "GET":
                answer = await internal.get(link["href"])
                assert answer.status_code == 200, link
                assert answer.headers["content-type"].removesuffix("; charset=utf-8") == link["type"], link


async def test_the_landing_page_leads_to_all_that_there_is(internal: AsyncClient) -> None:
    page = (await internal.get("/stac/")).json()
    assert (page["type"], page["title"], page["stac_version"]) == ("Catalog", "Graticule", "1.1.0")
    leads = {(link["rel"], link["href"].removeprefix(HOST)) for link in page["links"]}
    queryables = "http://www.opengis.net/def/rel/ogc/1.0/queryables"
    assert leads == {
        *(("self", "/stac/"), ("root", "/stac/"), ("data", "/stac/collections"), ("conformance", "/stac/conformance")),
        *(("search", "/stac/search"), (queryables, "/stac/queryables"), ("service-desc", "/stac/api")),
        *(("service-desc", "/stac/openapi-3.0.json"), ("service-doc", "/stac/api.html")),
    }


async def test_the_description_is_openapi(internal: AsyncClient) -> None:
    told = (await internal.get("/stac/api")).json()
    assert told["openapi"].startswith("3.1")
    assert told["servers"] == [{"url": f"{HOST}/stac"}]
    assert {"/", "/conformance", "/collections", "/search", "/queryables"} < set(told["paths"])
    assert "conf" not in told["components"]["schemas"]["SearchPostRequest"]["properties"]


async def test_the_description_has_the_bounds_of_limit(internal: AsyncClient) -> None:
    for path in ("/stac/api", "/stac/openapi-3.0.json"):
        told = (await internal.get(path)).json()
        for name in ("/search", "/collections", "/collections/{collection_id}/items"):
            (limit,) = [each["schema"] for each in told["paths"][name]["get"]["parameters"] if each["name"] == "limit"]
            assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 1000, 10)
        assert "1000" in told["components"]["schemas"]["SearchPostRequest"]["properties"]["limit"]["description"]


async def test_queryables_are_a_schema(internal: AsyncClient) -> None:
    for path in ("/stac/queryables", "/stac/collections/many/queryables"):
        found = (await internal.get(path)).json()
        assert found["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert found["$id"] == f"{HOST}{path}"
        assert {"id", "datetime", "geometry"} <= set(found["properties"])


async def test_items_lead_to_the_services(internal: AsyncClient) -> None:
    async def addresses(path: str) -> tuple[str, str]:
        item = (await internal.get(path)).json()
        (tiles,) = [link["href"] for link in item["links"] if link["rel"] == "tilejson"]
        return tiles, item["assets"]["thumbnail"]["href"]

    tiles = f"{HOST}/tiles/{MANY}"
    assert await addresses(f"/stac/collections/many/items/{V0}") == (
        f"{tiles}/WebMercatorQuad/tilejson.json?version=0",
        f"{tiles}/preview.png?version=0&max_size=512",
    )
    tiles = f"{HOST}/tiles/{LATEST}"
    assert await addresses(f"/stac/collections/latest/items/{LAST}") == (
        f"{tiles}/WebMercatorQuad/tilejson.json",
        f"{tiles}/preview.png?max_size=512",
    )
