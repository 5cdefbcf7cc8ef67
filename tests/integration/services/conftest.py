"""Benches whose audit trail is held against their rows when the test is over."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.services.desk import Desk
from tests.integration.services.engine import Bench

from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database

NewBench = Callable[..., Bench]


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
async def new_bench(database: TestDatabase, tmp_path: Path) -> AsyncIterator[NewBench]:
    """Give benches that share one database and one storage."""
    made: list[Bench] = []
    url = database.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=4) as pool:

        def new(*workflows: str, **options: Any) -> Bench:
            made.append(Bench(pool, tmp_path, *workflows, **options))
            return made[-1]

        yield new
        for bench in made[:1]:
            await bench.check()


@pytest.fixture
async def desk(database: TestDatabase, tmp_path: Path) -> AsyncIterator[Desk]:
    """Give the platform's services; the rows of its assets are held against each other when the test is over."""
    async with Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=6) as pool:
        desk = Desk(pool, tmp_path)
        yield desk
        await desk.check()
