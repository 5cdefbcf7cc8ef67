"""What partners do at the gateway, and what staff decide there."""

import json
import re
from typing import Any

import pytest
from tests.integration.gateway.front import DOMAIN, FLAT, Front, problem_of

from graticule.core.asset_names import asset_id_of

ASSET = asset_id_of("ddh", {"dataset_id": "0038272", "resource_id": "shapefile"})
RECEIPT = {"request_id", "asset_id", "version_ordinal", "revision", "status", "priority", "monitor_url"}


async def test_a_partner_submits_in_its_own_words_or_in_the_domains(front: Front) -> None:
    receipt = await front.submitted()
    assert set(receipt) == RECEIPT
    assert receipt["asset_id"] == ASSET
    assert (receipt["version_ordinal"], receipt["revision"], receipt["status"]) == (0, 1, "accepted")
    assert receipt["monitor_url"] == f"/api/platform/status/{receipt['request_id']}"
    again = {**DOMAIN, "platform_id": "ddh", "overwrite": True}
    for body in ({**DOMAIN}, again):  # another form, and the same version
        problem_of(await front.ask("partner", "POST", "/api/platform/submit", json=body), 409)
    front.process(ASSET)
    assert (await front.post("partner", "/api/platform/submit", again, 202))["revision"] == 2
    (asset,) = front.execute("SELECT platform_id, platform_refs FROM dagapp.geospatial_assets")
    assert asset == ("ddh", DOMAIN["platform_refs"])
    assert front.execute("SELECT version_label FROM dagapp.asset_versions") == [("2026-03",)]


async def test_the_submission_is_recorded_under_the_callers_name(front: Front) -> None:
    await front.submitted()
    assert front.execute("SELECT submitted_by FROM dagapp.platform_requests") == [("partner",)]
    actors = front.execute("SELECT DISTINCT actor FROM dagapp.dag_job_events WHERE event_type = 'asset_created'")
    assert actors == [("partner",)]


async def test_the_same_key_gives_the_same_receipt(front: Front) -> None:
    first = await front.post("partner", "/api/platform/submit", {**FLAT}, 202, **{"Idempotency-Key": "a-1"})
    again = await front.post("partner", "/api/platform/submit", {**FLAT}, 202, **{"Idempotency-Key": "a-1"})
    assert first == again
    other = {**FLAT, "file_name": "other.zip"}
    answer = await front.ask("partner", "POST", "/api/platform/submit", json=other, headers={"Idempotency-Key": "a-1"})
    problem_of(answer, 409, "idempotency_key_reused")


async def test_another_platform_does_not_exist_for_a_partner(front: Front) -> None:
    for platform_id in ("arcgis", "nowhere"):
        answer = await front.ask("partner", "POST", "/api/platform/submit", json={**DOMAIN, "platform_id": platform_id})
        assert problem_of(answer, 404, "not_found")["detail"] == f"There is no platform {platform_id}."
    assert front.execute("SELECT count(*) FROM dagapp.platform_requests") == [(0,)]


async def test_staff_name_the_platform_for_which_they_submit(front: Front) -> None:
    answer = await front.ask("operator", "POST", "/api/platform/submit", json={**FLAT})
    assert "platform_id" in problem_of(answer, 422, "invalid_input")["detail"]
    receipt = await front.submitted("operator", platform_id="ddh")
    assert set(receipt) == RECEIPT | {"job_id", "warnings"}
    (job_id,) = front.execute("SELECT job_id FROM dagapp.dag_jobs")[0]
    assert receipt["job_id"] == job_id


@pytest.mark.parametrize("container", ["silver", "external", "outputs"])
async def test_a_file_in_a_container_of_ours_is_no_partners(front: Front, container: str) -> None:
    body = {**FLAT, "container_name": container}
    problem = problem_of(await front.ask("partner", "POST", "/api/platform/submit", json=body), 422, "invalid_input")
    assert problem["detail"].startswith("container_name: ")
    assert problem["hint"]
    assert front.execute("SELECT count(*) FROM dagapp.platform_requests") == [(0,)]


async def test_what_is_no_submission_is_refused(front: Front, subtests: pytest.Subtests) -> None:
    bodies: list[Any] = [[], "text", 7, None, {"platform_id": 7}, {"platform_id": "x" * 51}, {}]
    bodies.append({**FLAT, "undeclared": 1})
    for body in bodies:
        with subtests.test(str(body)):
            problem_of(await front.ask("partner", "POST", "/api/platform/submit", json=body), 422)


async def test_a_refusal_of_the_orchestrator_is_passed_on_without_what_is_ours(front: Front) -> None:
    await front.submitted()
    answer = await front.ask("partner", "POST", "/api/platform/submit", json={**FLAT, "version_id": "2026-04"})
    problem = problem_of(answer, 409, "version_unresolved")
    assert problem["instance"] == "/api/platform/submit"
    assert problem["current"]
    told = json.dumps(problem)
    assert "job" not in told


async def test_status_and_requests_are_told_in_the_partners_words(front: Front) -> None:
    receipt = await front.submitted()
    by_request = await front.get("partner", f"/api/platform/status/{receipt['request_id']}")
    by_asset = await front.get("partner", f"/api/platform/status/{ASSET}")
    assert by_request == by_asset
    assert by_request["version"] == {"ordinal": 0, "label": "2026-03", "revision": 1}
    assert by_request["approval_state"] == "pending_review"
    (listed,) = (await front.get("partner", "/api/platform/requests"))["items"]
    assert listed["request_id"] == receipt["request_id"]
    assert "job_id" not in listed
    assert "request_body" not in listed
    more = await front.get("operator", f"/api/platform/status/{receipt['request_id']}")
    assert more["job_id"]
    by_job = await front.get("operator", f"/api/platform/status/{more['job_id']}")
    assert by_job["request_id"] == receipt["request_id"]
    problem_of(await front.ask("partner", "GET", f"/api/platform/status/{more['job_id']}"), 404)
    assert "job_id" not in await front.get("reviewer", f"/api/platform/status/{ASSET}")


async def test_requests_are_paged(front: Front) -> None:
    for number in range(3):
        await front.submitted(resource_id=str(number))
    first = await front.get("partner", "/api/platform/requests", limit=2)
    rest = await front.get("partner", "/api/platform/requests", limit=2, cursor=first["next"])
    found = [request["request_id"] for request in first["items"] + rest["items"]]
    assert (len(found), len(set(found)), rest["next"]) == (3, 3, None)
    assert (await front.get("stranger", "/api/platform/requests"))["items"] == []
    assert (await front.get("stranger", "/api/platform/requests", platform_id="ddh"))["items"] == []
    assert len((await front.get("operator", "/api/platform/requests", platform_id="ddh"))["items"]) == 3


async def test_a_review_by_request_and_by_asset(front: Front) -> None:
    receipt = await front.submitted()
    front.process(ASSET)
    approved = await front.post(
        "reviewer", "/api/platform/approve", {"request_id": receipt["request_id"], "clearance_level": "ouo"}
    )
    assert approved["version"]["approval_state"] == "approved"
    assert approved["version"]["reviewer"] == "reviewer"
    assert (approved["job_id"], approved["version"]["current_job_id"]) == (None, None)
    revoked = await front.post("admin", "/api/platform/revoke", {"asset_id": ASSET, "reason": "wrong"})
    assert revoked["version"]["approval_state"] == "rejected"
    assert revoked["version"]["current_job_id"] is not None
    removed = await front.post("operator", "/api/platform/unpublish", {"asset_id": ASSET, "reason": "old"})
    assert removed["asset"]["deleted_by"] == "operator"


async def test_a_version_is_rejected_and_reprocessed(front: Front) -> None:
    await front.submitted()
    front.process(ASSET)
    rejected = await front.post(
        "reviewer", "/api/platform/reject", {"asset_id": ASSET, "version_ordinal": 0, "reason": "blurred"}
    )
    assert rejected["version"]["rejection_reason"] == "blurred"
    again = await front.post("operator", "/api/platform/reprocess", {"asset_id": ASSET, "reason": "a bug"}, 202)
    assert (again["revision"], again["version_ordinal"]) == (2, 0)
    assert again["job_id"]


async def test_a_partner_retries_its_own_and_nobody_elses(front: Front) -> None:
    receipt = await front.submitted()
    front.fail(ASSET)
    for named in ({"asset_id": ASSET}, {"request_id": receipt["request_id"]}):
        problem_of(await front.ask("stranger", "POST", "/api/platform/retry", json=named), 404, "not_found")
    again = await front.post("partner", "/api/platform/retry", {"request_id": receipt["request_id"]}, 202)
    assert set(again) == RECEIPT
    assert again["request_id"] == receipt["request_id"]


async def test_exactly_one_name_and_the_requests_own_version(front: Front) -> None:
    receipt = await front.submitted()
    named = {"asset_id": ASSET, "request_id": receipt["request_id"]}
    for wrong in ({}, named, {"request_id": receipt["request_id"], "version_ordinal": 5}):
        answer = await front.ask("reviewer", "POST", "/api/platform/reject", json={**wrong, "reason": "no"})
        problem_of(answer, 422, "invalid_input")


async def test_partners_never_hear_of_jobs_or_of_staff(front: Front) -> None:
    receipt = await front.submitted()
    front.process(ASSET)
    await front.post("reviewer", "/api/platform/approve", {"asset_id": ASSET, "clearance_level": "ouo"})
    paths = [
        *("platform/requests", f"platform/status/{ASSET}", f"platform/status/{receipt['request_id']}", "assets"),
        *(f"assets/{ASSET}{part}" for part in ("", "/versions", "/revisions", "/history")),
        *("platforms", "platforms/ddh"),
    ]
    jobs = {job_id for (job_id,) in front.execute("SELECT job_id FROM dagapp.dag_jobs")}
    assert jobs
    for path in paths:
        answer = await front.ask("partner", "GET", f"/api/{path}")
        assert answer.status_code == 200, answer.text
        assert not [word for word in (*jobs, "reviewer", "job", "workflow", "node") if word in answer.text], path
        assert not re.search(r'(?<!superseded)_by"', answer.text), path


async def test_a_partner_sees_nothing_of_another_by_any_filter(front: Front) -> None:
    await front.submitted()
    for filters in ({}, {"platform_id": "ddh"}, {"refs": '{"dataset_id": "0038272"}'}, {"text": "shapefile"}):
        assert (await front.get("stranger", "/api/assets", **filters))["items"] == [], filters
        assert len((await front.get("partner", "/api/assets", **filters))["items"]) == 1, filters
    for path in ("", "/versions", "/revisions", "/history"):
        problem_of(await front.ask("stranger", "GET", f"/api/assets/{ASSET}{path}"), 404)
    assert {each["platform_id"] for each in (await front.get("stranger", "/api/platforms"))["items"]} == {"arcgis"}
    problem_of(await front.ask("stranger", "GET", "/api/platforms/ddh"), 404)
