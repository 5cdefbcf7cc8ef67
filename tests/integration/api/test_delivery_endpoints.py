"""`/api/v1/deliveries`, and the secrets that callbacks are verified with."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.api.conftest import running_client
from tests.integration.api.running import KEY
from tests.integration.services.outbox import JOB, MASTER, Outbox

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.services.webhooks import OPERATORS, signing_secret

PATHS = (
    ("GET", "/api/v1/deliveries"),
    ("GET", "/api/v1/deliveries/1"),
    ("POST", "/api/v1/deliveries/1/redeliver"),
    ("GET", "/api/v1/deliveries/webhook-secret"),
    ("GET", "/api/v1/platforms/ddh/webhook-secret"),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(admin_key=SecretStr(KEY), webhook_secret=SecretStr(MASTER), home=tmp_path)


@pytest.fixture
async def client(database: TestDatabase, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of an application that knows the secret, and whose engine rests."""
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=())
    async with running_client(app) as running:
        running.headers["X-API-Key"] = KEY
        yield running


async def test_nobody_gets_in_without_a_key(visitor: httpx.AsyncClient) -> None:
    for method, path in PATHS:
        assert (await visitor.request(method, path)).status_code == 401


async def test_callbacks_are_listed_in_pages_without_the_key_in_their_url(
    client: httpx.AsyncClient, pool: Database
) -> None:
    added = await Outbox(pool).fill(*["https://example.org/hook?key=secret"] * 3)
    first = (await client.get("/api/v1/deliveries", params={"limit": 2, "state": "waiting", "job_id": JOB})).json()
    second = (await client.get("/api/v1/deliveries", params={"limit": 2, "cursor": first["next"]})).json()
    shown = [*first["items"], *second["items"]]
    assert [each["callback_id"] for each in shown] == [each.callback_id for each in reversed(added)]
    assert second["next"] is None
    assert {each["url"] for each in shown} == {"https://example.org/hook"}
    one = await client.get(f"/api/v1/deliveries/{added[0].callback_id}")
    assert one.json() == shown[-1]
    assert "secret" not in one.text


async def test_an_operator_sends_one_anew(client: httpx.AsyncClient, pool: Database) -> None:
    outbox = Outbox(pool)
    (callback,) = await outbox.fill("https://example.org/", delivered_at=pool.now(), attempt_count=4)
    answer = await client.post(f"/api/v1/deliveries/{callback.callback_id}/redeliver")
    assert (answer.status_code, answer.json()["state"], answer.json()["attempt_count"]) == (200, "waiting", 0)
    assert [(event.event_type, event.actor) for event in await outbox.events()] == [("command_executed", "admin")]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/deliveries/7", 404),
        ("POST", "/api/v1/deliveries/7/redeliver", 404),
        ("GET", f"/api/v1/deliveries/{2**63}", 422),
        ("GET", "/api/v1/deliveries/0", 422),
        ("GET", "/api/v1/deliveries/x", 422),
        ("GET", "/api/v1/deliveries?state=lost", 422),
        ("GET", "/api/v1/deliveries?cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk", 422),
        ("GET", "/api/v1/deliveries?job_id=%00", 422),
        ("GET", "/api/v1/platforms/nobody/webhook-secret", 404),
        ("GET", "/api/v1/platforms/No-Body/webhook-secret", 422),
    ],
)
async def test_what_is_not_there_or_makes_no_sense(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_secrets_are_told_and_are_those_that_sign(client: httpx.AsyncClient) -> None:
    partners = await client.get("/api/v1/platforms/ddh/webhook-secret")
    assert partners.json() == {"recipient": "ddh", "secret": signing_secret(MASTER, "ddh")}
    assert partners.headers["cache-control"] == "no-store"
    operators = (await client.get("/api/v1/deliveries/webhook-secret")).json()
    assert operators == {"recipient": OPERATORS, "secret": signing_secret(MASTER, OPERATORS)}


async def test_without_a_master_secret_there_are_none(admin_client: httpx.AsyncClient) -> None:
    for path in ("/api/v1/platforms/ddh/webhook-secret", "/api/v1/deliveries/webhook-secret"):
        answer = await admin_client.get(path)
        assert answer.status_code == 409
        assert "GRATICULE_WEBHOOK_SECRET" in answer.json()["hint"]
