"""One catalogue for all these tests: each has an asset of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase, new_database
from tests.integration.handlers.publish.publisher import Publisher

from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database


@pytest.fixture(scope="session")
def publishing_database() -> Iterator[TestDatabase]:
    with new_database() as created:
        yield created


@pytest.fixture
def admin(publishing_database: TestDatabase) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(publishing_database.url(), autocommit=True) as opened:
        yield opened


@pytest.fixture
async def publisher(
    publishing_database: TestDatabase, admin: psycopg.Connection[Any], tmp_path: Path
) -> AsyncIterator[Publisher]:
    url = publishing_database.url(DatabaseRole.WORKER)
    async with Database(url, DatabaseRole.WORKER, pool_size=6) as database:
        yield Publisher(admin, database, tmp_path)
