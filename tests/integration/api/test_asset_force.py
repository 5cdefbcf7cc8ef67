"""Many at once over HTTP: one wins, and all others are told why not."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.integration.api.asset_platform import SUBMISSION, Platform, platform_of
from tests.integration.api.running import RunningApi

MANY = 50


@pytest.fixture
async def platform(api: RunningApi) -> Platform:
    return await platform_of(api)


async def at_once(platform: Platform, count: int, path: str, body: dict[str, Any]) -> Counter[tuple[int, str | None]]:
    """Send the same request many times, and count the answers by status and code."""
    answers = await asyncio.gather(*(platform.client.post(path, json=body) for _ in range(count)))
    return Counter((answer.status_code, answer.json().get("code")) for answer in answers)


async def test_of_fifty_submissions_of_one_asset_at_once_one_makes_a_version(platform: Platform) -> None:
    found = await at_once(platform, MANY, "/api/v1/submit", SUBMISSION)
    assert found == {(202, None): 1, (409, "version_exists"): MANY - 1}
    asset_id = (await platform.api.get("/api/v1/assets"))["items"][0]["asset_id"]
    assert (await platform.events(asset_id)).count("version_added") == 1
    assert len((await platform.api.get("/api/v1/jobs"))["items"]) == 1


async def test_fifty_approvals_at_once_leave_one_event(platform: Platform) -> None:
    receipt = await platform.submit()
    await platform.processed(receipt)
    path = f"/api/v1/assets/{receipt['asset_id']}/approve"
    found = await at_once(platform, MANY, path, {"clearance_level": "public"})
    assert {*found} <= {(200, None), (409, "stale_version")}
    assert found[200, None] >= 1
    events = await platform.events(receipt["asset_id"])
    assert (events.count("approved"), events.count("clearance_changed")) == (1, 0)
    jobs = (await platform.api.get("/api/v1/jobs"))["items"]
    assert len([job for job in jobs if job["workflow_id"] == "adf_export"]) == 1


async def test_a_refusal_tells_its_code_and_how_the_asset_stands(platform: Platform) -> None:
    receipt = await platform.submit()
    refused = await platform.deed(receipt["asset_id"], "approve", 409, clearance_level="ouo")
    assert refused["code"] == "not_processed"
    assert refused["current"]["asset_id"] == receipt["asset_id"]
    assert "job" not in str(refused["current"])
    stale = await platform.deed(receipt["asset_id"], "unpublish", 409, expected_version=1000)
    assert (stale["code"], stale["current"]["version"]) == ("stale_version", refused["current"]["version"])
