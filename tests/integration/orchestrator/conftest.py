"""Orchestrators on one database, which is emptied after each test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.orchestrator.instances import ROLE, Instance

from graticule.repositories.database import Database

NewInstance = Callable[..., Instance]


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
async def new_instance(database: TestDatabase, tmp_path: Path) -> AsyncIterator[NewInstance]:
    """Give orchestrators that share a database and a storage; at the end, events are held against rows."""
    made: list[Instance] = []
    url = database.url(ROLE)
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(Database(url, ROLE, pool_size=4)) for _ in range(2)]

        def new(*workflows: str, **options: Any) -> Instance:
            owner = options.pop("owner", f"owner-{'abc'[len(made)]}")
            made.append(Instance(pools[len(made) % 2], url, tmp_path, *workflows, owner=owner, **options))
            return made[-1]

        yield new
        for instance in made[:1]:
            await instance.check()
