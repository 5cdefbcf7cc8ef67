"""The orchestrator's application in this process, started and stopped as a server would."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.conftest import TestDatabase
from tests.integration.api.running import KEY, NOWHERE, TOKEN, RunningApi

from graticule.api.app import create_api, engine_running
from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.http.rate_limits import FAILURES_PER_MINUTE, RateLimits

__all__ = ["KEY", "NOWHERE", "TOKEN"]

MANY = 1_000_000
StartApi = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@asynccontextmanager
async def running_client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of the application while it runs; an error inside is answered, not raised here."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://orchestrator", timeout=60) as client,
    ):
        yield client


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[EventDict]]:
    """Keep what is logged: to render tracebacks takes seconds."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def start_api(tmp_path: Path) -> StartApi:
    """Give what runs the application on a database: with the key, and the owner's login for the schema."""

    def start(
        database: TestDatabase | None,
        *,
        key: str | None = KEY,
        owner: str | None = "graticule_admin",
        development: bool = False,
        worker_token: str | None = TOKEN,
        most_failures: int = FAILURES_PER_MINUTE,
        **access: Any,
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        settings = Settings(
            admin_key=None if key is None else SecretStr(key),
            worker_token=None if worker_token is None else SecretStr(worker_token),
            development=development,
            home=tmp_path,
            database_timeout_seconds=5 if database else 0.5,
            **access,
        )
        url = database.url(DatabaseRole.ORCHESTRATOR) if database else NOWHERE
        app = create_api(settings, url, database.url(owner) if database and owner else None, parts=())
        app.state.rate_limits = RateLimits(settings.rate_limit_per_minute, most_failures)
        return running_client(app)

    return start


@pytest.fixture
async def visitor(start_api: StartApi) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that has no key; for what it is refused, no database is needed."""
    async with start_api(None, most_failures=MANY) as client:
        yield client


@pytest.fixture
async def admin_client(database: TestDatabase, start_api: StartApi) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that sends the admin key, of an application whose engine rests."""
    async with start_api(database) as client:
        client.headers["X-API-Key"] = KEY
        yield client


@pytest.fixture
async def api(database: TestDatabase, tmp_path: Path) -> AsyncIterator[RunningApi]:
    """Give the application with its engine at work, and clients of it; there is no worker."""
    settings = Settings(
        admin_key=SecretStr(KEY), worker_token=SecretStr(TOKEN), home=tmp_path, workflows=str(tmp_path / "workflows")
    )
    (tmp_path / "workflows").mkdir()
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=[engine_running])
    async with running_client(app) as client:
        client.headers["X-API-Key"] = KEY
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield RunningApi(app, client, tmp_path)
