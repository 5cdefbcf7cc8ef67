"""The id of an item lasts: a new revision takes it over when it comes into service, and not before."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from httpx import ASGITransport, AsyncClient
from tests.conftest import TestDatabase, new_database
from tests.integration.serve.stac.conftest import HOST, LATEST, Catalogue, serving

from graticule.core.audience import Audience
from graticule.core.table import DatabaseRole

pytestmark = pytest.mark.asyncio(loop_scope="function")

ITEM, PENDING = "latest-v1", "latest-v1-r2"
SUPERSEDE = f"""
    INSERT INTO dagapp.asset_revisions (asset_id, version_ordinal, revision, outputs, approval_state, clearance_state,
        created_at)
    SELECT asset_id, version_ordinal, 1, jsonb_build_object('stac_item_id', stac_item_id), 'approved', 'ouo', now()
    FROM dagapp.asset_versions WHERE asset_id = '{LATEST}'
"""
JOB = f"""
    INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
    VALUES (repeat('a', 64), 'raster_ingest', '4', 'Raster ingest', '{{}}');
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, input_params)
    VALUES ('second', 'raster_ingest', '4', repeat('a', 64), jsonb_build_object(
        'blob_prefix', 'x/r2', 'stac_item_id', '{PENDING}', 'stac_collection_id', 'latest'
    ))
"""
BEGIN = """
    UPDATE dagapp.asset_versions
    SET revision = 2, processing_state = 'processing', approval_state = %s, current_job_id = 'second'
"""
COMPLETE = f"""
    UPDATE dagapp.asset_versions
    SET processing_state = 'completed', blob_path = 'silver/x/r2/cog.tif', stac_item_id = '{PENDING}'
"""
APPROVE = "UPDATE dagapp.asset_versions SET approval_state = 'approved', approved_revision = revision"


@pytest.fixture
def database() -> Iterator[TestDatabase]:
    """Return a catalogue with one version in service."""
    with new_database() as created:
        with psycopg.connect(created.url(), autocommit=True) as connection:
            catalogue = Catalogue(connection)
            catalogue.asset(LATEST, latest=1)
            catalogue.version(LATEST, 1, "latest", approved=True, exported=False)
            connection.execute(SUPERSEDE.encode())
            connection.execute(JOB.encode())
        yield created


@pytest.fixture
def orchestrator(database: TestDatabase) -> Iterator[psycopg.Connection[Any]]:
    """Connect with the rights by which versions change."""
    with psycopg.connect(database.url(DatabaseRole.ORCHESTRATOR), autocommit=True) as connection:
        yield connection


@pytest_asyncio.fixture
async def client(database: TestDatabase) -> AsyncIterator[AsyncClient]:
    """Return a client of the internal STAC API."""
    async with (
        serving(database, Audience.INTERNAL) as app,
        AsyncClient(transport=ASGITransport(app), base_url=HOST) as opened,
    ):
        yield opened


async def _served(client: AsyncClient) -> list[tuple[str, int]]:
    """Return the id and the revision of all items, which each have an address of their own."""
    items = (await client.get("/stac/search")).json()["features"]
    for item in items:
        alone = await client.get(f"/stac/collections/latest/items/{item['id']}")
        assert alone.json()["properties"] == item["properties"]
    return [(item["id"], item["properties"]["platform:revision"]) for item in items]


def _catalogue_second_revision(database: TestDatabase) -> None:
    with psycopg.connect(database.url(), autocommit=True) as connection:
        Catalogue(connection).item(LATEST, 1, "latest", PENDING, "silver", revision=2)


async def test_an_approved_revision_takes_the_id_of_the_one_before(
    database: TestDatabase, orchestrator: psycopg.Connection[Any], client: AsyncClient
) -> None:
    orchestrator.execute(BEGIN, ["pending_review"])
    _catalogue_second_revision(database)
    orchestrator.execute(COMPLETE.encode())
    assert await _served(client) == [(ITEM, 1)]

    orchestrator.execute(APPROVE.encode())
    assert await _served(client) == [(ITEM, 2)]
    assert (await client.get(f"/stac/collections/latest/items/{PENDING}")).status_code == 404
    row = orchestrator.execute("SELECT stac_item_id FROM dagapp.asset_versions").fetchone()
    assert row == (ITEM,)


async def test_a_revision_of_the_same_content_takes_the_id_when_it_is_made(
    database: TestDatabase, orchestrator: psycopg.Connection[Any], client: AsyncClient
) -> None:
    orchestrator.execute(BEGIN, ["approved"])
    _catalogue_second_revision(database)
    orchestrator.execute(f"{COMPLETE}, approved_revision = revision".encode())
    assert await _served(client) == [(ITEM, 2)]


async def test_an_id_that_was_not_catalogued_stays_as_it_is(
    orchestrator: psycopg.Connection[Any], client: AsyncClient
) -> None:
    orchestrator.execute(BEGIN, ["pending_review"])
    orchestrator.execute(COMPLETE.encode())
    orchestrator.execute(APPROVE.encode())
    row = orchestrator.execute("SELECT stac_item_id FROM dagapp.asset_versions").fetchone()
    assert row == (PENDING,)
    assert await _served(client) == []
