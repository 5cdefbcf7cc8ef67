"""Whoever an issuer signs in is never taken for somebody else of nearly the same name, in decisions or histories."""

import unicodedata
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import TestDatabase
from tests.integration.gateway.front import Front, problem_of, running_front
from tests.unit.services.issuer import AUDIENCE, Issuer, issuer_running

from graticule.config import Settings

# Of the same issuer: each of these is someone else, and none is the client `reviewer` of the API key.
RECORDED = {
    "reviewer": "oidc:reviewer",
    "Reviewer": "oidc:Reviewer",
    "REVIEWER": "oidc:REVIEWER",
    "oidc:reviewer": "oidc:oidc:reviewer",
    "Oidc:reviewer": "oidc:Oidc:reviewer",
    "reviewer@example.org": "reviewer@example.org",
    "Reviewer@example.org": "Reviewer@example.org",
}
UNUSUAL = (" reviewer", "reviewer ", "reviewer\u00a0", "\uff52eviewer", "reviewer@example.org ")
MISLEADING = (
    *("Admin\u200b", "admin", "ADMIN", "Admin ", "\uff21dmin", "\u0410dmin", "reviewer\u200b", "\u202ereweiver"),
    *("r\u0435viewer", "gateway"),
)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuer_running() as (running, _):
        yield running


@pytest.fixture
async def front(settings: Settings, database: TestDatabase, api: FastAPI, issuer: Issuer) -> AsyncIterator[Front]:
    """Return the gateway, which trusts the issuer."""
    trusting = settings.model_copy(update={"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE})
    async with running_front(trusting, database, api) as running:
        yield running


def hashed(name: str) -> str:
    """Return what is recorded of a name that is not written in its plain form."""
    plain = " ".join(unicodedata.normalize("NFKC", name).split())
    return f"oidc:{sha256(name.encode()).hexdigest()[:12]}:{plain}"


async def approve(front: Front, asset_id: str, token: str) -> httpx.Response:
    body = {"asset_id": asset_id, "clearance_level": "ouo"}
    headers = {"Authorization": f"Bearer {token}"}
    return await front.ask(None, "POST", "/api/platform/approve", json=body, headers=headers)


async def processed(front: Front, dataset: int) -> str:
    asset_id: str = (await front.submitted(dataset_id=str(dataset)))["asset_id"]
    front.process(asset_id)
    return asset_id


async def approver_of(front: Front, asset_id: str) -> Any:
    history = (await front.get("operator", f"/api/assets/{asset_id}/history"))["items"]
    (approved,) = [event for event in history if event["event_type"] == "asset_approved"]
    return approved["actor"]


async def test_each_reviewer_is_recorded_as_someone_else(front: Front, issuer: Issuer) -> None:
    names = RECORDED | {name: hashed(name) for name in UNUSUAL}
    seen = []
    for number, (name, recorded) in enumerate(names.items()):
        asset_id = await processed(front, number)
        answer = await approve(front, asset_id, issuer.token(sub=name, roles=["reviewer"]))
        assert answer.status_code == 200, answer.text
        assert (answer.json()["version"]["reviewer"], await approver_of(front, asset_id)) == (recorded, recorded)
        seen.append(recorded)
    asset_id = await processed(front, len(names))
    await front.post("reviewer", "/api/platform/approve", {"asset_id": asset_id, "clearance_level": "ouo"})
    seen.append(await approver_of(front, asset_id))
    assert seen[-1] == "reviewer"
    assert len({*seen}) == len(names) + 1


@pytest.mark.parametrize("name", MISLEADING, ids=ascii)
async def test_a_name_that_looks_like_another_decides_nothing(front: Front, issuer: Issuer, name: str) -> None:
    asset_id = await processed(front, 0)
    problem_of(await approve(front, asset_id, issuer.token(sub=name, roles=["reviewer"])), 401)
    assert front.execute("SELECT approval_state::text, reviewer FROM dagapp.asset_versions") == [
        ("pending_review", None)
    ]
