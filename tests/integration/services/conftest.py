"""Benches whose audit trail is held against their rows when the test is over."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TEMPLATE, TestDatabase, _create_database, _drop_database
from tests.integration.repositories.conftest import _empty
from tests.integration.services.engine import Bench

from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database

NewBench = Callable[..., Bench]


@pytest.fixture(scope="session")
def database_of_benches() -> Iterator[TestDatabase]:
    """Give the database of all benches of this process: a clone for each would be most of their time."""
    created = _create_database(TEMPLATE)
    yield created
    _drop_database(created)


@pytest.fixture
def bench_database(database_of_benches: TestDatabase) -> Iterator[TestDatabase]:
    """Give a database with the whole schema and no rows but the seeds."""
    yield database_of_benches
    _empty(database_of_benches)


@pytest.fixture
async def new_bench(bench_database: TestDatabase, tmp_path: Path) -> AsyncIterator[NewBench]:
    """Give benches that share one database and one storage."""
    made: list[Bench] = []
    url = bench_database.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=4) as pool:

        def new(*workflows: str, **options: Any) -> Bench:
            made.append(Bench(pool, tmp_path, *workflows, **options))
            return made[-1]

        yield new
        for bench in made[:1]:
            await bench.check()
