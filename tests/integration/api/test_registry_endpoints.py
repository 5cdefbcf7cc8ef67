"""The registry of partners, descriptions of layers, and direct commands over HTTP: who may, and what is answered."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.conftest import TestDatabase
from tests.integration.api.conftest import StartApi
from tests.integration.api.test_bootstrap_access import problem_of
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, NOW

from graticule.config import Settings
from graticule.core.ids import PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.states import ApprovalState
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.clients import ClientRepository
from graticule.repositories.database import Connection
from graticule.services.access import key_hash
from graticule.services.commands import COMMANDS

ATLAS: dict[str, Any] = {
    "platform_id": "atlas",
    "display_name": "The Atlas",
    "required_refs": ["collection", "sheet"],
    "optional_refs": ["edition"],
    "version_ref": "release",
}
METADATA = f"/api/v1/assets/{ASSET}/versions/0/metadata"
KEYS = {name: f"gtc_{name:_<43}" for name in ("partner", "other", "reviewer", "operator", "admin")}
ROLES = {
    "partner": (ClientRole.SUBMITTER, "ddh"),
    "other": (ClientRole.SUBMITTER, "arcgis"),
    "reviewer": (ClientRole.REVIEWER, None),
    "operator": (ClientRole.OPERATOR, None),
    "admin": (ClientRole.ADMIN, None),
}


class Callers:
    """The same requests under different keys."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def __call__(self, who: str, method: str, path: str, **options: Any) -> httpx.Response:
        return await self._client.request(method, path, headers={"X-API-Key": KEYS[who]}, **options)


@pytest.fixture
async def ask(database: TestDatabase, connection: Connection, start_api: StartApi) -> AsyncIterator[Callers]:
    for name, (role, platform_id) in ROLES.items():
        row = rows.client(name, key_hash=key_hash(KEYS[name]), roles=[role], platform_id=platform_id)
        await ClientRepository(connection).insert(row)
    await AssetRepository(connection).insert(rows.asset(short_id=ASSET[:8], platform_id=PlatformId("ddh")))
    await AssetVersionRepository(connection).insert(
        rows.version(approval_state=ApprovalState.APPROVED, reviewer="r", reviewed_at=NOW, approved_revision=1)
    )
    async with start_api(database) as client:
        yield Callers(client)


async def statuses(ask: Callers, method: str, path: str, **options: Any) -> dict[str, int]:
    return {who: (await ask(who, method, path, **options)).status_code for who in KEYS}


# Platforms


async def test_an_admin_adds_a_partner_and_everyone_else_does_not(ask: Callers) -> None:
    refused = {who: 403 for who in KEYS if who != "admin"}
    assert await statuses(ask, "POST", "/api/v1/platforms", json=ATLAS) == {**refused, "admin": 201}
    again = await ask("admin", "POST", "/api/v1/platforms", json=ATLAS)
    assert (again.status_code, again.headers["Location"]) == (200, "/api/v1/platforms/atlas")
    assert {name: again.json()[name] for name in ATLAS} == ATLAS
    assert again.json()["is_active"] is True
    another = await ask("admin", "POST", "/api/v1/platforms", json={**ATLAS, "display_name": "Another"})
    problem_of(another, 409, "already_exists")
    wrong = await ask("admin", "POST", "/api/v1/platforms", json={**ATLAS, "version_ref": "sheet"})
    assert "named once" in problem_of(wrong, 422, "invalid_input")["errors"][0]["message"]


async def test_a_partner_reads_of_itself_alone(ask: Callers) -> None:
    listed = {
        who: [each["platform_id"] for each in (await ask(who, "GET", "/api/v1/platforms")).json()["items"]]
        for who in KEYS
    }
    every = ["arcgis", "ddh", "geonode"]
    staff = dict.fromkeys(("reviewer", "operator", "admin"), every)
    assert listed == {"partner": ["ddh"], "other": ["arcgis"], **staff}
    found = await statuses(ask, "GET", "/api/v1/platforms/ddh")
    assert found == {"partner": 200, "other": 404, "reviewer": 200, "operator": 200, "admin": 200}


async def test_a_partner_in_use_keeps_its_identity(ask: Callers) -> None:
    path = "/api/v1/platforms/ddh"
    refused = {who: 403 for who in KEYS if who != "admin"}
    assert await statuses(ask, "PATCH", path, json={"is_active": False}) == {**refused, "admin": 200}
    assert [each["platform_id"] for each in (await ask("admin", "GET", "/api/v1/platforms")).json()["items"]] == [
        *("arcgis", "geonode")
    ]
    inactive = await ask("admin", "GET", "/api/v1/platforms", params={"inactive": True})
    assert len(inactive.json()["items"]) == 3
    answer = await ask("admin", "PATCH", path, json={"required_refs": ["dataset_id"]})
    problem_of(answer, 409, "platform_in_use")
    assert answer.json()["current"]["required_refs"] == ["dataset_id", "resource_id"]
    problem_of(await ask("admin", "PATCH", "/api/v1/platforms/nobody", json={}), 404, "not_found")


async def test_an_admin_says_where_the_files_of_a_partner_lie(ask: Callers) -> None:
    body = {**ATLAS, "source_containers": ["maps", "bronze/atlas/"]}
    added = await ask("admin", "POST", "/api/v1/platforms", json=body)
    assert (added.status_code, added.json()["source_containers"]) == (201, ["maps", "bronze/atlas/"])
    changed = await ask("admin", "PATCH", "/api/v1/platforms/atlas", json={"source_containers": ["maps"]})
    assert changed.json()["source_containers"] == ["maps"]
    ours = {"source_containers": [f"{Settings().silver_container}/atlas/"]}
    for method, path, request in (
        ("POST", "/api/v1/platforms", {**ATLAS, "platform_id": "other", **ours}),
        ("PATCH", "/api/v1/platforms/atlas", ours),
    ):
        problem_of(await ask("admin", method, path, json=request), 422, "invalid_input")
    assert (await ask("admin", "GET", "/api/v1/platforms/atlas")).json()["source_containers"] == ["maps"]


# Metadata


async def test_reviewers_describe_layers_and_partners_read_of_their_own(ask: Callers) -> None:
    assert (await ask("partner", "GET", METADATA)).json()["version"] == 0
    body = {"title": "Elevation", "keywords": ["dem"], "expected_version": 0}
    written = await statuses(ask, "PUT", METADATA, json=body)
    assert written == {"partner": 403, "other": 403, "reviewer": 200, "operator": 403, "admin": 200}
    read = await statuses(ask, "GET", METADATA)
    assert read == {"partner": 200, "other": 404, "reviewer": 200, "operator": 200, "admin": 200}
    found = (await ask("partner", "GET", METADATA)).json()
    assert (found["title"], found["version"], found["updated_by"]) == ("Elevation", 1, None)
    assert (await ask("operator", "GET", METADATA)).json()["updated_by"] == "reviewer"
    stale = await ask("reviewer", "PUT", METADATA, json={"title": "Heights", "expected_version": 7})
    problem_of(stale, 409, "stale_version")
    assert stale.json()["current"] == {"version": 1}


@pytest.mark.parametrize(
    "style",
    ['{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a": 1e999}', '{"a": ' + "[" * 600 + "]" * 600 + "}"],
    ids=["nul", "half a character", "infinite", "deep"],
)
async def test_what_no_row_can_hold_is_refused(ask: Callers, style: str) -> None:
    answer = await ask("reviewer", "PUT", METADATA, content=f'{{"style": {style}}}')
    assert answer.status_code in {400, 422}, answer.text


# Commands


async def test_operators_give_commands_and_only_admins_that_of_the_schema(ask: Callers) -> None:
    path = "/api/v1/commands/"
    only_staff = {"partner": 403, "other": 403, "reviewer": 403, "operator": 200, "admin": 200}
    assert await statuses(ask, "POST", f"{path}cache.invalidate", json={"all": True}) == only_staff
    assert await statuses(ask, "GET", "/api/v1/commands") == only_staff
    assert (await ask("operator", "POST", f"{path}schema.migrate")).status_code == 403
    answer = await ask("operator", "POST", f"{path}metadata.publish", json={"asset_id": ASSET, "version_ordinal": 0})
    assert answer.json() == {"command": "metadata.publish", "outcome": "changed", "details": {}}
    refused = await ask(
        "operator", "POST", f"{path}metadata.publish_external", json={"asset_id": ASSET, "version_ordinal": 0}
    )
    problem_of(refused, 409, "not_public")
    assert refused.json()["current"]["clearance_state"] == "uncleared"


async def test_the_commands_are_listed_with_what_they_take(ask: Callers) -> None:
    listed = {each["name"]: each for each in (await ask("operator", "GET", "/api/v1/commands")).json()["items"]}
    assert listed.keys() == COMMANDS.keys()
    assert listed["metadata.publish"]["parameters"]["required"] == ["asset_id", "version_ordinal"]
    assert (listed["schema.migrate"]["deed"], listed["asset.reindex"]["deed"]) == ("administer", "operate")


async def test_wrong_parameters_and_unknown_commands_are_told(ask: Callers) -> None:
    wrong = await ask("operator", "POST", "/api/v1/commands/asset.reindex", json={"asset_id": "x", "more": 1})
    faults = problem_of(wrong, 422, "invalid_input")["errors"]
    assert [fault["loc"] for fault in faults] == [["body", "asset_id"], ["body", "more"]]
    empty = await ask("operator", "POST", "/api/v1/commands/cache.invalidate")
    assert (
        problem_of(empty, 422, "invalid_input")["errors"][0]["message"]
        == 'say which asset, by asset_id, or "all": true'
    )
    unknown = problem_of(await ask("operator", "POST", "/api/v1/commands/cache.warm", json={}), 404, "not_found")
    assert all(name in unknown["hint"] for name in COMMANDS)
