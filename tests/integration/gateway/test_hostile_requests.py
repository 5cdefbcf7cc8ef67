"""Text that no header or row can hold is refused, and strangers learn nothing of what is behind the gateway."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from fastapi import FastAPI, Response
from tests.conftest import TestDatabase
from tests.integration.gateway.front import (
    DOMAIN,
    FLAT,
    SERVICE_KEY,
    Front,
    address,
    caller_of,
    key_of,
    problem_of,
    running_front,
    served,
    settings_of,
)
from tests.integration.gateway.test_gateway_limits import changes

from graticule import __version__
from graticule.core.errors import InvalidInput
from graticule.core.table import DatabaseRole
from graticule.gateway.forwarding import Forwarder, Orchestrator
from graticule.http.problems import MOST_FIELD_ERRORS
from graticule.http.rate_limits import RateLimits
from graticule.services.jobs import Submission

ECHO: Final = {"workflow_id": "echo_test"}
BATCH: Final = "/api/gateway/submit/batch"
LONE: Final = "\ud800"
STRANGE: Final = "café".encode()


def spoilt(body: Any) -> list[Any]:
    """Give a body with half a character in each of its places: as a value, below it, and as a name."""
    return [
        *({**body, name: LONE} for name in body),
        *({**body, name: {LONE: 1, "a": [LONE]}} for name in body),
        {**body, "processing_options": {"a": LONE}},
        {**body, "processing_options": {LONE: 1}},
        {**body, "input_params": {"a": [{"b": LONE}]}},
        {**body, "input_params": {LONE: 1}},
        {**body, LONE: 1},
    ]


async def send_raw(front: Front, method: str, path: str, body: Any) -> httpx.Response:
    """Send JSON with escapes that stand for half a character."""
    text = json.dumps(body).encode("ascii")
    return await front.ask("admin", method, path, content=text, headers={"Content-Type": "application/json"})


async def test_half_a_character_anywhere_in_a_body_is_refused(front: Front) -> None:
    for method, path, body in changes("0" * 32):
        if not body or path.startswith("proxy"):
            continue
        for each in spoilt(body):
            answer = await send_raw(front, method, f"/api/{path}", each)
            assert answer.status_code == 422, (path, each, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"


def ambiguous(body: dict[str, Any]) -> list[str]:
    """Write a body with numbers that JSON does not have in each of its places, and with each of its names twice."""
    text = json.dumps(body)
    numbers = ("NaN", "Infinity", "-Infinity", '{"a": [NaN]}', "1e999")
    spots = ({**body, name: "@"} for name in (*body, "processing_options", "input_params"))
    return [
        *(json.dumps(each).replace('"@"', number) for each in spots for number in numbers),
        *(f"{text[:-1]}, {json.dumps(name)}: {json.dumps(value)}}}" for name, value in body.items()),
        text.replace('"', '"a": 1, "a": 2, "', 1),
        *numbers,
    ]


async def test_a_body_that_readers_take_differently_changes_nothing(front: Front) -> None:
    for method, path, body in changes("0" * 32):
        if not body or path.startswith("proxy"):
            continue
        for text in ambiguous(body):
            headers = {"Content-Type": "application/json"}
            answer = await front.ask("admin", method, f"/api/{path}", content=text.encode(), headers=headers)
            problem_of(answer, 400, "malformed_request")
    assert front.execute("SELECT count(*) FROM dagapp.dag_jobs") == [(0,)]
    assert front.execute("SELECT count(*) FROM dagapp.platform_requests") == [(0,)]


async def test_such_a_body_is_refused_by_the_orchestrator_too(front: Front) -> None:
    assert front.api is not None
    transport = httpx.ASGITransport(front.api, raise_app_exceptions=False)
    bodies: dict[str, dict[str, Any]] = {
        "/api/v1/jobs": {**ECHO, "input_params": {"message": "m"}},
        "/api/jobs/submit/echo_test": {"message": "m"},
        "/api/v1/submit": {**DOMAIN, "platform_id": "ddh"},
        f"/api/v1/assets/{'0' * 32}/approve": {"clearance_level": "ouo", "revision": 1},
    }
    async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
        for path, body in bodies.items():
            for text in ambiguous(body):
                headers = {"Content-Type": "application/json", "X-API-Key": key_of("admin")}
                problem_of(await client.post(path, content=text.encode(), headers=headers), 400, "malformed_request")
    assert front.execute("SELECT count(*) FROM dagapp.dag_jobs") == [(0,)]


@pytest.mark.parametrize("inputs", [{"a": LONE}, {"a": {LONE: 1}}, {LONE: 1}])
async def test_half_a_character_is_not_sent_as_something_else(inputs: Any) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    transport = httpx.MockTransport(answer)
    async with Orchestrator("http://it", lambda _: "token", transport=transport) as orchestrator:
        body = Submission(workflow_id="echo_test", input_params=inputs)
        with pytest.raises(InvalidInput, match="not Unicode"):
            await orchestrator.send("POST", "/x", caller=caller_of("operator"), body=body)
    assert sent == []


async def test_half_a_character_that_is_passed_on_is_refused_by_the_orchestrator(front: Front) -> None:
    assert front.api is not None
    transport = httpx.ASGITransport(front.api, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
        for path, body in {
            "/api/v1/jobs": ECHO,
            "/api/v1/submit": {**DOMAIN, "platform_id": "ddh"},
            "/api/v1/clients": {"client_id": "a-b", "display_name": "d", "roles": ["operator"]},
            "/api/v1/platforms": {"platform_id": "a", "display_name": "d", "required_refs": ["r"], "version_ref": "v"},
            f"/api/v1/assets/{'0' * 32}/reject": {"reason": "r"},
        }.items():
            for each in spoilt(body):
                headers = {"Content-Type": "application/json", "X-API-Key": key_of("admin")}
                answer = await client.post(path, content=json.dumps(each).encode(), headers=headers)
                assert answer.status_code == 422, (path, each, answer.text)


async def test_a_batch_tells_of_each_item_whatever_happens_to_one(
    front: Front, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    ask = Forwarder.ask

    async def failing(self: Forwarder, *given: Any, body: Any, **more: Any) -> httpx.Response:
        if body.idempotency_key == "fails":
            raise RuntimeError("an inner secret")
        return await ask(self, *given, body=body, **more)

    monkeypatch.setattr(Forwarder, "ask", failing)
    spoilt_items = [{**ECHO, "input_params": {"a": LONE}}, {**ECHO, LONE: 1}, {**ECHO, "idempotency_key": "fails"}]
    answer = await send_raw(front, "POST", BATCH, {"items": [ECHO, *spoilt_items, ECHO]})
    assert answer.status_code == 200, answer.text
    assert [item["status"] for item in answer.json()["items"]] == [201, 422, 422, 500, 201]
    assert "an inner secret" not in answer.text
    assert [line["event"] for line in logged if line["log_level"] == "error"] == ["an item of a batch failed"]


async def test_of_many_faults_the_first_are_told_and_the_others_are_counted(front: Front) -> None:
    many = {**ECHO, **{f"field_{number}": 1 for number in range(1000)}}
    report = await front.post("operator", BATCH, {"items": [many]})
    single = problem_of(await front.ask("operator", "POST", "/api/gateway/submit", json=many), 422)
    for problem in (report["items"][0]["problem"], single):
        assert len(problem["errors"]) == MOST_FIELD_ERRORS == 20
        assert problem["detail"].endswith("Of 1000 errors, 980 are left out.")


@pytest.mark.parametrize(
    ("path", "body"), [("/api/platform/submit", {**FLAT, "platform_id": "ddh"}), ("/api/gateway/submit", ECHO)]
)
async def test_an_idempotency_key_is_printable_and_a_strange_trace_is_dropped(
    front: Front, path: str, body: Any
) -> None:
    for key in (STRANGE, b"a\x7fb", b"a\tb", b""):
        answer = await front.client.post(path, json=body, headers=_headers((b"Idempotency-Key", key)))
        problem_of(answer, 422, "invalid_input")
    traces = _headers((b"traceparent", STRANGE), (b"tracestate", STRANGE))
    answer = await front.client.post(path, json=body, headers=traces)
    assert answer.status_code in {201, 202}, answer.text


def _headers(*more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [(b"X-API-Key", key_of("operator").encode()), *more]


async def test_strange_headers_are_not_proxied_and_those_of_a_target_come_back_as_they_are(
    database: TestDatabase, tmp_path: Path
) -> None:
    target = FastAPI()
    name = "日本".encode()

    @target.get("/file")
    async def file() -> Response:
        answer = Response(b"x")
        answer.raw_headers.append((b"content-disposition", b'attachment; filename="' + name + b'"'))
        return answer

    async with served(target) as found:
        settings = settings_of(tmp_path, proxy_targets={"serve": address(found)})
        async with running_front(settings, database) as front:
            url = "/api/proxy/serve/file"
            for header in (b"Idempotency-Key", b"If-None-Match", b"Accept"):
                answer = await front.client.get(url, headers=_headers((header, STRANGE)))
                problem_of(answer, 422, "invalid_input")
            answer = await front.client.get(url, headers=_headers((b"tracestate", STRANGE)))
            assert answer.status_code == 200, answer.text
            assert name in dict(answer.headers.raw)[b"content-disposition"]


async def test_strangers_learn_only_what_is_ok_and_operators_the_rest(front: Front) -> None:
    for path in ("/health", "/api/gateway/health"):
        told = await front.get(None, path)
        checks = {"database": {"ok": True}, "schema": {"ok": True}}
        assert told == {"status": "healthy", "process": "gateway", "checks": checks}
        assert __version__ not in str(told)
    detail = (await front.get("operator", "/api/admin/health"))["database"]["detail"]
    assert {"server_version", "role", "pool", "fingerprint"} <= set(detail)


async def test_a_database_that_is_away_is_told_with_the_reason(tmp_path: Path, database: TestDatabase) -> None:
    database = TestDatabase("nowhere", database.home)
    async with running_front(settings_of(tmp_path, database_timeout_seconds=0.5), database) as front:
        answer = await front.ask(None, "GET", "/health")
    assert answer.status_code == 503
    checks = answer.json()["checks"]
    assert [set(check) for check in checks.values()] == [{"ok", "reason"}] * 2


async def test_a_session_of_the_gateway_asks_for_ten_seconds_at_most(front: Front) -> None:
    async with front.app.state.database.connection() as connection:
        row = await (await connection.execute("SELECT current_setting('statement_timeout') AS bound")).fetchone()
    assert front.app.state.database.role is DatabaseRole.GATEWAY
    assert row == {"bound": "10s"}


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer x"}, {"X-Service-Token": SERVICE_KEY}]
)
async def test_no_byte_of_a_body_is_read_before_the_caller_is_known(front: Front, headers: dict[str, str]) -> None:
    read = asyncio.Event()

    async def body() -> Any:
        read.set()
        yield b"{"

    for method, path, _ in changes("0" * 32):
        answer = await front.client.request(
            method, f"/api/{path}", content=body(), headers={"Content-Type": "application/json", **headers}
        )
        problem_of(answer, 401, "unauthenticated")
    assert not read.is_set()


async def test_requests_without_a_credential_are_counted_and_keep_nobody_out(front: Front) -> None:
    front.app.state.rate_limits = RateLimits(1000, nameless_per_minute=4)
    asked = [
        ("GET", "/api/platforms", {}),
        ("POST", "/api/platform/submit", {}),
        ("GET", "/api/platforms", {"X-Service-Token": "x"}),  # which the gateway does not take
        ("POST", "/api/platform/submit", {"X-Service-Token": "x"}),
    ]
    for method, path, headers in asked:
        problem_of(await front.ask(None, method, path, headers=headers), 401, "unauthenticated")
    for method, path, headers in asked:
        answer = await front.ask(None, method, path, headers=headers)
        problem_of(answer, 429, "too_many_requests")
        assert int(answer.headers["retry-after"]) > 0
    assert (await front.ask("partner", "GET", "/api/platforms")).status_code == 200
    assert (await front.ask(None, "GET", "/health")).status_code == 200
