"""The gateway cannot write, goes on reading without an orchestrator, and takes only so much."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.gateway.front import (
    DOMAIN,
    FLAT,
    NOWHERE,
    WHO,
    Front,
    address,
    key_of,
    problem_of,
    running_api,
    running_front,
    settings_of,
)

from graticule.core.errors import PermissionDenied
from graticule.core.table import DatabaseRole
from graticule.gateway import used_clients
from graticule.gateway.used_clients import UseNoter

WRITES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
READS = (
    *("platform/requests", "platforms", "platforms/ddh", "assets", "status/jobs", "status/stats", "admin/workflows"),
    *("admin/health", "admin/config", "admin/active-jobs", "admin/recent-events", "proxy/health"),
    "status/lookup?correlation_id=x",
)


async def test_the_login_of_the_gateway_can_only_select(database: TestDatabase, front: Front) -> None:
    with psycopg.connect(database.url(DatabaseRole.GATEWAY), autocommit=True) as connection:
        granted = connection.execute(
            "SELECT table_schema, table_name, privilege_type FROM information_schema.table_privileges"
            " WHERE grantee = current_user AND privilege_type = ANY (%s)",
            [list(WRITES)],
        ).fetchall()
        assert granted == []
        (creates,) = connection.execute("SELECT has_schema_privilege('dagapp', 'CREATE')").fetchone() or (None,)
        assert creates is False
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM dagapp.api_clients")
    with pytest.raises(PermissionDenied):
        async with front.app.state.database.connection() as read_only:
            await read_only.execute("DELETE FROM dagapp.api_clients")


async def test_with_the_orchestrator_down_reads_work_and_every_change_is_503(
    database: TestDatabase, tmp_path: Path, front: Front, subtests: pytest.Subtests
) -> None:
    asset_id = (await front.submitted())["asset_id"]
    settings = settings_of(tmp_path, orchestrator_url=address(NOWHERE))
    async with running_front(settings, database) as alone:
        more = [f"platform/status/{asset_id}", *(f"assets/{asset_id}{part}" for part in ("", "/versions", "/history"))]
        for path in (*READS, *more):
            with subtests.test(path):
                assert (await alone.ask("operator", "GET", f"/api/{path}")).status_code == 200
        for method, path, body in changes(asset_id):
            with subtests.test(f"{method} {path}"):
                answer = await alone.ask("admin", method, f"/api/{path}", json=body)
                problem_of(answer, 503, "unavailable")
                assert int(answer.headers["retry-after"]) > 0


def changes(asset_id: str) -> list[tuple[str, str, Any]]:
    named = {"asset_id": asset_id}
    return [
        ("POST", "platform/submit", {**FLAT, "platform_id": "ddh"}),
        ("POST", "platform/submit", {**DOMAIN, "platform_id": "ddh"}),
        ("POST", "platform/approve", {**named, "clearance_level": "ouo"}),
        *(("POST", f"platform/{deed}", {**named, "reason": "r"}) for deed in ("reject", "revoke", "reprocess")),
        *(("POST", f"platform/{deed}", named) for deed in ("unpublish", "retry")),
        ("POST", f"assets/{asset_id}/clearance", {"clearance_level": "ouo"}),
        ("PATCH", f"assets/{asset_id}", {"url_mode": "all_versions"}),
        ("DELETE", f"assets/{asset_id}/versions/0", None),
        ("POST", "gateway/submit", {"workflow_id": "echo_test"}),
        ("POST", "gateway/submit/batch", {"items": [{"workflow_id": "echo_test"}]}),
        ("POST", "proxy/orchestrator/api/v1/jobs", {}),
    ]


async def test_assets_are_changed_at_their_own_address(front: Front) -> None:
    asset_id = (await front.submitted())["asset_id"]
    front.process(asset_id)
    await front.post("reviewer", "/api/platform/approve", {"asset_id": asset_id, "clearance_level": "ouo"})
    public = await front.post("reviewer", f"/api/assets/{asset_id}/clearance", {"clearance_level": "public"})
    assert public["asset"]["clearance_state"] == "public"
    assert public["job_id"] is None  # reviewers do not look at jobs
    seen = await front.ask("operator", "GET", f"/api/assets/{asset_id}")
    stale = {"url_mode": "all_versions", "expected_version": seen.json()["version"] + 1}
    problem = problem_of(await front.ask("reviewer", "PATCH", f"/api/assets/{asset_id}", json=stale), 409)
    assert problem["code"] == "stale_version"
    assert problem["current"]["version"] == seen.json()["version"]
    changed = await front.ask("reviewer", "PATCH", f"/api/assets/{asset_id}", json={"url_mode": "all_versions"})
    assert changed.json()["asset"]["url_mode"] == "all_versions"
    refused = await front.ask("operator", "DELETE", f"/api/assets/{asset_id}/versions/0?expected_version=1")
    problem_of(refused, 409, "stale_version")
    front.execute("UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now()")
    gone = await front.ask("operator", "DELETE", f"/api/assets/{asset_id}/versions/0")
    assert gone.status_code in {200, 409}, gone.text


async def test_a_body_over_the_limit_is_refused(database: TestDatabase, tmp_path: Path) -> None:
    settings = settings_of(tmp_path, gateway_max_body_bytes=1024)
    async with running_front(settings, database) as front:
        answer = await front.ask("partner", "POST", "/api/platform/submit", json={**FLAT, "file_name": "x" * 1024})
    problem_of(answer, 413, "content_too_large")


async def test_a_client_that_asks_too_often_waits(database: TestDatabase, tmp_path: Path) -> None:
    async with running_front(settings_of(tmp_path, rate_limit_per_minute=2), database) as front:
        answers = [await front.ask("partner", "GET", "/api/platforms") for _ in range(4)]
        allowed = [answer for answer in answers if answer.status_code == 200]
        assert len(allowed) in {2, 3}  # when a minute begins between them, a part of the one before counts
        assert answers[3].status_code == 429
        assert int(answers[3].headers["retry-after"]) > 0
        assert (await front.ask("stranger", "GET", "/api/platforms")).status_code == 200


async def test_the_orchestrator_is_told_which_clients_have_called(
    database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(used_clients, "MOST_AT_ONCE", 1)
    settings = settings_of(tmp_path)
    async with running_front(settings_of(tmp_path, orchestrator_url=address(NOWHERE)), database) as front:
        noter = UseNoter(front.app.state.access, front.app.state.orchestrator)
        for who in ("partner", "operator"):
            await front.get(who, "/api/platforms")
        await noter.note()
        assert noter._seen == {"partner", "operator"}  # for the next time
        async with running_api(settings, database) as api, running_front(settings, database, api) as other:
            noter._orchestrator = other.app.state.orchestrator
            await noter.note()
    assert noter._seen == set()
    used = front.execute("SELECT client_id FROM dagapp.api_clients WHERE last_used_at IS NOT NULL ORDER BY 1")
    assert used == [("operator",), ("partner",)]


async def test_a_key_is_never_logged_or_answered(front: Front, logged: list[Any]) -> None:
    for who in WHO:
        await front.ask(who, "GET", "/api/assets")
        problem_of(await front.ask(who, "GET", "/api/nowhere"), 404)
    told = str(logged) + "".join(answer.text for answer in front.answers)
    assert not [who for who in WHO if key_of(who) in told]
