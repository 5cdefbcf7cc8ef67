"""A word finds the jobs that are known by it: together with the other filters, in pages, at both processes."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.integration.gateway.front import FLAT, Front, headers_of, problem_of

JOBS = "/api/status/jobs"
WORD = "together"


async def found(front: Front, q: str, **more: Any) -> list[str]:
    """Follow the cursors to the end, and give the ids in their order."""
    page = await front.get("operator", JOBS, q=q, **more)
    items: list[dict[str, Any]] = page["items"]
    while page["next"] is not None:
        page = await front.get("operator", JOBS, q=q, **more, cursor=page["next"])
        items += page["items"]
    return [item["job_id"] for item in items]


def add_job(front: Front, job_id: str, minute: int, **columns: Any) -> None:
    """Write a job that was created at this minute."""
    given = {"workflow_id": "flow", "status": "running", **columns}
    names = ", ".join(given)
    marks = ", ".join(["%s"] * len(given))
    front.execute(
        f"INSERT INTO dagapp.dag_jobs (job_id, workflow_version, workflow_hash, created_at, {names})"
        f" VALUES (%s, '1', repeat('0', 64), '2026-03-01Z'::timestamptz + %s * interval '1 minute', {marks})",
        *(job_id, minute, *given.values()),
    )


@pytest.fixture
def stocked(front: Front) -> Front:
    """Give a gateway with a workflow that jobs can be of."""
    front.execute(
        "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)"
        " VALUES (repeat('0', 64), 'flow', '1', 'Flow', '{}')"
    )
    return front


async def test_a_job_is_found_by_each_of_its_keys_and_by_no_part_of_them(front: Front) -> None:
    keys = {"Idempotency-Key": "of-the-partner"}
    receipt = await front.post("partner", "/api/platform/submit", dict(FLAT), 202, **keys)
    own = {"workflow_id": "echo_test", "correlation_id": "c-1", "idempotency_key": "of-the-job"}
    job_id = (await front.post("operator", "/api/gateway/submit", own, 201))["job_id"]
    front.execute("UPDATE dagapp.dag_jobs SET submitted_by = 'Zoë' WHERE job_id = %s", job_id)
    ((of_asset,),) = front.execute("SELECT job_id FROM dagapp.dag_jobs WHERE asset_id IS NOT NULL")
    for key in (receipt["asset_id"], receipt["request_id"], receipt["request_id"].upper(), "of-the-partner", of_asset):
        assert await found(front, key) == [of_asset], key
    for key in ("c-1", "of-the-job", "Zoë", "echo_test", job_id, job_id[:20], f"  {job_id} "):
        assert await found(front, key) == [job_id], key
    parts = ("c-", "of-the", "zoë", "echo", job_id[1:], receipt["asset_id"][:31])
    for part in (*parts, "echo%", "%", "____", "'; --", "x" * 64):
        assert await found(front, part) == [], part
    for wrong in ("", " ", "x" * 65, "a\x00b"):
        problem_of(await front.ask("operator", "GET", JOBS, params={"q": wrong}), 422)


async def test_the_beginning_of_an_id_counts_from_four_characters(stocked: Front) -> None:
    for minute, job_id in enumerate(("abcd" + "0" * 28, "abce" + "f" * 28, "abcdaa" + "f" * 26, "abcd" + "9" * 60)):
        add_job(stocked, job_id, minute)
    assert await found(stocked, "abcd") == ["abcd" + "9" * 60, "abcdaa" + "f" * 26, "abcd" + "0" * 28]
    assert await found(stocked, "abcda") == ["abcdaa" + "f" * 26]
    assert await found(stocked, "abc") == []
    assert await found(stocked, "abcd", limit=1) == await found(stocked, "abcd")


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
async def test_what_one_word_finds_by_many_keys_comes_newest_first_and_once(stocked: Front, limit: int) -> None:
    by = ("workflow_id", "submitted_by", "correlation_id", "idempotency_key")
    expected = []
    for number in range(9):
        names = {by[number % 3], by[number % 2]} if number else {by[3]}
        job_id, minute = f"{number * 7 % 10}{number:031x}", number // 4  # some were created at the same moment
        add_job(stocked, job_id, minute, **dict.fromkeys(names, WORD))
        add_job(stocked, f"f{number:031x}", number, correlation_id="another")
        expected.append((minute, job_id))
    assert await found(stocked, WORD, limit=limit) == [job_id for _, job_id in sorted(expected, reverse=True)]


async def test_other_filters_hold_as_well(stocked: Front) -> None:
    for number in range(6):
        status = "running" if number % 2 else "pending"
        add_job(stocked, f"{number:032x}", number, submitted_by=WORD, status=status, correlation_id=f"c{number % 3}")
    ids = [f"{number:032x}" for number in range(6)]
    for query, expected in (
        ({"status": "running"}, [5, 3, 1]),
        ({"status": "completed"}, []),
        ({"workflow_id": "flow"}, [5, 4, 3, 2, 1, 0]),
        ({"workflow_id": "another"}, []),
        ({"correlation_id": "c1"}, [4, 1]),
        ({"submitted_by": WORD, "status": "pending"}, [4, 2, 0]),
        ({"submitted_by": "someone"}, []),
        ({"created_after": "2026-03-01T00:04:00Z"}, [5, 4]),
        ({"created_before": "2026-03-01T00:01:00Z"}, [0]),
    ):
        for limit in (1, 50):
            assert await found(stocked, WORD, limit=limit, **query) == [ids[number] for number in expected], query


async def test_the_orchestrator_finds_the_same(stocked: Front, api: FastAPI) -> None:
    for number in range(3):
        add_job(stocked, f"{number:032x}", number, correlation_id=WORD)
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://it", headers=headers_of("operator")) as client:
        answer = await client.get("/api/v1/jobs", params={"q": WORD, "limit": 2})
    assert [item["job_id"] for item in answer.json()["items"]] == [f"{number:032x}" for number in (2, 1)]
    assert answer.json() == await stocked.get("operator", JOBS, q=WORD, limit=2)
