"""A decision counts for the request, version and revision that it names, and a body that is not exact decides nothing.

One dataset has a version in service, in its second revision, and a newer one that waits; another dataset waits, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.integration.gateway.front import FLAT, Front, headers_of, problem_of

Body = Mapping[str, Any]
DECISIONS: Mapping[str, Body] = {
    "approve": {"clearance_level": "public"},
    "reject": {"reason": "clouds"},
    "revoke": {"reason": "wrong"},
    "clearance": {"clearance_level": "public"},
}
ROWS = "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM dagapp.{} AS t"
TABLES = ("geospatial_assets", "asset_versions", "asset_revisions", "platform_requests", "dag_jobs", "dag_job_events")


@dataclass(frozen=True)
class Desk:
    """What there is to be decided on, by the receipts of its requests."""

    front: Front
    superseded: Body
    served: Body
    waiting: Body
    foreign: Body

    async def decide(self, decision: str, names: Body) -> httpx.Response:
        """Send a decision to the gateway, which takes the clearance at an address of the asset."""
        path, body = f"/api/platform/{decision}", {**DECISIONS[decision], **names}
        if decision == "clearance":
            path = f"/api/assets/{body.pop('asset_id', self.served['asset_id'])}/clearance"
        return await self.front.ask("reviewer", "POST", path, json=body)

    async def decide_at_orchestrator(self, decision: str, names: Body) -> httpx.Response:
        """Send a decision on the first dataset to the orchestrator, past what the gateway checks."""
        assert self.front.api is not None
        transport = httpx.ASGITransport(self.front.api, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://orchestrator") as client:
            path = f"/api/v1/assets/{self.served['asset_id']}/{decision}"
            return await client.post(path, json={**DECISIONS[decision], **names}, headers=headers_of("reviewer"))

    def rows(self) -> Mapping[str, Any]:
        return {table: self.front.execute(ROWS.format(table)) for table in TABLES}


@pytest.fixture
async def desk(front: Front) -> Desk:
    superseded = await process(front)
    await process(front, overwrite=True)
    (served,) = [
        each for each in (await front.get("operator", "/api/platform/requests"))["items"] if each["revision"] == 2
    ]
    await front.post(
        "reviewer", "/api/platform/approve", {"request_id": served["request_id"], "clearance_level": "ouo"}
    )
    waiting = await process(front, version_id="2026-04", clearance_level="public")
    return Desk(front, superseded, served, waiting, await process(front, dataset_id="of another"))


async def process(front: Front, **more: Any) -> Body:
    """Submit data and let them be processed; the hash of what was made is told by the version and the revision."""
    receipt: Body = await front.submitted("operator", platform_id="ddh", **{**FLAT, **more})
    front.process(receipt["asset_id"])
    front.execute(
        "UPDATE dagapp.asset_versions SET output_hash = repeat(version_ordinal::text || revision::text, 32)"
        " WHERE asset_id = %s",
        receipt["asset_id"],
    )
    return receipt


def inexact_names(desk: Desk) -> dict[str, Body]:
    """What no decision may be taken from: it names what is over, or nothing that there is."""
    asset = {"asset_id": desk.served["asset_id"]}
    return {
        "a superseded request": {"request_id": desk.superseded["request_id"]},
        "the job of a superseded request": {"job_id": desk.superseded["job_id"]},
        "a request and another version": {"request_id": desk.waiting["request_id"], "version_ordinal": 0},
        "a request and another revision": {"request_id": desk.waiting["request_id"], "revision": 2},
        "a request and other outputs": {"request_id": desk.waiting["request_id"], "output_hash": "02" * 32},
        "an asset and a foreign request": {**asset, "request_id": desk.foreign["request_id"]},
        "an older revision": {**asset, "version_ordinal": 0, "revision": 1},
        "a revision to come": {**asset, "version_ordinal": 1, "revision": 2},
        "the outputs of an older revision": {**asset, "version_ordinal": 0, "output_hash": "01" * 32},
        "the outputs of another version": {**asset, "version_ordinal": 1, "output_hash": "02" * 32},
        "the outputs of another dataset": {**asset, "output_hash": "ab" * 32},
        "a revision of whichever version": {**asset, "revision": 1},
        "no version": {**asset, "version_ordinal": 2, "revision": 1},
    }


MALFORMED: Mapping[str, Body] = {
    f"{name} {value!r}": {"version_ordinal": 1, "revision": 1, name: value}
    for name in ("version_ordinal", "revision", "expected_version")
    for value in (True, False, "1", "", "0x1", 1.0, 1.5, -1, 2**31, 2**80, [1], {"1": 1})
} | {
    "output_hash in capitals": {"output_hash": "AB" * 32},
    "output_hash that is short": {"output_hash": "ab"},
    "output_hash number": {"output_hash": 1},
    "a request number": {"request_id": 1},
    "a job number": {"job_id": 1},
    "an unknown name": {"version_ordinal": 1, "revision": 1, "version": 1},
}
NAMES_OF_ASSET = {"request_id", "job_id"}


@pytest.mark.parametrize("decision", DECISIONS)
async def test_decisions_that_name_anything_else_change_nothing(
    desk: Desk, decision: str, subtests: pytest.Subtests
) -> None:
    before = desk.rows()
    for what, names in inexact_names(desk).items():
        with subtests.test(what):
            answer = await desk.decide(decision, names)
            problem_of(answer, answer.status_code)
            assert answer.status_code in ({404, 409, 422} if what == "no version" else {409, 422}), answer.text
            assert desk.rows() == before


@pytest.mark.parametrize("decision", DECISIONS)
async def test_malformed_names_are_refused_by_gateway_and_orchestrator(
    desk: Desk, decision: str, subtests: pytest.Subtests
) -> None:
    before = desk.rows()
    for what, names in MALFORMED.items():
        with subtests.test(what):
            asset = {} if NAMES_OF_ASSET & names.keys() else {"asset_id": desk.served["asset_id"]}
            problem_of(await desk.decide(decision, {**asset, **names}), 422, "invalid_input")
            problem_of(await desk.decide_at_orchestrator(decision, names), 422, "invalid_input")
            assert desk.rows() == before


@pytest.mark.parametrize("decision", DECISIONS)
async def test_orchestrator_takes_no_foreign_request_or_job(
    desk: Desk, decision: str, subtests: pytest.Subtests
) -> None:
    before = desk.rows()
    for name in ("request_id", "job_id"):
        with subtests.test(name):
            answer = await desk.decide_at_orchestrator(decision, {name: desk.foreign[name]})
            assert "another asset" in problem_of(answer, 422, "invalid_input")["detail"]
            assert desk.rows() == before


@pytest.mark.parametrize(("decision", "changed"), [("approve", "approved"), ("reject", "rejected")])
async def test_a_request_decides_for_its_own_version_alone(desk: Desk, decision: str, changed: str) -> None:
    await desk.decide(decision, {"request_id": desk.waiting["request_id"]})
    states = "SELECT asset_id, version_ordinal, approval_state::text FROM dagapp.asset_versions"
    assert set(desk.front.execute(states)) == {
        (desk.served["asset_id"], 0, "approved"),
        (desk.served["asset_id"], 1, changed),
        (desk.foreign["asset_id"], 0, "pending_review"),
    }


@pytest.mark.parametrize("decision", ["reject", "revoke"])
async def test_a_request_of_another_version_does_not_decide_for_the_one_that_suits(desk: Desk, decision: str) -> None:
    """What waits could be rejected and what is in service revoked, but the request is for the other one."""
    other = desk.served if decision == "reject" else desk.waiting
    before = desk.rows()
    code = "version_approved" if decision == "reject" else "not_approved"
    problem_of(await desk.decide(decision, {"request_id": other["request_id"]}), 409, code)
    assert desk.rows() == before
