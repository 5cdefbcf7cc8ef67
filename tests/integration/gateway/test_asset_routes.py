"""How an asset is described, and where it is served: to staff, and to the partner whose it is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.conftest import TestDatabase
from tests.integration.gateway.front import Front, address, problem_of, running_front, settings_of

SERVICES = "https://maps.example.org"


@pytest.fixture
async def front(database: TestDatabase, api: FastAPI, tmp_path: Path) -> AsyncIterator[Front]:
    async with running_front(settings_of(tmp_path, serve_url=address(SERVICES)), database, api) as running:
        yield running


async def approved(front: Front, **more: Any) -> str:
    """Let a version be submitted, processed and approved, and give its asset."""
    receipt = await front.submitted(**more)
    asset_id: str = receipt["asset_id"]
    front.process(asset_id)
    decision = {"request_id": receipt["request_id"], "clearance_level": "ouo"}
    await front.post("reviewer", "/api/platform/approve", decision)
    return asset_id


async def test_a_description_is_read_as_the_orchestrator_gives_it(front: Front) -> None:
    asset_id = await approved(front)
    path = f"/api/assets/{asset_id}/versions/0/metadata"
    assert (await front.get("partner", path))["version"] == 0
    front.execute(
        "INSERT INTO dagapp.layer_metadata (asset_id, version_ordinal, title, keywords, updated_by)"
        " VALUES (%s, 0, 'Roads', '{a,b}', 'rita')",
        asset_id,
    )
    told = await front.get("operator", path)
    assert (told["title"], told["keywords"], told["updated_by"], told["columns"]) == ("Roads", ["a", "b"], "rita", None)
    own = await front.get("partner", path)
    assert own == {**told, "updated_by": None}
    problem_of(await front.ask("stranger", "GET", path), 404)
    for missing in (f"/api/assets/{'f' * 32}/versions/0/metadata", f"/api/assets/{asset_id}/versions/7/metadata"):
        problem_of(await front.ask("operator", "GET", missing), 404)


async def test_features_tell_their_columns_to_the_gateway_too(front: Front) -> None:
    asset_id = await approved(front)
    front.execute("CREATE TABLE geo.described (fid int, name text, size int, geom geometry)")
    try:
        front.execute("COMMENT ON COLUMN geo.described.size IS 'Size (m²)'")
        front.execute("UPDATE dagapp.asset_versions SET table_name = 'described' WHERE asset_id = %s", asset_id)
        told = await front.get("partner", f"/api/assets/{asset_id}/versions/0/metadata")
    finally:
        front.execute("DROP TABLE geo.described")
    assert told["title"] is None
    assert told["columns"] == [
        {"name": "name", "field": "name", "type": "text"},
        {"name": "size", "field": "Size (m²)", "type": "integer"},
    ]


async def served(front: Front, who: str, asset_id: str) -> dict[int, dict[str, str]]:
    items = (await front.get(who, f"/api/assets/{asset_id}/services"))["items"]
    return {item["version_ordinal"]: item["service_urls"] for item in items}


async def test_the_versions_that_are_in_service_are_told_with_their_addresses(front: Front) -> None:
    receipt = await front.submitted()
    asset_id = receipt["asset_id"]
    path = f"/api/assets/{asset_id}/services"
    assert await served(front, "partner", asset_id) == {}, "not approved yet"
    front.process(asset_id)
    await front.post("reviewer", "/api/platform/approve", {"asset_id": asset_id, "clearance_level": "ouo"})
    own = f"{SERVICES}/features/{asset_id}"
    latest = {"features": own, "vector_tiles": f"{own}/collections/features/tiles"}
    for who in ("partner", "reviewer", "operator"):
        assert await served(front, who, asset_id) == {0: latest}
    status = await front.get("partner", f"/api/platform/status/{receipt['request_id']}")
    assert status["service_urls"] == latest
    problem_of(await front.ask("stranger", "GET", path), 404)
    problem_of(await front.ask("operator", "GET", f"/api/assets/{'f' * 32}/services"), 404)
    await approved(front, version_id="2026-04")
    assert await served(front, "partner", asset_id) == {1: latest}, "the latest alone"
    await front.ask("reviewer", "PATCH", f"/api/assets/{asset_id}", json={"url_mode": "all_versions"})
    tiles = f"{own}/collections/features/tiles"
    earlier = {"features": f"{own}?version=0", "vector_tiles": f"{tiles}?version=0"}
    assert await served(front, "partner", asset_id) == {1: latest, 0: earlier}
    first = await front.get("partner", path, limit=1)
    rest = await front.get("partner", path, limit=1, cursor=first["next"])
    assert [item["version_ordinal"] for item in first["items"] + rest["items"]] == [1, 0]
    await front.post("reviewer", "/api/platform/unpublish", {"asset_id": asset_id})
    assert await served(front, "partner", asset_id) == {}
