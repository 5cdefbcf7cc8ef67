"""The gateway under the Azure Functions host: called as the host does, against a real database."""

import asyncio
import json
import runpy
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.functions import AsgiFunctionApp, AuthLevel, HttpRequest, HttpResponse
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send
from tests.azure_login import known_identity
from tests.conftest import TestDatabase
from tests.integration.gateway.browsers import CONSOLE
from tests.integration.gateway.front import FLAT, NOWHERE, address, headers_of, key_of, served, settings_of

from graticule.config import DatabaseUrl, Settings
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.gateway import functions
from graticule.gateway.functions import HostedApplication, create_function_app

FOLDER = Path(__file__).parents[3] / "deploy" / "functions"
Called = Callable[..., Awaitable[HttpResponse]]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the logging of the tests as it is."""
    monkeypatch.setattr(functions, "configure_logging", lambda *_: None)


class Host:
    """What the Functions host does: it indexes the functions once, and calls the one that there is."""

    def __init__(self, app: AsgiFunctionApp) -> None:
        self.app: Any = app
        (function,) = app.get_functions()
        bindings: list[Any] = function.get_bindings()
        (trigger,) = [binding for binding in bindings if "trigger" in binding.type.lower()]
        assert trigger.auth_level is AuthLevel.ANONYMOUS
        assert trigger.route == "/{*route}"
        self._function: Called = function.get_user_function()

    async def ask(
        self, who: str | None, path: str, method: str = "GET", body: Any = None, **headers: str
    ) -> HttpResponse:
        request = HttpRequest(
            method=method,
            url=f"https://gateway.example{path}",
            headers={
                "Content-Type": "application/json",
                "X-Forwarded-For": "1.2.3.4, 5.6.7.8:999",
                **headers_of(who),
                **headers,
            },
            params={},
            body=body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode(),
        )
        return await self._function(request, None)

    async def stop(self) -> None:
        if self.app.startup_task_done:
            async with asyncio.timeout(10):
                await self.app.middleware.notify_shutdown()
            self.app.startup_task_done = False  # it would do the same when it is collected, in another loop


@asynccontextmanager
async def hosted(settings: Settings) -> AsyncIterator[Host]:
    """Run the app as the host does."""
    host = Host(create_function_app(settings))
    try:
        yield host
    finally:
        await host.stop()


@pytest.fixture
async def host(database: TestDatabase, tmp_path: Path) -> AsyncIterator[Host]:
    url = DatabaseUrl(database.url(DatabaseRole.GATEWAY))
    async with hosted(settings_of(tmp_path, database_url=url, orchestrator_url=address(NOWHERE))) as running:
        yield running


async def test_requests_are_answered_from_the_database(host: Host) -> None:
    first = await asyncio.gather(*(host.ask("partner", "/api/platforms") for _ in range(5)))  # a cold start
    assert [answer.status_code for answer in first] == [200] * 5, first[0].get_body()
    assert [each["platform_id"] for each in json.loads(first[0].get_body())["items"]] == ["ddh"]
    assert first[0].headers["x-content-type-options"] == "nosniff"
    assert (await host.ask(None, "/api/readyz")).status_code == 200
    unknown = await host.ask(None, "/api/assets?limit=1")
    assert (unknown.status_code, unknown.mimetype) == (401, "application/problem+json")
    found = await host.ask("operator", "/api/status/lookup?correlation_id=caf%C3%A9")
    assert json.loads(found.get_body()) == {"requests": [], "jobs": []}


async def test_changes_are_forwarded_from_there_too(host: Host) -> None:
    body = {"clearance_level": "ouo"}
    answer = await host.ask("reviewer", f"/api/assets/{'0' * 32}/clearance", "POST", body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


async def test_one_can_sign_in_to_the_console_and_it_is_told_that_nothing_is_live(host: Host) -> None:
    answer = await host.ask(None, "/api/session", "POST", {"api_key": key_of("partner")}, **CONSOLE)
    view = json.loads(answer.get_body())
    assert (view["caller"]["name"], view["live"]) == ("partner", False)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-graticule_session=")
    assert "; Secure" in cookie
    again = await host.ask(None, "/api/platforms", Cookie=cookie.partition(";")[0])
    assert [each["platform_id"] for each in json.loads(again.get_body())["items"]] == ["ddh"]


async def test_data_is_submitted_and_followed_and_streams_are_refused(
    database: TestDatabase, tmp_path: Path, api: FastAPI
) -> None:
    url = DatabaseUrl(database.url(DatabaseRole.GATEWAY))
    async with served(api) as orchestrator:
        settings = settings_of(tmp_path, database_url=url, orchestrator_url=address(orchestrator))
        async with hosted(settings) as host:
            accepted = await host.ask("partner", "/api/platform/submit", "POST", {**FLAT}, **{"Idempotency-Key": "one"})
            receipt = json.loads(accepted.get_body())
            assert (accepted.status_code, receipt["status"]) == (202, "accepted"), receipt
            status = await host.ask("partner", f"/api/platform/status/{receipt['request_id']}")
            assert json.loads(status.get_body())["asset_id"] == receipt["asset_id"]
            refused = await host.ask("partner", "/api/platform/submit", "POST", {**FLAT, "file_name": "../etc/passwd"})
            assert_problem(refused, 422)
            stream = await host.ask("operator", "/api/proxy/orchestrator/api/v1/events/stream")
            assert "in pages" in assert_problem(stream, 422)["hint"]


async def test_a_body_that_is_no_text_is_refused_and_too_large_a_one_too(host: Host) -> None:
    assert_problem(await host.ask("partner", "/api/platform/submit", "POST", bytes(range(256))), 400)
    assert_problem(await host.ask("partner", "/api/platform/submit", "POST", b" " * (2**20 + 1)), 413)


def assert_problem(answer: HttpResponse, status: int) -> dict[str, Any]:
    """Check that an answer is a problem document, and give it."""
    problem: dict[str, Any] = json.loads(answer.get_body())
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json"), problem
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem


async def test_it_logs_in_to_the_database_with_its_identity(database: TestDatabase, tmp_path: Path) -> None:
    with known_identity(database) as entra:
        login = entra.settings()
        settings = settings_of(tmp_path, database_url=login.database_url, use_managed_identity=True)
        async with hosted(settings) as host:
            assert (await host.ask("partner", "/api/platforms")).status_code == 200
            assert entra.endpoint.asked


async def test_an_answer_keeps_its_bytes_and_all_cookies_that_it_sets() -> None:
    cookies = ["__Host-a=1; Path=/; Secure", "__Host-b=; Max-Age=0; Path=/; Secure"]
    tile = bytes(range(256))
    asked: list[bytes] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked.append(message["body"])
        described = {b"content-type": b"application/vnd.mapbox-vector-tile", b"content-encoding": b"br"}
        headers = [*described.items(), *((b"set-cookie", each.encode()) for each in cookies)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": tile[:100], "more_body": True})
        await send({"type": "http.response.body", "body": tile[100:]})

    host = Host(AsgiFunctionApp(app=HostedApplication(application), http_auth_level=AuthLevel.ANONYMOUS))
    answer = await host.ask(None, "/", "POST", tile)
    headers: Any = answer.headers
    assert (asked, answer.get_body()) == ([tile], tile)
    assert headers.getlist("set-cookie") == cookies
    assert (headers["content-type"], headers["content-encoding"]) == ("application/vnd.mapbox-vector-tile", "br")
    await host.stop()


async def test_the_lifespan_runs_once_however_many_requests_come_first() -> None:
    began: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            began.append("began")
            await asyncio.sleep(0)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            began.append("ended")
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert began == ["began"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": repr(scope["client"]).encode()})

    host = Host(AsgiFunctionApp(app=HostedApplication(application), http_auth_level=AuthLevel.ANONYMOUS))
    answers = await asyncio.gather(*(host.ask(None, "/") for _ in range(3)))
    assert {answer.get_body() for answer in answers} == {b"('5.6.7.8', 0)"}  # not what the caller itself has written
    await host.stop()
    assert began == ["began", "ended"]


async def test_a_start_that_fails_is_told_to_all_who_wait() -> None:
    told: list[Message] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.failed"})

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        told.append(message)

    hosted = HostedApplication(application)
    await asyncio.gather(*(hosted({"type": "lifespan"}, receive, send) for _ in range(2)))
    assert [message["type"] for message in told] == ["lifespan.startup.failed"] * 2


def test_without_the_package_or_a_database_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="GRATICULE_DATABASE_URL"):
        create_function_app(settings_of(tmp_path))
    monkeypatch.setitem(sys.modules, "azure.functions", None)
    with pytest.raises(ConfigurationError, match=r"graticule\[azure\]"):
        create_function_app(settings_of(tmp_path))


def test_the_project_is_one_that_the_host_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    assert isinstance(runpy.run_path(str(FOLDER / "function_app.py"))["app"], AsgiFunctionApp)
    host = json.loads((FOLDER / "host.json").read_text())
    assert host["version"] == "2.0"
    assert host["extensions"]["http"]["routePrefix"] == ""
