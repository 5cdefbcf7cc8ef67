"""The gateway at work before a real orchestrator: both in this process, each with its own role of the database."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx
import psycopg
from fastapi import FastAPI
from pydantic import AnyHttpUrl, SecretStr
from starlette.types import Message, Scope
from tests.conftest import TestDatabase
from tests.sources import put_source_of

from graticule.api.app import create_api
from graticule.config import HttpAddress, Settings
from graticule.core.permissions import Caller
from graticule.core.table import DatabaseRole
from graticule.gateway.app import create_gateway
from graticule.gateway.forwarding import Orchestrator
from graticule.gateway.proxy import Proxy
from graticule.http.rate_limits import RateLimits
from graticule.http.server import _configuration, _Lifespan, _Server, listen
from graticule.services.access import key_hash
from graticule.services.service_tokens import ServiceTokens

SERVICE_KEY = "the-service-key-of-the-tests-is-long-enough"
ADMIN_KEY = "the-admin-key-of-the-tests"
TOKEN = "the-token-of-the-workers"
NOWHERE = "http://127.0.0.1:1"
MANY = 1_000_000

# Who calls: the roles of each, and the partner that it speaks for.
WHO: Mapping[str, tuple[list[str], str | None]] = {
    "partner": (["submitter"], "ddh"),
    "stranger": (["submitter"], "arcgis"),
    "reviewer": (["reviewer"], None),
    "operator": (["operator"], None),
    "admin": (["admin"], None),
    "worker": (["worker"], None),
}


def key_of(who: str) -> str:
    """Give the key of a client: the form of a real one, and the same in every run."""
    return f"gtc_{who:-<43}"


def headers_of(who: str | None) -> dict[str, str]:
    """Give the credential of a caller; None has none."""
    return {} if who is None else {"X-API-Key": key_of(who)}


def caller_of(who: str) -> Caller:
    from graticule.core.models.platform import ClientRole

    roles, platform_id = WHO[who]
    return Caller(who, frozenset(map(ClientRole, roles)), platform_id)  # type: ignore[arg-type]


def add_clients(database: TestDatabase) -> None:
    """Give each of the callers its key."""
    with psycopg.connect(database.url(), autocommit=True) as connection:
        for who, (roles, platform_id) in WHO.items():
            connection.execute(
                "INSERT INTO dagapp.api_clients (client_id, display_name, key_hash, platform_id, roles, is_active)"
                " VALUES (%s, %s, %s, %s, %s::dagapp.client_role[], true)",
                [who, who, key_hash(key_of(who)), platform_id, roles],
            )


def settings_of(home: Any, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "home": home,
        "admin_key": SecretStr(ADMIN_KEY),
        "worker_token": SecretStr(TOKEN),
        "service_key": SecretStr(SERVICE_KEY),
        "rate_limit_per_minute": MANY,
    }
    return Settings(**{**given, **more})


def address(url: str) -> HttpAddress:
    return HttpAddress(AnyHttpUrl(url))


@dataclass
class Front:
    """The gateway, and a client of it for each who calls."""

    app: FastAPI
    client: httpx.AsyncClient
    database: TestDatabase
    api: FastAPI | None = None
    answers: list[httpx.Response] = field(default_factory=list)

    async def ask(self, who: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {**headers_of(who), **more.pop("headers", {})}
        answer = await self.client.request(method, path, headers=headers, **more)
        self.answers.append(answer)
        return answer

    async def get(self, who: str | None, path: str, **params: Any) -> Any:
        answer = await self.ask(who, "GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, who: str | None, path: str, body: Any, status: int = 200, **headers: str) -> Any:
        answer = await self.ask(who, "POST", path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def submitted(self, who: str = "partner", **more: Any) -> Any:
        """Submit data of the partner, and give the receipt."""
        return await self.post(who, "/api/platform/submit", {**FLAT, **more}, 202)

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Change or look at rows as the administrator."""
        with psycopg.connect(self.database.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def process(self, asset_id: str) -> None:
        """Let the versions of an asset be as if their jobs had completed."""
        self.execute(
            "UPDATE dagapp.asset_versions SET processing_state = 'completed', processing_completed_at = now()"
            " WHERE asset_id = %s",
            asset_id,
        )

    def fail(self, asset_id: str) -> None:
        """Let the versions of an asset be as if their jobs had failed."""
        self.execute(
            "UPDATE dagapp.asset_versions SET processing_state = 'failed', last_error = 'broken' WHERE asset_id = %s",
            asset_id,
        )


FLAT: Mapping[str, Any] = {
    "dataset_id": "0038272",
    "resource_id": "shapefile",
    "version_id": "2026-03",
    "data_type": "vector",
    "container_name": "bronze",
    "file_name": "ddh/roads/europe.zip",
}
DOMAIN: Mapping[str, Any] = {
    "platform_refs": {"dataset_id": "0038272", "resource_id": "shapefile"},
    "version_label": "2026-03",
    "data_type": "vector",
    "container_name": "bronze",
    "file_name": "ddh/roads/europe.zip",
}


@asynccontextmanager
async def running_front(settings: Settings, database: TestDatabase, api: FastAPI | None = None) -> AsyncIterator[Front]:
    """Run the gateway; with an orchestrator in this process it forwards to that, else to the address it is given."""
    app = create_gateway(settings, database.url(DatabaseRole.GATEWAY))
    app.state.rate_limits = RateLimits(settings.rate_limit_per_minute, MANY)
    if api is not None:
        transport = httpx.ASGITransport(api, raise_app_exceptions=False)
        sign = ServiceTokens(SecretStr(SERVICE_KEY)).sign
        app.state.orchestrator = Orchestrator("http://orchestrator", sign, transport=transport)
        app.state.proxy = Proxy({}, app.state.orchestrator)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=60) as client,
    ):
        yield Front(app, client, database, api)


@asynccontextmanager
async def running_api(settings: Settings, database: TestDatabase) -> AsyncIterator[FastAPI]:
    """Run the orchestrator's application; its engine rests. The file of the submissions is there."""
    put_source_of(settings.storage_folder, FLAT)
    api = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), database.url(), parts=())
    api.state.rate_limits = RateLimits(MANY, MANY)
    async with api.router.lifespan_context(api):
        yield api


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """Serve an application that is started already, on a port of its own, and give the address."""
    ready = asyncio.Event()
    configuration = _configuration(_Lifespan(app))
    configuration.lifespan = "off"
    with listen("127.0.0.1", 0) as listening:
        server = _Server(configuration, app, ready.set)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with asyncio.timeout(30):
                await ready.wait()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            async with asyncio.timeout(30):
                await serving


async def ask_raw(app: FastAPI, who: str, path: bytes, query: bytes = b"") -> int:
    """Ask for exactly this address, which a client would tidy up, and give the status of the answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers_of(who).items()],
        "client": ("test", 1),
        "server": ("gateway", 80),
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


def problem_of(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """Check that an answer is a problem document, and give it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    if code is not None:
        assert problem["code"] == code, problem
    return problem
