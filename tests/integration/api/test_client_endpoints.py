"""Clients over HTTP: their keys open what their roles allow, often enough and no oftener, and leave no trace."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest
from pydantic import SecretStr
from structlog.typing import EventDict
from tests.conftest import TestDatabase
from tests.integration.api.conftest import StartApi
from tests.integration.api.running import KEY, TOKEN
from tests.integration.api.test_bootstrap_access import problem_of
from tests.unit.services.issuer import AUDIENCE, Issuer, issuer_running

from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services.service_tokens import GATEWAY, ServiceTokens

CLIENTS = "/api/v1/clients"
SERVICE_KEY = SecretStr("the key that the gateway and the orchestrator share")
TOKENS = ServiceTokens(SERVICE_KEY)
PORTAL = {"client_id": "ddh-portal", "display_name": "The portal", "roles": ["submitter"], "platform_id": "ddh"}
OPERATOR = {"client_id": "on-call", "display_name": "On call", "roles": ["operator"]}


@pytest.fixture
async def client(database: TestDatabase, start_api: StartApi) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client without a credential, of an application that knows the gateway."""
    async with start_api(database, service_key=SERVICE_KEY, rate_limit_per_minute=5) as started:
        yield started


ADMIN = {"X-API-Key": KEY}


async def add(client: httpx.AsyncClient, **new: Any) -> dict[str, str]:
    """Add a client, and give the header that it sends."""
    answer = await client.post(CLIENTS, json={**OPERATOR, **new}, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    return {"X-API-Key": answer.json()["key"]}


async def test_a_client_lives_its_life(client: httpx.AsyncClient) -> None:
    added = (await client.post(CLIENTS, json=PORTAL, headers=ADMIN)).json()
    assert {name: added[name] for name in PORTAL} == PORTAL
    assert added.keys().isdisjoint({"key_hash"})
    shown = {name: value for name, value in added.items() if name != "key"}
    assert (await client.get(CLIENTS, headers=ADMIN)).json() == {"items": [shown], "next": None}
    assert (await client.get(f"{CLIENTS}/ddh-portal", headers=ADMIN)).json() == shown
    rotated = (await client.post(f"{CLIENTS}/ddh-portal/rotate", headers=ADMIN)).json()
    assert rotated["key"] != added["key"]
    disabled = await client.post(f"{CLIENTS}/ddh-portal/disable", headers=ADMIN)
    assert (disabled.status_code, disabled.json()["is_active"]) == (200, False)
    enabled = await client.post(f"{CLIENTS}/ddh-portal/enable", headers=ADMIN)
    assert (enabled.status_code, enabled.json()["is_active"]) == (200, True)


async def test_what_is_wrong_is_told(client: httpx.AsyncClient) -> None:
    await add(client, **PORTAL)
    problem_of(await client.post(CLIENTS, json=PORTAL, headers=ADMIN), 409, "already_exists")
    nowhere = {**PORTAL, "client_id": "other", "platform_id": "nowhere"}
    problem_of(await client.post(CLIENTS, json=nowhere, headers=ADMIN), 422, "invalid_input")
    staff = {**OPERATOR, "platform_id": "ddh"}
    problem_of(await client.post(CLIENTS, json=staff, headers=ADMIN), 422, "invalid_input")
    problem_of(await client.get(f"{CLIENTS}/nobody", headers=ADMIN), 404, "not_found")
    problem_of(await client.get(f"{CLIENTS}/NOBODY", headers=ADMIN), 422, "invalid_input")
    for change in ("rotate", "disable", "enable"):
        problem_of(await client.post(f"{CLIENTS}/nobody/{change}", headers=ADMIN), 404, "not_found")


async def test_a_key_opens_what_its_roles_allow_and_nothing_after_its_end(client: httpx.AsyncClient) -> None:
    operator, submitter = await add(client), await add(client, **PORTAL)
    assert (await client.get("/api/v1/jobs", headers=operator)).status_code == 200
    refused = problem_of(await client.get("/api/v1/jobs", headers=submitter), 403, "permission_denied")
    assert "operator" in refused["detail"]
    problem_of(await client.get(CLIENTS, headers=operator), 403, "permission_denied")
    problem_of(await client.get("/api/v1/bootstrap/status", headers=operator), 403, "permission_denied")
    await client.post(f"{CLIENTS}/on-call/disable", headers=ADMIN)
    problem_of(await client.get("/api/v1/jobs", headers=operator), 401, "unauthenticated")


async def test_deeds_are_recorded_under_the_name_of_the_client(
    client: httpx.AsyncClient, admin: psycopg.AsyncConnection
) -> None:
    root = await add(client, client_id="root", roles=["admin"])
    answer = await client.post(CLIENTS, json=PORTAL, headers=root)
    assert answer.status_code == 201
    cursor = await admin.execute("SELECT actor, data->>'client_id' FROM dagapp.dag_job_events ORDER BY event_id")
    assert await cursor.fetchall() == [("admin", "root"), ("root", "ddh-portal")]


async def test_a_client_of_the_role_worker_may_report(client: httpx.AsyncClient) -> None:
    worker = await add(client, client_id="far-worker", roles=["worker"])
    report = {"task_id": "none", "worker_id": "w", "delivery_count": 1, "status": "completed", "output": {}}
    for _ in range(8):  # workers report as they work
        answer = await client.post("/api/v1/callbacks/task-result", json=report, headers=worker)
        problem_of(answer, 404, "not_found")
    problem_of(await client.get("/api/v1/jobs", headers=worker), 403, "permission_denied")


async def test_two_credentials_are_refused(client: httpx.AsyncClient) -> None:
    both = {**await add(client), "X-Service-Token": TOKENS.sign(Caller("ada", frozenset({ClientRole.ADMIN})))}
    assert (
        "more than one" in problem_of(await client.get("/api/v1/jobs", headers=both), 401, "unauthenticated")["detail"]
    )
    worker = {**ADMIN, "Authorization": f"Bearer {TOKEN}"}
    assert (await client.get("/api/v1/jobs", headers=worker)).status_code == 200


# The gateway


async def test_the_gateway_speaks_for_a_caller(client: httpx.AsyncClient) -> None:
    reviewer = {"X-Service-Token": TOKENS.sign(Caller("ada", frozenset({ClientRole.REVIEWER})))}
    problem_of(await client.get("/api/v1/jobs", headers=reviewer), 403, "permission_denied")
    operator = {"X-Service-Token": TOKENS.sign(Caller("ada", frozenset({ClientRole.OPERATOR})))}
    answers = [await client.get("/api/v1/jobs", headers=operator) for _ in range(8)]
    assert {answer.status_code for answer in answers} == {200}, "it was counted at the gateway"
    forged = {"X-Service-Token": ServiceTokens(SecretStr("x" * 32)).sign(Caller("a", frozenset({ClientRole.ADMIN})))}
    problem_of(await client.get("/api/v1/jobs", headers=forged), 401, "unauthenticated")


async def test_without_a_service_key_nobody_speaks_for_others(database: TestDatabase, start_api: StartApi) -> None:
    header = {"X-Service-Token": TOKENS.sign(Caller("ada", frozenset({ClientRole.ADMIN})))}
    async with start_api(database) as client:
        problem_of(await client.get(CLIENTS, headers=header), 401, "unauthenticated")
        problem_of(
            await client.post(f"{CLIENTS}/used", json={"client_ids": []}, headers=header), 401, "unauthenticated"
        )


async def test_the_gateway_tells_who_has_called(client: httpx.AsyncClient) -> None:
    await add(client)
    used, header = {"client_ids": ["on-call", "unknown"]}, {"X-Service-Token": TOKENS.sign(GATEWAY)}
    assert (await client.post(f"{CLIENTS}/used", json=used, headers=header)).json() == {"noted": 1}
    assert (await client.post(f"{CLIENTS}/used", json=used, headers=header)).json() == {"noted": 0}
    assert (await client.get(f"{CLIENTS}/on-call", headers=ADMIN)).json()["last_used_at"] is not None
    for other in (ADMIN, {}, {"X-Service-Token": "x"}):
        problem_of(await client.post(f"{CLIENTS}/used", json=used, headers=other), 401, "unauthenticated")
    for person in (Caller("ada", frozenset({ClientRole.ADMIN})), Caller("gateway", frozenset({ClientRole.SUBMITTER}))):
        spoken_for = {"X-Service-Token": TOKENS.sign(person)}
        answer = await client.post(f"{CLIENTS}/used", json=used, headers=spoken_for)
        problem_of(answer, 403, "permission_denied")
    many = {"client_ids": ["on-call"] * 1001}
    problem_of(await client.post(f"{CLIENTS}/used", json=many, headers=header), 422, "invalid_input")


async def test_the_orchestrator_notes_who_has_called_it_by_the_time_that_it_ends(
    database: TestDatabase, start_api: StartApi, admin: psycopg.AsyncConnection
) -> None:
    async with start_api(database) as client:
        assert (await client.get("/api/v1/jobs", headers=await add(client))).status_code == 200
        await add(client, client_id="silent")
    cursor = await admin.execute("SELECT client_id FROM dagapp.api_clients WHERE last_used_at IS NOT NULL")
    assert await cursor.fetchall() == [("on-call",)]


# How often


async def test_who_asks_too_often_is_told_to_wait_and_the_others_are_not(client: httpx.AsyncClient) -> None:
    operator, other = await add(client), await add(client, client_id="another")
    answers = [await client.get("/api/v1/jobs", headers=operator) for _ in range(8)]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) in {2, 3}, "a minute may have ended meanwhile"
    for answer in refused:
        problem_of(answer, 429, "too_many_requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert (await client.get("/api/v1/jobs", headers=other)).status_code == 200
    admin_answers = [await client.get("/api/v1/jobs", headers=ADMIN) for _ in range(8)]
    assert {answer.status_code for answer in admin_answers} == {200}, (
        "the admin key opens the door when others crowd it"
    )


async def test_an_address_that_guesses_waits_and_a_right_credential_does_not(
    database: TestDatabase, start_api: StartApi
) -> None:
    async with start_api(database, most_failures=5, service_key=SERVICE_KEY) as client:
        operator = await add(client)
        guesses = [{"X-API-Key": f"guess-{number}"} for number in range(2)]
        guesses += [{"X-API-Key": "gtc_" + "W" * 43}, {"Authorization": "Bearer guess"}]
        guesses += [{"X-API-Key": "guess", "X-Service-Token": "junk"}]
        for guess in guesses:
            problem_of(await client.get(CLIENTS, headers=guess), 401, "unauthenticated")
        for guess in guesses:
            problem_of(await client.get(CLIENTS, headers=guess), 429, "too_many_requests")
            problem_of(await client.post(CLIENTS, headers=guess, content=b"{"), 429, "too_many_requests")
        assert (await client.get(CLIENTS, headers=ADMIN)).status_code == 200
        assert (await client.get("/api/v1/jobs", headers=operator)).status_code == 200
        worker = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/api/v1/callbacks/checkpoint?task_id=x", headers=worker)).status_code != 429
        problem_of(await client.get(CLIENTS), 401, "unauthenticated")
        gateway = {"X-Service-Token": TOKENS.sign(Caller("ada", frozenset({ClientRole.ADMIN})))}
        assert (await client.get(CLIENTS, headers=gateway)).status_code == 200


# Tokens of an issuer


@pytest.fixture
def issuer() -> Any:
    with issuer_running() as (running, _):
        yield running


async def test_a_token_of_the_issuer_opens_what_its_roles_allow(
    database: TestDatabase, start_api: StartApi, issuer: Issuer
) -> None:
    async with start_api(database, oidc_issuer=issuer.url, oidc_audience=AUDIENCE) as client:

        async def get(path: str, token: str) -> httpx.Response:
            return await client.get(path, headers={"Authorization": f"Bearer {token}"})

        assert (await get("/api/v1/jobs", issuer.token())).status_code == 200
        problem_of(await get(CLIENTS, issuer.token()), 403, "permission_denied")
        assert (await get(CLIENTS, issuer.token(roles=["admin"]))).status_code == 200
        problem_of(await get("/api/v1/jobs", issuer.token(roles=[])), 403, "permission_denied")
        problem_of(await get("/api/v1/jobs", issuer.token(aud="x")), 401, "unauthenticated")
    issuer.answers[issuer.keys_path] = (500, {}, b"")
    async with start_api(database, oidc_issuer=issuer.url, oidc_audience=AUDIENCE) as client:
        away = await client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {issuer.token()}"})
        problem_of(away, 503, "unavailable")
        assert away.headers["retry-after"]


# Secrets


async def test_no_key_and_no_token_is_told_anywhere(
    database: TestDatabase,
    start_api: StartApi,
    issuer: Issuer,
    admin: psycopg.AsyncConnection,
    logged: list[EventDict],
) -> None:
    """Send every kind of credential, right and wrong, in every place; then look wherever something is told."""
    settings: dict[str, Any] = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "service_key": SERVICE_KEY}
    told: list[str] = []
    async with start_api(database, most_failures=1000, **settings) as client:
        keys = [(await add(client, client_id=f"client-{number}"))["X-API-Key"] for number in range(2)]
        rotated = (await client.post(f"{CLIENTS}/client-0/rotate", headers=ADMIN)).json()["key"]
        wrong = ["gtc_" + "W" * 43, "wrong-key-Zq7Kx9"]
        tokens = [issuer.token(), issuer.token(roles=[]), issuer.token(exp=1), issuer.token(kid="other"), "Zq7.Kx9.Vw3"]
        tokens += [TOKENS.sign(GATEWAY), TOKENS.sign(GATEWAY)[:-3]]
        secrets = [KEY, TOKEN, SERVICE_KEY.get_secret_value(), *keys, rotated, *wrong, *tokens]
        for secret in secrets:
            for header in ({"X-API-Key": secret}, {"Authorization": f"Bearer {secret}"}, {"X-Service-Token": secret}):
                for path in ("/api/v1/jobs", CLIENTS, f"{CLIENTS}/client-1", "/api/v1/callbacks/checkpoint?task_id=x"):
                    answer = await client.get(path, headers=header)
                    told += [answer.text, str(answer.headers)]
            answer = await client.post(CLIENTS, json={"client_id": secret, "key": secret}, headers=ADMIN)
            told.append(answer.text)
        app: Any = client._transport
        state = app.app.state
        told += [repr(each) for each in (state.access, state.clients, state.service_tokens, state.rate_limits)]
        told += [repr(vars(each)) for each in (state.access, state.clients, state.service_tokens)]
    told.append(json.dumps(logged, default=repr))
    for table in ("api_clients", "dag_job_events"):
        cursor = await admin.execute(f"SELECT coalesce(string_agg(t::text, ' '), '') FROM dagapp.{table} t")
        ((rows,),) = await cursor.fetchall()
        told.append(rows)
    everything = "\n".join(told)
    assert len(everything) > 10_000
    parts = {part for secret in secrets for part in (secret, *secret.split(".")[1:]) if len(part) > 2}
    assert [part for part in parts if part in everything] == []
