"""A catalogue with something for each audience, and the STAC API on it with the roles that it has in a deployment.

| asset | versions | internal sees | the public sees |
|---|---|---|---|
| MANY, all_versions, public | 0 and 1 approved, 2 awaits its review; 1 is exported | 0, 1 | 1 |
| LATEST, latest_only, for the house | 0 and 1 approved | 1 | nothing |
| SECRET | 0 awaits its review | nothing | nothing |
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase, new_database
from tests.unit.handlers.stac.outputs import STORED, TIMES, cog, item_inputs

from graticule.core.audience import Audience
from graticule.handlers.stac.collections import new_collection
from graticule.handlers.stac.inputs import CollectionText, ItemInputs
from graticule.handlers.stac.items import Stored, output_item
from graticule.serve.pools import opened_pool
from graticule.serve.stac.app import create_stac
from graticule.serve.stac.connections import SESSION_SETTINGS, prepare_connection

MANY, LATEST, SECRET = "a" * 32, "b" * 32, "c" * 32
HOST = "http://served.test"

ASSET = """
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type, url_mode, clearance_state,
        cleared_at, cleared_by, made_public_at, made_public_by, latest_approved_version_ordinal)
    VALUES (%(asset_id)s, 'ddh', '{"dataset_id": "d"}', 'raster', %(url_mode)s, %(clearance)s, now(), 'rita', now(),
        'rita', %(latest)s)
"""
VERSION = """
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, approval_state, reviewer, reviewed_at,
        approved_revision, processing_state, blob_path, stac_item_id, stac_collection_id, exported_revision,
        external_blob_path, first_exported_at)
    VALUES (%(asset_id)s, %(ordinal)s, %(ordinal)s::text, %(approval)s, 'rita', now(), %(approved)s, 'completed',
        'silver/x.tif', %(item_id)s, %(collection_id)s, %(exported)s, 'external/x.tif',
        CASE WHEN %(exported)s::int > 0 THEN now() END)
"""


class Catalogue:
    """Writes assets and their items."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        connection.execute("SET search_path = pgstac, public")

    def asset(self, asset_id: str, *, url_mode: str = "latest_only", public: bool = False, latest: int | None) -> None:
        """Write an asset."""
        given = {"clearance": "public" if public else "ouo", "url_mode": url_mode, "latest": latest}
        self._connection.execute(ASSET, {"asset_id": asset_id, **given})

    def version(self, asset_id: str, ordinal: int, collection_id: str, *, approved: bool, exported: bool) -> None:
        """Write a version and its item; of an exported one also the item for the public."""
        item_id = f"{collection_id}-v{ordinal}"
        states = {"approval": "approved" if approved else "pending_review", "approved": 1 if approved else None}
        row = {"asset_id": asset_id, "ordinal": ordinal, "item_id": item_id, "collection_id": collection_id}
        self._connection.execute(VERSION, {**row, **states, "exported": 1 if exported else None})
        self.item(asset_id, ordinal, collection_id, item_id, "silver")
        if exported:
            self.item(asset_id, ordinal, f"{collection_id}-public", item_id, "external")

    def item(
        self, asset_id: str, ordinal: int, collection_id: str, item_id: str, zone: str, *, revision: int = 1
    ) -> None:
        """Write an item, and its collection if there is none."""
        text = CollectionText(title=collection_id, description=f"Ämter of {collection_id}", keywords=["raster"])
        if not self._connection.execute("SELECT FROM collections WHERE id = %s", [collection_id]).fetchall():
            self._connection.execute("SELECT create_collection(%s)", [Jsonb(new_collection(collection_id, text))])
        ids = {"stac_item_id": item_id, "stac_collection_id": collection_id}
        version = {"asset_id": asset_id, "version_ordinal": ordinal, "version_label": str(ordinal)}
        given = item_inputs(cog(), **ids, **version, revision=revision)
        stored = Stored(f"{zone}/ddh/{item_id} é.tif", STORED.size, STORED.sha256)
        document = output_item(ItemInputs.model_validate(given), stored, TIMES)
        self._connection.execute("SELECT create_item(%s)", [Jsonb(document)])


@pytest.fixture(scope="session")
def served_catalogue() -> Iterator[TestDatabase]:
    """Give one database to all tests here: they only read it."""
    with new_database() as created:
        with psycopg.connect(created.url(), autocommit=True) as connection:
            _fill(Catalogue(connection))
        yield created


def _fill(catalogue: Catalogue) -> None:
    catalogue.asset(MANY, url_mode="all_versions", public=True, latest=1)
    catalogue.asset(LATEST, latest=1)
    catalogue.asset(SECRET, latest=None)
    for ordinal in range(3):
        catalogue.version(MANY, ordinal, "many", approved=ordinal < 2, exported=ordinal == 1)
    for ordinal in range(2):
        catalogue.version(LATEST, ordinal, "latest", approved=True, exported=False)
    catalogue.version(SECRET, 0, "secret", approved=False, exported=False)


@asynccontextmanager
async def serving(database: TestDatabase, audience: Audience, **settings: str) -> AsyncIterator[FastAPI]:
    """Give an application that has the STAC API where the service has it."""
    outer, inner = FastAPI(), create_stac(audience)
    outer.mount("/stac", inner)
    url = database.url(audience.role)
    wanted = {**SESSION_SETTINGS, **settings}
    async with opened_pool(
        url, audience, size=2, name="test", settings=wanted, prepare=prepare_connection
    ) as inner.state.readpool:
        yield outer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(served_catalogue: TestDatabase) -> AsyncIterator[dict[Audience, AsyncClient]]:
    """Give a client of the API of each audience; its first requests take longest, so all tests of a module share it."""
    async with AsyncExitStack() as opened:
        made = {}
        for audience in Audience:
            app = await opened.enter_async_context(serving(served_catalogue, audience))
            client = AsyncClient(transport=ASGITransport(app), base_url=HOST)
            made[audience] = await opened.enter_async_context(client)
        yield made


@pytest.fixture(scope="module")
def internal(clients: dict[Audience, AsyncClient]) -> AsyncClient:
    """Give a client of the house."""
    return clients[Audience.INTERNAL]


@pytest.fixture(scope="module")
def external(clients: dict[Audience, AsyncClient]) -> AsyncClient:
    """Give a client of the public."""
    return clients[Audience.EXTERNAL]
