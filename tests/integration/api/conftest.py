"""The orchestrator's application in this process, started and stopped as a server would."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.conftest import TestDatabase

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.core.table import DatabaseRole

KEY = "the-key-of-the-tests"
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"

StartApi = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@asynccontextmanager
async def running_api(database_url: str, owner_url: str | None, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of the application while it runs; an error inside is answered, not raised here."""
    app = create_api(settings, database_url, owner_url)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://orchestrator", timeout=60) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[EventDict]]:
    """Keep what is logged: to render tracebacks takes seconds."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def start_api() -> StartApi:
    """Give what runs the application on a database: with the key, and the owner's login for the schema."""

    def start(
        database: TestDatabase | None,
        *,
        key: str | None = KEY,
        owner: str | None = "graticule_admin",
        development: bool = False,
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        settings = Settings(admin_key=None if key is None else SecretStr(key), development=development)
        if database is None:
            return running_api(NOWHERE, None, settings)
        owner_url = database.url(owner) if owner else None
        return running_api(database.url(DatabaseRole.ORCHESTRATOR), owner_url, settings)

    return start


@pytest.fixture
async def visitor(start_api: StartApi) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that has no key; for what it is refused, no database is needed."""
    async with start_api(None) as client:
        yield client


@pytest.fixture
async def admin_client(database: TestDatabase, start_api: StartApi) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that sends the admin key."""
    async with start_api(database) as client:
        client.headers["X-API-Key"] = KEY
        yield client
