"""The queue of what waits for a decision: what is in it, in which order, and who sees it."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.integration.gateway.front import FLAT, Front, problem_of

QUEUE = "/api/reviews"


async def waiting(front: Front, who: str = "reviewer", **query: Any) -> list[tuple[str, int]]:
    """Follow the cursors to the end."""
    page = await front.get(who, QUEUE, **query)
    items: list[dict[str, Any]] = page["items"]
    while page["next"] is not None:
        assert len(page["items"]) == query["limit"]
        page = await front.get(who, QUEUE, **query, cursor=page["next"])
        items += page["items"]
    return [(item["asset_id"], item["version_ordinal"]) for item in items]


async def processed(front: Front, dataset: str, **more: Any) -> str:
    """Let a dataset be submitted and processed, and give its asset."""
    asset_id: str = (await front.submitted(dataset_id=dataset, **more))["asset_id"]
    front.process(asset_id)
    return asset_id


async def test_a_version_waits_from_its_processing_to_the_decision(front: Front) -> None:
    receipt = await front.submitted()
    assert await waiting(front) == []
    front.fail(receipt["asset_id"])
    assert await waiting(front) == []
    front.process(receipt["asset_id"])
    assert await waiting(front) == [(receipt["asset_id"], 0)]
    decision = {"asset_id": receipt["asset_id"], "clearance_level": "ouo"}
    await front.post("reviewer", "/api/platform/approve", decision)
    assert await waiting(front) == []
    await front.submitted(overwrite=True)
    front.process(receipt["asset_id"])
    assert await waiting(front) == [(receipt["asset_id"], 0)], "another revision of one that is in service"
    rejection = {"asset_id": receipt["asset_id"], "revision": 2, "reason": "clouds"}
    await front.post("reviewer", "/api/platform/reject", rejection)
    assert await waiting(front) == []


async def test_what_was_deleted_or_unpublished_waits_for_nobody(front: Front) -> None:
    deleted, unpublished, left = [await processed(front, name) for name in ("a", "b", "c")]
    assert (await front.ask("reviewer", "DELETE", f"/api/assets/{deleted}/versions/0")).status_code == 200
    await front.post("reviewer", "/api/platform/unpublish", {"asset_id": unpublished})
    assert await waiting(front) == [(left, 0)]


async def test_an_item_tells_what_a_decision_needs(front: Front) -> None:
    asset_id = await processed(front, "0038272")
    report = {"outcome": "fix", "findings": [], "facts": {"bands": 3}}
    front.execute(
        "UPDATE dagapp.asset_versions SET bbox = '{1,2,3,4}', content_hash = repeat('a', 64),"
        " output_hash = repeat('b', 64), validation = %s, processing_completed_at = '2026-03-01T12:00Z'"
        " WHERE asset_id = %s",
        Jsonb(report),
        asset_id,
    )
    front.execute(
        "INSERT INTO dagapp.layer_metadata (asset_id, version_ordinal, title) VALUES (%s, 0, 'Roads')", asset_id
    )
    (item,) = (await front.get("operator", QUEUE))["items"]
    asset = await front.get("operator", f"/api/assets/{asset_id}")
    assert item == {
        "asset_id": asset_id,
        "platform_id": "ddh",
        "platform_refs": {"dataset_id": "0038272", "resource_id": "shapefile"},
        "data_type": "vector",
        "clearance_state": "uncleared",
        "latest_approved_version_ordinal": None,
        "asset_version": asset["version"],
        "version_ordinal": 0,
        "version_label": FLAT["version_id"],
        "revision": 1,
        "approved_revision": None,
        "bbox": [1, 2, 3, 4],
        "validation": report,
        "content_hash": "a" * 64,
        "output_hash": "b" * 64,
        "title": "Roads",
        "submitted_by": "partner",
        "clearance_requested": None,
        "waiting_since": "2026-03-01T12:00:00Z",
    }
    decision = {"asset_id": asset_id, "clearance_level": "ouo", "expected_version": item["asset_version"]}
    await front.post("reviewer", "/api/platform/approve", decision)


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
async def test_the_longest_waiting_come_first_and_ties_lose_or_double_none(front: Front, limit: int) -> None:
    assets = [await processed(front, str(number)) for number in range(5)]
    ages = dict(zip(assets, (1, 3, 3, 3, 2), strict=True))  # three completed at the same moment
    for asset_id, hours in ages.items():
        front.execute(
            "UPDATE dagapp.asset_versions SET processing_completed_at = '2026-03-01T12:00Z'::timestamptz"
            " - %s * interval '1 hour' WHERE asset_id = %s",
            *(hours, asset_id),
        )
    expected = sorted(assets, key=lambda asset_id: (-ages[asset_id], asset_id))
    assert await waiting(front, limit=limit) == [(asset_id, 0) for asset_id in expected]


async def test_a_decision_between_two_pages_shifts_nothing(front: Front) -> None:
    for number in range(4):
        await processed(front, str(number))
    first = await front.get("reviewer", QUEUE, limit=2)
    decided = first["items"][0]["asset_id"]
    await front.post("reviewer", "/api/platform/approve", {"asset_id": decided, "clearance_level": "ouo"})
    second = await front.get("reviewer", QUEUE, limit=2, cursor=first["next"])
    assert len({item["asset_id"] for item in first["items"] + second["items"]}) == 4
    assert second["next"] is None


async def test_staff_alone_see_the_queue(front: Front) -> None:
    asset_id = await processed(front, "1")
    for who in ("reviewer", "operator", "admin"):
        assert await waiting(front, who) == [(asset_id, 0)]
    for who in ("partner", "stranger", "worker"):
        problem_of(await front.ask(who, "GET", QUEUE), 403)
    problem_of(await front.ask(None, "GET", QUEUE), 401)
    for cursor in ("x", "WzFd", "bnVsbA"):
        problem_of(await front.ask("reviewer", "GET", QUEUE, params={"cursor": cursor}), 422)
