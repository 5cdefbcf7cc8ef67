"""What earlier callers of the platform family send is taken as it is; and an approval is of what was looked at."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from tests.integration.gateway.front import FLAT, Front, problem_of

from graticule.config import DEFAULT_PARTNER_MAX_PRIORITY

REVIEWER = "user@example.com"


async def submit_and_process(front: Front, **more: Any) -> Mapping[str, Any]:
    """Submit data, have them processed, and return the receipt with the job."""
    receipt = await front.submitted("operator", platform_id="ddh", **more)
    front.process(receipt["asset_id"])
    front.execute(
        "UPDATE dagapp.asset_versions SET output_hash = repeat(revision::text, 64) WHERE asset_id = %s",
        receipt["asset_id"],
    )
    return dict(receipt)


async def decide(front: Front, body: Mapping[str, Any], path: str = "/api/platform/approve") -> httpx.Response:
    return await front.ask("reviewer", "POST", path, json=dict(body))


# The reproduction: revision 1 is looked at, revision 2 comes, and the approval of what was seen must not be of it.


@pytest.mark.parametrize("name", ["asset", "ordinal", "revision", "hash", "request", "job"])
async def test_what_is_overwritten_between_preview_and_approval_does_not_come_into_service(
    front: Front, name: str
) -> None:
    seen = await submit_and_process(front)
    await submit_and_process(front, overwrite=True)
    names: Mapping[str, Mapping[str, Any]] = {
        "asset": {"asset_id": seen["asset_id"]},
        "ordinal": {"asset_id": seen["asset_id"], "version_ordinal": 0},
        "revision": {"asset_id": seen["asset_id"], "revision": 1},
        "hash": {"asset_id": seen["asset_id"], "output_hash": "1" * 64},
        "request": {"request_id": seen["request_id"]},
        "job": {"job_id": seen["job_id"]},
    }
    problem = problem_of(await decide(front, {**names[name], "clearance_level": "public"}), 409)
    assert problem["code"] == ("revision_required" if name in {"asset", "ordinal"} else "revision_changed")
    assert problem["current"]["versions"][0]["revision"] == 2
    assert f"/api/view/preview/{seen['asset_id']}/0/" in problem["hint"]
    assert front.execute("SELECT approved_revision FROM dagapp.asset_versions") == [(None,)]
    assert (await decide(front, {**names["asset"], "revision": 2, "clearance_level": "ouo"})).status_code == 200


async def test_a_clearance_is_of_the_revision_that_was_looked_at(front: Front) -> None:
    seen = await submit_and_process(front)
    path = f"/api/assets/{seen['asset_id']}/clearance"
    await front.post("reviewer", "/api/platform/approve", {"asset_id": seen["asset_id"], "clearance_level": "ouo"})
    again = await submit_and_process(front, overwrite=True)
    request = {"request_id": again["request_id"], "clearance_level": "ouo"}
    await front.post("reviewer", "/api/platform/approve", request)
    for names, code in (({}, "revision_required"), ({"revision": 1}, "revision_changed")):
        problem_of(await decide(front, {**names, "clearance_level": "public"}, path), 409, code)
    await front.post("reviewer", path, {"revision": 2, "access_level": "PUBLIC"})


# Bodies of earlier callers


@pytest.mark.parametrize("level", [{"clearance_level": "ouo"}, {"access_level": "OUO"}, {"clearance_level": "OUO"}])
@pytest.mark.parametrize("name", ["job_id", "request_id", "asset_id"])
async def test_an_approval_names_job_request_or_asset_and_a_reviewer(
    front: Front, name: str, level: dict[str, str]
) -> None:
    receipt = await submit_and_process(front)
    body = {name: receipt[name], "reviewer": REVIEWER, **level}
    approved = await front.post("admin", "/api/platform/approve", body)
    assert approved["version"]["reviewer"] == "admin", "who the credential says, not the body"
    assert approved["asset"]["clearance_state"] == "ouo"


@pytest.mark.parametrize("name", ["job_id", "request_id", "asset_id"])
@pytest.mark.parametrize("deed", ["reject", "revoke", "unpublish", "reprocess"])
async def test_all_other_decisions_name_job_request_or_asset_and_a_reviewer_too(
    front: Front, deed: str, name: str
) -> None:
    await submit_and_process(front, resource_id="other")
    receipt = await submit_and_process(front)
    asset_id = receipt["asset_id"]
    if deed == "revoke":
        await front.post("reviewer", "/platform/approve", {"asset_id": asset_id, "clearance_level": "ouo"})
    body = {name: receipt[name], "reviewer": REVIEWER, "reason": "Clouds"}
    answer = await front.post("admin", f"/platform/{deed}", body, 202 if deed == "reprocess" else 200)
    if deed == "reprocess":
        assert (answer["asset_id"], answer["version_ordinal"], answer["revision"]) == (asset_id, 0, 2)
    elif deed == "unpublish":
        assert (answer["asset"]["asset_id"], answer["asset"]["deleted_by"]) == (asset_id, "admin")
    else:
        assert (answer["version"]["asset_id"], answer["version"]["reviewer"]) == (asset_id, "admin")
    events = "SELECT actor, data ->> 'reviewer_named' FROM dagapp.dag_job_events WHERE asset_id = %s"
    assert ("admin", REVIEWER) in front.execute(events, asset_id), "the name in the body is kept beside the caller"


@pytest.mark.parametrize("deed", ["reject", "revoke", "unpublish", "reprocess"])
async def test_no_decision_is_of_a_job_that_processed_nothing_or_beside_another_name(front: Front, deed: str) -> None:
    receipt = await submit_and_process(front)
    nothing = {"job_id": "0" * 32, "reviewer": REVIEWER, "reason": "Clouds"}
    problem_of(await front.ask("admin", "POST", f"/platform/{deed}", json=nothing), 404, "not_found")
    for other in ("asset_id", "request_id"):
        both = {"job_id": receipt["job_id"], other: receipt[other], "reason": "Clouds"}
        problem_of(await front.ask("admin", "POST", f"/platform/{deed}", json=both), 422, "invalid_input")


async def test_a_retry_names_no_job_because_partners_know_none(front: Front) -> None:
    receipt = await submit_and_process(front)
    body = {"job_id": receipt["job_id"]}
    problem_of(await front.ask("partner", "POST", "/platform/retry", json=body), 422, "invalid_input")


async def test_a_job_that_processed_nothing_names_no_version(front: Front) -> None:
    body = {"job_id": "0" * 32, "reviewer": REVIEWER, "clearance_level": "ouo"}
    problem = problem_of(await decide(front, body), 404, "not_found")
    assert "request_id" in problem["hint"]


WRONG: Mapping[str, Mapping[str, Any]] = {
    "levels that differ": {"asset_id": "0" * 32, "clearance_level": "ouo", "access_level": "public"},
    "no such level": {"asset_id": "0" * 32, "clearance_level": "uncleared"},
    "a level of another type": {"asset_id": "0" * 32, "access_level": ["ouo"]},
    "an asset and a job": {"asset_id": "0" * 32, "job_id": "x", "clearance_level": "ouo"},
    "a request and a job": {"request_id": "0" * 32, "job_id": "x", "clearance_level": "ouo"},
    "nothing": {"clearance_level": "ouo"},
    "an empty reviewer": {"asset_id": "0" * 32, "clearance_level": "ouo", "reviewer": " "},
    "a job that no column holds": {"job_id": "a\x00b", "clearance_level": "ouo"},
    "revision zero": {"asset_id": "0" * 32, "clearance_level": "ouo", "revision": 0},
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_is_told_without_the_names_of_our_program(front: Front, what: str) -> None:
    answer = await decide(front, WRONG[what])
    problem_of(answer, 422, "invalid_input")
    assert "<" not in answer.text, "no enumeration of Python"


async def test_a_url_mode_may_be_written_with_a_hyphen(front: Front) -> None:
    asset_id = (await submit_and_process(front))["asset_id"]
    for mode in ("all-versions", "latest-only", "ALL_VERSIONS"):
        answer = await front.ask("reviewer", "PATCH", f"/api/assets/{asset_id}", json={"url_mode": mode})
        assert answer.json()["asset"]["url_mode"] == mode.replace("-", "_").lower()


async def test_a_submission_proposes_its_access_level(front: Front) -> None:
    for number, body in enumerate(
        ({"access_level": "PUBLIC"}, {"access_level": "public", "clearance_level": "PUBLIC"})
    ):
        await front.submitted(resource_id=str(number), **body)
    proposed = "SELECT DISTINCT request_body #>> '{submission,clearance_level}' FROM dagapp.platform_requests"
    assert front.execute(proposed) == [("public",)]
    wrong = {**FLAT, "access_level": "ouo", "clearance_level": "public"}
    problem = problem_of(await front.ask("partner", "POST", "/api/platform/submit", json=wrong), 422)
    assert "access_level" in problem["detail"]


# Addresses of earlier callers


async def test_the_addresses_are_there_without_api(front: Front) -> None:
    receipt = await front.post("partner", "/platform/submit", dict(FLAT), 202)
    status = await front.get("partner", f"/platform/status/{receipt['request_id']}")
    assert status == await front.get("partner", f"/api/platform/status/{receipt['request_id']}")
    assert len((await front.get("partner", "/platform/requests"))["items"]) == 1
    front.process(receipt["asset_id"])
    body = {"asset_id": receipt["asset_id"], "reviewer": REVIEWER, "clearance_level": "ouo"}
    await front.post("reviewer", "/platform/approve", body)
    problem_of(await front.ask(None, "POST", "/platform/approve", json=body), 401)
    problem_of(await front.ask("partner", "POST", "/platform/approve", json=body), 403)


@pytest.mark.parametrize("prefix", ["/api/platform", "/platform"])
async def test_the_registry_is_listed_below_platform_too(front: Front, prefix: str) -> None:
    listed = await front.get("operator", f"{prefix}/platforms")
    assert [each["platform_id"] for each in listed["platforms"]] == ["arcgis", "ddh", "geonode"]
    assert listed["platforms"] == listed["items"]
    assert {"display_name", "required_refs", "optional_refs", "is_active"} <= set(listed["platforms"][0])
    assert await front.get("partner", f"{prefix}/platforms/ddh") == await front.get("partner", "/api/platforms/ddh")
    assert [each["platform_id"] for each in (await front.get("partner", f"{prefix}/platforms"))["platforms"]] == ["ddh"]


# 1 is the most urgent there, 5 the default, 10 the least urgent; here 10 is the most urgent, and 0 the default.
PRIORITIES = {None: 0, 1: 10, 2: 8, 3: 5, 4: 3, 5: 0, 6: 0, 10: 0}


async def test_a_priority_counts_from_one_without_api_and_from_zero_with_it(front: Front) -> None:
    stored = "SELECT priority FROM dagapp.platform_requests AS request JOIN dagapp.dag_jobs USING (job_id)"
    for theirs, ours in PRIORITIES.items():
        more = {} if theirs is None else {"priority": theirs}
        receipt = await front.post("operator", "/platform/submit", earlier_submission(theirs, **more), 202)
        assert front.execute(f"{stored} WHERE request_id = %s", receipt["request_id"]) == [(ours,)], theirs
    same = await front.submitted(resource_id="ours", priority=1)
    assert front.execute(f"{stored} WHERE request_id = %s", same["request_id"]) == [(1,)]


# The same for a partner, which can ask for 5 of ours at most: its first three are alike.
PARTNER_PRIORITIES = {None: 0, 1: 5, 2: 5, 3: 5, 4: 3, 5: 0, 10: 0}


async def test_no_priority_of_a_partner_is_above_its_ceiling(front: Front) -> None:
    for theirs, ours in PARTNER_PRIORITIES.items():
        more = {} if theirs is None else {"priority": theirs}
        receipt = await front.post("partner", "/platform/submit", earlier_submission(theirs, **more), 202)
        stored = front.execute(
            "SELECT priority, share FROM dagapp.dag_jobs JOIN dagapp.platform_requests AS request USING (job_id)"
            " WHERE request_id = %s",
            receipt["request_id"],
        )
        assert (receipt["priority"], stored) == (ours, [(ours, f"ddh/{ours}" if ours else "ddh")]), theirs
        assert ours <= DEFAULT_PARTNER_MAX_PRIORITY
    assert front.execute("SELECT max(priority) FROM dagapp.dag_tasks") == [(0,)], "among partners, turns decide"


@pytest.mark.parametrize("path", ["/api/platform/submit", "/platform/submit"])
async def test_the_priority_of_a_job_by_its_workflow_is_ours_at_either_address(front: Front, path: str) -> None:
    """Messages of that form count from 0, the normal one, upwards, whoever reads them."""
    for priority in (0, 1, 10):
        body: dict[str, Any] = {"workflow_id": "hello_world", "inputs": {}, "priority": priority}
        receipt = await front.post("operator", path, body, 202)
        stored = front.execute("SELECT priority FROM dagapp.dag_jobs WHERE job_id = %s", receipt["job_id"])
        assert stored == [(priority,)]


@pytest.mark.parametrize("priority", [0, 11, "1", 1.5, True])
async def test_a_priority_that_is_not_on_the_scale_is_refused_with_both(front: Front, priority: object) -> None:
    body = earlier_submission("x", priority=priority)
    problem = problem_of(await front.ask("operator", "POST", "/platform/submit", json=body), 422, "invalid_input")
    assert "from 1" in problem["detail"]
    assert "/api/platform/submit" in problem["hint"]


def earlier_submission(resource: object, **more: Any) -> dict[str, Any]:
    return {**FLAT, "platform_id": "ddh", "resource_id": str(resource), **more}


# Jobs by their workflow


@pytest.mark.parametrize("path", ["/api/platform/submit", "/platform/submit"])
@pytest.mark.parametrize("inputs", ["input_params", "inputs"])
async def test_an_operator_submits_a_job_by_its_workflow(front: Front, path: str, inputs: str) -> None:
    body = {
        "workflow_id": "hello_world",
        inputs: {"name": "World"},
        "correlation_id": "ddh-req-12345",
        "priority": 3,
        "idempotency_key": "ddh-12345",
    }
    answer = await front.post("operator", path, body, 202)
    assert set(answer) == {"message_id", "workflow_id", "submitted_at", "status", "job_id", "warnings"}
    assert (answer["workflow_id"], answer["status"]) == ("hello_world", "queued")
    found = front.execute("SELECT job_id, priority, correlation_id, input_params ->> 'name' FROM dagapp.dag_jobs")
    assert found == [(answer["job_id"], 3, "ddh-req-12345", "World")]
    assert await front.post("operator", path, body, 202) == answer
    assert (await front.get("operator", f"/api/status/job/{answer['message_id']}"))["job_id"] == answer["job_id"]


async def test_a_job_by_its_workflow_that_is_none_is_refused(front: Front) -> None:
    both = {"workflow_id": "hello_world", "inputs": {}, "input_params": {}}
    problem_of(await front.ask("operator", "POST", "/api/platform/submit", json=both), 422)
    unknown = {"workflow_id": "hello_world", "nonsense": 1}
    problem = problem_of(await front.ask("operator", "POST", "/api/platform/submit", json=unknown), 422)
    assert problem["errors"][0]["loc"] == ["body", "nonsense"]
    problem_of(await front.ask("operator", "POST", "/api/platform/submit", json={"workflow_id": "no_such"}), 404)
    for who in ("partner", "stranger"):
        answer = await front.ask(who, "POST", "/api/platform/submit", json={"workflow_id": "hello_world"})
        assert "workflow_id" in problem_of(answer, 422, "invalid_input")["detail"]
    problem_of(await front.ask("reviewer", "POST", "/api/platform/submit", json={"workflow_id": "hello_world"}), 403)
    assert front.execute("SELECT count(*) FROM dagapp.dag_jobs") == [(0,)]


def test_the_addresses_without_api_are_not_in_the_document(front: Front) -> None:
    paths = front.app.openapi()["paths"]
    assert [path for path in paths if path.startswith("/platform")] == []
