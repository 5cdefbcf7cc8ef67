"""The gateway before a real orchestrator, on a real database."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.conftest import TestDatabase
from tests.integration.gateway.front import Front, add_clients, running_api, running_front, settings_of

from graticule.config import Settings


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    add_clients(emptied_database)
    return emptied_database


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[EventDict]]:
    """Keep what is logged: to render tracebacks takes seconds."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path)


@pytest.fixture
async def api(settings: Settings, database: TestDatabase) -> AsyncIterator[FastAPI]:
    """Give the orchestrator's application at work."""
    async with running_api(settings, database) as app:
        yield app


@pytest.fixture
async def front(settings: Settings, database: TestDatabase, api: FastAPI) -> AsyncIterator[Front]:
    """Give the gateway before the orchestrator."""
    async with running_front(settings, database, api) as running:
        yield running
