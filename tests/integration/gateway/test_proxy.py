"""The proxy reaches the configured targets and nothing else, and passes on what it should and nothing more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.gateway.front import (
    NOWHERE,
    SERVICE_KEY,
    TOKEN,
    Front,
    address,
    ask_raw,
    headers_of,
    key_of,
    problem_of,
    running_front,
    served,
    settings_of,
)
from tests.integration.gateway.targets import Target

from graticule.core.models.platform import ClientRole
from graticule.gateway import proxy
from graticule.services.service_tokens import HEADER, ServiceTokens

LIMIT = 4096


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    target = Target()
    async with served(target.app) as found:
        target.address = found
        yield target


@pytest.fixture
async def front(database: TestDatabase, target: Target, tmp_path: Path) -> AsyncIterator[Front]:
    settings = settings_of(
        tmp_path,
        orchestrator_url=address(target.address),
        proxy_targets={"serve": address(f"{target.address}/base/"), "down": address(NOWHERE)},
        gateway_max_body_bytes=LIMIT,
    )
    async with running_front(settings, database) as running:
        yield running


async def test_a_request_goes_on_without_the_callers_credentials(front: Front, target: Target) -> None:
    sent = {"Cookie": "c=d", "X-Forwarded-For": "1.2.3.4", "Connection": "X-Own", "X-Own": "1"}
    body = b'{"a": 1}'
    headers = {**sent, "Content-Type": "application/json", "Idempotency-Key": "k", "X-Request-ID": "r"}
    answer = await front.ask(
        "operator", "POST", "/api/proxy/orchestrator/api/v1/jobs?b=1&b=%20x", content=body, headers=headers
    )
    assert (answer.status_code, answer.content) == (200, b"<p>hello</p>")
    (request,) = target.requests
    assert (request.method, request.url.path, request.url.query) == ("POST", "/api/v1/jobs", "b=1&b=%20x")
    assert target.bodies == [body]
    kept = {"content-type": "application/json", "idempotency-key": "k", "x-request-id": "r", "content-length": "8"}
    assert kept.items() <= dict(request.headers).items()
    assert not {"x-api-key", "authorization", "cookie", "x-forwarded-for", "x-own"} & set(request.headers)
    assert key_of("operator") not in str(request.headers)
    caller = ServiceTokens(SecretStr(SERVICE_KEY)).read(request.headers[HEADER])
    assert (caller.name, caller.roles) == ("operator", frozenset({ClientRole.OPERATOR}))


async def test_other_targets_are_given_no_credential_at_all(front: Front, target: Target) -> None:
    methods = ["GET", "HEAD", "PUT", "PATCH", "DELETE"]
    for method in methods:
        answer = await front.ask("operator", method, "/api/proxy/serve/tiles/1/2/3@2x.png")
        assert answer.status_code == 200
    assert [request.method for request in target.requests] == methods
    for request in target.requests:
        assert request.url.path == "/base/tiles/1/2/3@2x.png"
        assert not {"x-api-key", "authorization", HEADER.lower()} & set(request.headers)


async def test_answers_keep_our_headers_and_bring_few_of_their_own(front: Front) -> None:
    answer = await front.ask("operator", "GET", "/api/proxy/serve/page")
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["etag"] == '"e"'
    assert answer.headers["content-type"].startswith("text/html")
    assert not {"set-cookie", "server", "x-secret", "connection", "www-authenticate"} & set(answer.headers)
    assert (await front.ask("operator", "GET", "/api/proxy/serve/teapot")).status_code == 418


async def test_an_orchestrator_that_does_not_believe_the_gateway_is_no_fault_of_the_caller(front: Front) -> None:
    problem = problem_of(await front.ask("operator", "GET", "/api/proxy/orchestrator/stranger"), 503, "unavailable")
    assert "GRATICULE_SERVICE_KEY" in problem["hint"]
    assert (await front.ask("operator", "GET", "/api/proxy/serve/stranger")).status_code == 401


async def test_redirects_are_passed_on_and_lead_nowhere_else(front: Front, target: Target) -> None:
    leads = {
        "/base/there?x=1": "/api/proxy/serve/there?x=1",
        "there/../on": "/api/proxy/serve/on",
        f"{target.address}/base/there": "/api/proxy/serve/there",
        f"{target.address}/elsewhere": None,
        "/outside": None,
        "http://internal.example/base/there": None,
        "//internal.example/base/there": None,
        "http://[broken": None,
    }
    for to, expected in leads.items():
        answer = await front.ask("operator", "GET", "/api/proxy/serve/moved", params={"to": to})
        assert (answer.status_code, answer.headers.get("location")) == (307, expected), to
    assert len(target.requests) == len(leads)


async def test_a_target_is_asked_by_the_name_by_which_it_knows_itself(
    database: TestDatabase, target: Target, tmp_path: Path
) -> None:
    settings = settings_of(
        tmp_path,
        orchestrator_url=address(target.address),
        proxy_targets={"serve": address(target.address)},
        serve_url=address("https://maps.example:8443/data"),
    )
    leads = {
        "https://maps.example:8443/data/there?x=1": "/api/proxy/serve/there?x=1",
        f"{target.address}/there": "/api/proxy/serve/there",
        "https://maps.example:8443/elsewhere": None,
        "https://maps.example/data/there": None,
        "http://maps.example:8443/data/there": None,
    }
    async with running_front(settings, database) as front:
        for to, expected in leads.items():
            answer = await front.ask("operator", "GET", "/api/proxy/serve/moved", params={"to": to})
            assert answer.headers.get("location") == expected, to
        assert (await front.get("operator", "/api/proxy/health"))["status"] == "healthy"
        await front.ask("operator", "GET", "/api/proxy/orchestrator/x")
    hosts = {(request.url.path, request.headers["host"]) for request in target.requests}
    plain = target.address.removeprefix("http://")
    told = {("/moved", "maps.example:8443"), ("/livez", "maps.example:8443"), ("/livez", plain), ("/x", plain)}
    assert {each for each in hosts if each[0] in {"/moved", "/livez", "/x"}} == told


async def test_who_crowds_one_target_keeps_nobody_from_the_others_and_from_probes(
    database: TestDatabase, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "CONNECTIONS", 1)
    settings = settings_of(
        tmp_path, orchestrator_url=address(target.address), proxy_targets={"serve": address(target.address)}
    )
    async with (
        running_front(settings, database) as front,
        served(front.app) as found,
        httpx.AsyncClient(base_url=found, headers=headers_of("operator"), timeout=10, verify=False) as client,
        client.stream("GET", "/api/proxy/serve/events") as held,
    ):
        assert held.status_code == 200
        assert (await client.get("/api/proxy/orchestrator/x")).status_code == 200
        assert (await client.get("/api/proxy/health")).json()["status"] == "healthy"


async def test_what_is_not_configured_cannot_be_reached(front: Front, target: Target) -> None:
    for name in ("nowhere", "127.0.0.1", "http:", "ORCHESTRATOR", "serve%2f..", "@127.0.0.1"):
        answer = await front.ask("operator", "GET", f"/api/proxy/{name}/x")
        assert answer.status_code in {404, 422}, name
        assert "127.0.0.1:" not in answer.text
    assert target.requests == []


async def test_no_path_leads_out_of_a_target(front: Front, target: Target, subtests: pytest.Subtests) -> None:
    tricks = [
        *("../x", "a/../../x", "%2e%2e/x", "a/%2e%2e/%2e%2e/x", "%252e%252e/x", "a%2fb", "a%5cb", "a\\b", "./x"),
        *("/etc", "//evil.example/x", "http://evil.example/x", "a%00b", "a%0d%0aX-Evil:1", "a//b", "..%2f..%2fx"),
    ]
    for path in tricks:
        with subtests.test(path):
            status = await ask_raw(front.app, "operator", f"/api/proxy/serve/{path}".encode())
            assert status == (404 if "%0d" in path else 422)  # no route has a line break in it
    assert target.requests == []


async def test_an_odd_query_is_passed_on_or_refused(front: Front, target: Target) -> None:
    for query, expected in ((b"a=%zz", 200), (b"a=\xc3\xbc", 422), (b"x=" + b"y" * 70_000, 422), (b"a#b", 422)):
        assert await ask_raw(front.app, "operator", b"/api/proxy/serve/x", query) == expected, query[:9]
    assert [request.url.query for request in target.requests] == ["a=%zz"]


async def test_a_target_that_is_down_is_503_and_tells_no_address(front: Front) -> None:
    answer = await front.ask("operator", "GET", "/api/proxy/down/x")
    assert "127.0.0.1" not in answer.text
    assert problem_of(answer, 503, "unavailable")["detail"] == "The target 'down' does not answer."
    assert answer.headers["retry-after"]


async def test_health_tells_of_each_target_and_no_address(front: Front) -> None:
    answer = await front.ask("operator", "GET", "/api/proxy/health")
    health = answer.json()
    assert health["status"] == "unhealthy"
    assert {name: each["ok"] for name, each in health["targets"].items()} == {
        "serve": True,
        "down": False,
        "orchestrator": True,
    }
    assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_that_is_too_large_is_cut_off(front: Front, target: Target, announced: bool) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * (LIMIT // 4)

    content: Any = b"x" * (2 * LIMIT) if announced else body()
    problem_of(await front.ask("operator", "POST", "/api/proxy/serve/x", content=content), 413)
    assert [body for body in target.bodies if len(body) > LIMIT] == []


async def test_only_operators_pass(front: Front, target: Target) -> None:
    for who in ("partner", "reviewer", "worker"):
        problem_of(await front.ask(who, "GET", "/api/proxy/serve/x"), 403)
    problem_of(await front.ask(None, "GET", "/api/proxy/serve/x"), 401)
    bearer = await front.ask(None, "GET", "/api/proxy/serve/x", headers={"Authorization": f"Bearer {TOKEN}"})
    assert bearer.status_code in {401, 403}
    assert target.requests == []


async def test_events_arrive_as_they_happen_and_the_stream_ends_when_the_client_goes(
    front: Front, target: Target
) -> None:
    headers = {**headers_of("operator"), "Accept": "text/event-stream"}
    async with (
        served(front.app) as found,
        httpx.AsyncClient(base_url=found, headers=headers, timeout=30, verify=False) as client,
    ):
        async with client.stream("GET", "/api/proxy/serve/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            chunks = answer.aiter_raw()
            assert await anext(chunks) == b"data: 1\n\n"
            assert not target.gone.is_set()
            target.more.set()
            assert await anext(chunks) == b"data: 2\n\n"
        async with asyncio.timeout(20):
            await target.gone.wait()


async def test_a_stop_of_the_gateway_ends_a_stream(front: Front, target: Target) -> None:
    headers = {**headers_of("operator"), "Accept": "text/event-stream"}
    async with (
        served(front.app) as found,
        httpx.AsyncClient(base_url=found, headers=headers, timeout=30, verify=False) as client,
        client.stream("GET", "/api/proxy/serve/events") as answer,
    ):
        chunks = answer.aiter_raw()
        assert await anext(chunks) == b"data: 1\n\n"
        front.app.state.stopping.set()
        async with asyncio.timeout(20):
            assert [chunk async for chunk in chunks] == []
            await target.gone.wait()


async def test_a_gateway_without_streams_refuses_them(front: Front, target: Target) -> None:
    front.app.state.proxy._streams = False
    answer = await front.ask("operator", "GET", "/api/proxy/serve/events")
    assert "streams" in problem_of(answer, 422, "invalid_input")["detail"]
    async with asyncio.timeout(20):
        await target.gone.wait()
