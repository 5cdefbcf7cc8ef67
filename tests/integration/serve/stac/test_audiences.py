"""Each audience sees what it may see, by whatever way it asks; the rest is as if it were not there."""

from typing import Any

import pytest
from httpx import AsyncClient, Response
from tests.integration.serve.stac.conftest import HOST

from graticule.core.audience import Audience

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEEN = {
    Audience.INTERNAL: {("many", "many-v0"), ("many", "many-v1"), ("latest", "latest-v1")},
    Audience.EXTERNAL: {("many-public", "many-v1")},
}
ALL = SEEN[Audience.INTERNAL] | SEEN[Audience.EXTERNAL]
HIDDEN = {("many", "many-v2"), ("latest", "latest-v0"), ("secret", "secret-v0")}
COLLECTIONS = ["many", "many-public", "latest", "secret"]
EVERY = "".join(f"{name}-v{number}," for name in ("many", "latest", "secret") for number in range(3)).rstrip(",")


@pytest.fixture(scope="module", params=list(Audience))
def audience(request: pytest.FixtureRequest) -> Audience:
    return Audience(request.param)


@pytest.fixture(scope="module")
def client(clients: dict[Audience, AsyncClient], audience: Audience) -> AsyncClient:
    return clients[audience]


def _found(response: Response) -> set[tuple[str, str]]:
    assert response.status_code == 200, response.text
    return {(item["collection"], item["id"]) for item in response.json()["features"]}


@pytest.mark.parametrize(
    "query",
    [
        "",
        f"?ids={EVERY}",
        f"?collections={','.join(COLLECTIONS)}",
        "?bbox=-180,-90,180,90",
        "?datetime=1990-01-01T00:00:00Z/..",
        "?filter=platform:version_ordinal >= 0",
        "?filter=NOT (id = 'x')",
        "?filter=id IS NOT NULL OR id IS NULL",
        "?sortby=-properties.platform:version_ordinal",
        "?fields=properties.platform:asset_id",
        '?intersects={"type":"Point","coordinates":[-60,16]}',
    ],
)
async def test_a_search_finds_what_an_audience_may_see(client: AsyncClient, audience: Audience, query: str) -> None:
    response = await client.get(f"/stac/search{query}")
    assert _found(response) == SEEN[audience]
    assert response.json()["numberMatched"] == response.json()["numberReturned"] == len(SEEN[audience])


async def test_a_search_by_post_finds_the_same(client: AsyncClient, audience: Audience) -> None:
    body = {"ids": EVERY.split(","), "filter": {"op": "<>", "args": [{"property": "id"}, "x"]}, "limit": 100}
    response = await client.post("/stac/search", json=body)
    assert _found(response) == SEEN[audience]
    assert response.json()["numberMatched"] == len(SEEN[audience])


async def test_pages_hold_what_an_audience_may_see(client: AsyncClient, audience: Audience) -> None:
    seen, address = [], f"{HOST}/stac/search?limit=1"
    while address:
        page = await client.get(address)
        assert page.json()["numberMatched"] == len(SEEN[audience])
        seen += list(_found(page))
        address = _link(page.json(), "next")
    assert sorted(seen) == sorted(SEEN[audience])


async def test_a_token_of_a_hidden_item_is_as_one_of_none(client: AsyncClient, audience: Audience) -> None:
    answers = set()
    for collection, item in [*(ALL | HIDDEN) - SEEN[audience], ("many", "never-was")]:
        token = f"next:{collection.encode().hex()}:{item.encode().hex()}"
        response = await client.get("/stac/search", params={"token": token})
        answers.add((response.status_code, response.json()["detail"].replace(token, "")))
    assert [status for status, _ in answers] == [400], answers


async def test_collections_are_those_with_something_to_see(client: AsyncClient, audience: Audience) -> None:
    seen = {collection for collection, _ in SEEN[audience]}
    for query in ("", "?limit=100", "?filter=id <> 'x'", "?q=ämter", "?bbox=-180,-90,180,90", "?sortby=-id"):
        found = (await client.get(f"/stac/collections{query}")).json()
        assert {each["id"] for each in found["collections"]} == seen, query
        assert found["numberMatched"] == found["numberReturned"] == len(seen), query


async def test_what_is_hidden_is_not_there(client: AsyncClient, audience: Audience) -> None:
    seen = {collection for collection, _ in SEEN[audience]}
    for collection in [*COLLECTIONS, "never-was"]:
        for below in ("", "/items", "/queryables"):
            response = await client.get(f"/stac/collections/{collection}{below}")
            assert response.status_code == (200 if collection in seen else 404), (collection, below)
    for collection, item in ALL | HIDDEN:
        response = await client.get(f"/stac/collections/{collection}/items/{item}")
        assert response.status_code == (200 if (collection, item) in SEEN[audience] else 404), (collection, item)


async def test_items_of_a_collection_are_those_to_see(client: AsyncClient, audience: Audience) -> None:
    for collection in {collection for collection, _ in SEEN[audience]}:
        response = await client.get(f"/stac/collections/{collection}/items?limit=100")
        assert _found(response) == {each for each in SEEN[audience] if each[0] == collection}
        assert response.json()["numberMatched"] == len(_found(response))


async def test_the_public_reads_nothing_of_the_house(external: AsyncClient) -> None:
    told = [(await external.get(f"/stac{path}")).text for path in ("/", "/collections", "/search", "/queryables")]
    assert not any(word in text for text in told for word in ("silver", "secret", '"many"', "latest-v", "many-v0"))


def _link(document: dict[str, Any], rel: str) -> str:
    return next((str(link["href"]) for link in document["links"] if link["rel"] == rel), "")
