"""Databases that many tests read and none changes: one with a few assets, one with ten thousand."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.conftest import SharedDatabase, TestDatabase
from tests.integration.assets import many, small_world
from tests.integration.assets.small_world import SmallWorld

from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database


@pytest.fixture(scope="module")
def small() -> Iterator[tuple[TestDatabase, SmallWorld]]:
    """Give a database with a few assets, and what is in it."""
    shared, world = SharedDatabase(), small_world.build()

    async def fill() -> None:
        url = shared.database.url(DatabaseRole.ORCHESTRATOR)
        async with Database(url, DatabaseRole.ORCHESTRATOR) as pool, pool.connection() as connection:
            await world.insert(connection)

    asyncio.run(fill())
    yield shared.database, world
    shared.drop()


@pytest.fixture(scope="module")
def ten_thousand() -> Iterator[TestDatabase]:
    """Give a database with ten thousand assets that the planner knows."""
    shared = SharedDatabase()
    many.fill(shared.database.url())
    yield shared.database
    shared.drop()


@pytest.fixture
def world(small: tuple[TestDatabase, SmallWorld]) -> SmallWorld:
    return small[1]


@pytest.fixture
async def gateway(small: tuple[TestDatabase, SmallWorld]) -> AsyncIterator[Database]:
    """Give a pool that acts as the gateway on the few assets."""
    async with Database(small[0].url(DatabaseRole.GATEWAY), DatabaseRole.GATEWAY, pool_size=2) as pool:
        yield pool


@pytest.fixture
async def reading(gateway: Database) -> AsyncIterator[Connection]:
    async with gateway.connection() as connection:
        yield connection


@pytest.fixture
async def planning(ten_thousand: TestDatabase) -> AsyncIterator[Connection]:
    """Give a connection that acts as the gateway on the ten thousand."""
    url = ten_thousand.url(DatabaseRole.GATEWAY)
    async with Database(url, DatabaseRole.GATEWAY, pool_size=1) as pool, pool.connection() as connection:
        yield connection
