"""One database for all these tests, emptied after each, and connections of the right role for every model."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.conftest import SharedDatabase, TestDatabase
from tests.integration.repositories import rows

from graticule.core.table import DatabaseRole
from graticule.repositories.assets import AssetRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.workflows import WorkflowRepository


@pytest.fixture(scope="session")
def shared_clone() -> Iterator[SharedDatabase]:
    """Give a clone for these tests alone: what others wrote to theirs would show in the plans of statements."""
    shared = SharedDatabase()
    yield shared
    shared.drop()


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
async def owner(database: TestDatabase) -> AsyncIterator[Connection]:
    """Give a connection that acts as the owner of the tables."""
    url = database.url(DatabaseRole.OWNER)
    async with Database(url, DatabaseRole.OWNER, pool_size=2) as opened, opened.connection() as connection:
        yield connection


@pytest.fixture
async def with_job(connection: Connection) -> Connection:
    """Give the orchestrator's connection to a database with a job, its node, and an asset."""
    await WorkflowRepository(connection).insert(rows.workflow())
    await JobRepository(connection).insert(rows.job(owner_id=rows.OWNER, owner_epoch=1))
    await NodeRepository(connection).insert(rows.node())
    await AssetRepository(connection).insert(rows.asset())
    return connection
