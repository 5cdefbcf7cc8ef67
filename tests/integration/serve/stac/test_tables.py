"""A table of features in the STAC API: from its approval on for the house, from its export on for the public."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from httpx import ASGITransport, AsyncClient
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase, new_database
from tests.integration.serve.stac.conftest import HOST, serving
from tests.unit.handlers.stac.outputs import TIMES
from tests.unit.handlers.stac.table_outputs import geoparquet, table_inputs
from tests.unit.handlers.stac.valid import assert_valid

from graticule.core.audience import Audience
from graticule.handlers.publish.documents import Copied, public_collection, public_item
from graticule.handlers.publish.inputs import Export
from graticule.handlers.stac.collections import Holding, new_collection
from graticule.handlers.stac.inputs import CollectionText
from graticule.handlers.stac.items import Stored
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.stac.tables import table_item
from graticule.serve.stac.documents import ItemVersion, served_item

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASSET, ITEM = "d" * 32, "parcels-v1"
FEATURES = f"{HOST}/features/{ASSET}/collections/features"
ROWS = f"""
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type,
        latest_approved_version_ordinal)
    VALUES ('{ASSET}', 'ddh', '{{"dataset_id": "d"}}', 'vector', 1);
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, processing_state, table_name,
        stac_item_id, stac_collection_id)
    VALUES ('{ASSET}', 1, '1', 'completed', 'parcels_v1', '{ITEM}', 'parcels');
"""
APPROVE = """
    UPDATE dagapp.asset_versions
    SET approval_state = 'approved', reviewer = 'rita', reviewed_at = now(), approved_revision = 1
"""
EXPORT = """
    UPDATE dagapp.geospatial_assets SET clearance_state = 'public', cleared_at = now(), cleared_by = 'rita',
        made_public_at = now(), made_public_by = 'rita';
    UPDATE dagapp.asset_versions SET exported_revision = 1, first_exported_at = now();
"""


def _items(exports: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the item of a table, and that of its copy."""
    given = TableInputs.model_validate(
        table_inputs(stac_item_id=ITEM, stac_collection_id="parcels", asset_id=ASSET, **exports)
    )
    stored = {key: Stored(file.path, 5, file.checksum) for key, file in given.exports.items()}
    item = table_item(given, stored, TIMES)
    version = {"asset_id": ASSET, "version_ordinal": 1, "revision": 1, "version_prefix": "ddh/d/aaaaaaaa/v1"}
    copies = {file.path: Copied(file.path, "external/x.parquet", 5, None) for file in stored.values()}
    exported = Export.model_validate({**version, "data_type": "vector"})
    return item, public_item(item, "parcels-public", exported, copies)


@pytest.fixture(scope="module")
def catalogue() -> Iterator[TestDatabase]:
    with new_database() as created:
        with psycopg.connect(created.url(), autocommit=True) as connection:
            connection.execute(ROWS.encode())
            connection.execute("SET search_path = pgstac, public")
            collection = new_collection("parcels", CollectionText(), holds=Holding.FEATURES)
            for each in (collection, public_collection(collection)):
                connection.execute("SELECT create_collection(%s)", [Jsonb(each)])
            for item in _items({"geoparquet": geoparquet()}):
                connection.execute("SELECT create_item(%s)", [Jsonb(item)])
        yield created


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(catalogue: TestDatabase) -> AsyncIterator[dict[Audience, AsyncClient]]:
    async with AsyncExitStack() as opened:
        made = {}
        for audience in Audience:
            app = await opened.enter_async_context(serving(catalogue, audience))
            client = AsyncClient(transport=ASGITransport(app), base_url=HOST)
            made[audience] = await opened.enter_async_context(client)
        yield made


async def test_a_table_is_seen_when_it_is_approved_and_its_copy_when_it_is_exported(
    clients: dict[Audience, AsyncClient], catalogue: TestDatabase
) -> None:
    async def seen() -> dict[Audience, list[str]]:
        answers = {audience: (await client.get("/stac/search")).json() for audience, client in clients.items()}
        return {audience: [item["collection"] for item in found["features"]] for audience, found in answers.items()}

    with psycopg.connect(catalogue.url(), autocommit=True) as connection:
        assert await seen() == {Audience.INTERNAL: [], Audience.EXTERNAL: []}
        connection.execute(APPROVE)
        assert await seen() == {Audience.INTERNAL: ["parcels"], Audience.EXTERNAL: []}
        connection.execute(EXPORT)
        assert await seen() == {Audience.INTERNAL: ["parcels"], Audience.EXTERNAL: ["parcels-public"]}
    for audience, zone, path in (
        (Audience.INTERNAL, "parcels", "silver/direct/d/s/v1/r1/geoparquet/parcels.parquet"),
        (Audience.EXTERNAL, "parcels-public", "external/x.parquet"),
    ):
        item = (await clients[audience].get(f"/stac/collections/{zone}/items/{ITEM}")).json()
        assert {key: asset["href"] for key, asset in item["assets"].items()} == {
            "geoparquet": f"urn:graticule:blob:{path}",
            "features": f"{FEATURES}/download.geojson",
        }
        links = {link["rel"].rpartition("/")[2]: link["href"] for link in item["links"]}
        assert links["tilejson"] == f"{FEATURES}/tiles/WebMercatorQuad/tilejson.json"
        assert links["items"] == f"{FEATURES}/items"
        assert_valid(item)


@pytest.mark.parametrize(("mode", "query"), [("latest_only", ""), ("all_versions", "?version=1")])
@pytest.mark.parametrize("copy", [0, 1], ids=["original", "copy"])
async def test_without_files_the_asset_leads_to_the_features(mode: str, query: str, copy: int) -> None:
    item = _items({})[copy]
    served = served_item(item, ItemVersion(ASSET, 1, mode), "https://maps.test/data/stac/")
    download = {
        "href": f"https://maps.test/data/features/{ASSET}/collections/features/download.geojson{query}",
        "type": "application/geo+json",
        "roles": ["data"],
    }
    assert served["assets"] == {"features": {**download, "title": "All features (GeoJSON)"}}
    # An item of an older release leads to the first page.
    older = {**item, "assets": {"features": {**download, "href": f"/features/{ASSET}/collections/features/items"}}}
    for whole in (True, False):
        led = served_item(older, ItemVersion(ASSET, 1, mode), "https://maps.test/data/stac/", whole=whole)
        assert led["assets"]["features"]["href"] == download["href"]
    assert_valid(served)
    hidden = served_item(item, None, "https://maps.test/data/stac/")
    assert (hidden["assets"], [link["rel"] for link in hidden["links"]]) == ({}, ["collection"])
