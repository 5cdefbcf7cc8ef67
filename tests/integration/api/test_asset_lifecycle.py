"""An asset from its first submission to its revival, over HTTP, with every row and event looked at."""

import pytest
from tests.integration.api.asset_platform import Platform, platform_of
from tests.integration.api.running import RunningApi


@pytest.fixture
async def platform(api: RunningApi) -> Platform:
    return await platform_of(api)


async def test_the_whole_life_of_an_asset(platform: Platform) -> None:
    first = await platform.submit()
    asset_id = first["asset_id"]
    assert (await platform.submit("V2", 409))["code"] == "version_unresolved"
    await platform.processed(first)
    version = await platform.version(asset_id, 0)
    assert version["processing_state"] == "completed"
    assert version["node_summary"] == {"total": 3, "completed": 3, "failed": 0, "current_node": None}
    approved = await platform.deed(asset_id, "approve", clearance_level="ouo")
    assert approved["version"]["approval_state"] == "approved"
    second = await platform.submit("V2")
    await platform.processed(second, "b")
    await platform.deed(asset_id, "reject", reason="clouds", request_id=second["request_id"])
    assert (await platform.submit("V3", 409))["code"] == "version_unresolved"
    again = await platform.submit("V2", overwrite=True)
    assert (again["version_ordinal"], again["revision"]) == (1, 2)
    await platform.processed(again, "c")
    refused = await platform.deed(asset_id, "approve", 409, request_id=second["request_id"], clearance_level="public")
    assert refused["code"] == "revision_changed"
    public = await platform.deed(asset_id, "approve", version_ordinal=1, revision=2, clearance_level="public")
    assert public["job_id"]
    downgraded = await platform.deed(asset_id, "clearance", version_ordinal=1, revision=2, clearance_level="ouo")
    assert "public" in downgraded["warning"]
    revoked = await platform.deed(asset_id, "revoke", reason="wrong place", request_id=again["request_id"])
    assert revoked["asset"]["latest_approved_version_ordinal"] == 0
    answer = await platform.client.delete(f"/api/v1/assets/{asset_id}/versions/1")
    assert answer.status_code == 200
    assert (await platform.deed(asset_id, "unpublish"))["asset"]["deleted_at"]
    revived = await platform.submit("V1")
    assert revived["version_ordinal"] == 2
    told = await platform.events(asset_id)
    assert {*told} >= {"created", "approved", "rejected", "revoked", "version_deleted", "unpublished", "revived"}
