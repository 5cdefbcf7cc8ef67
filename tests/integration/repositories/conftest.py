"""One database for all these tests, emptied after each, and connections of the right role for every model."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg import sql
from tests.conftest import TEMPLATE, TestDatabase, _create_database, _drop_database
from tests.integration.repositories import rows

from graticule.core.models import TABLES, Platform, SchemaDeployment
from graticule.core.table import DatabaseRole
from graticule.repositories.assets import AssetRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.workflows import WorkflowRepository

SEEDS = [seed["platform_id"] for seed in Platform.table.seeds]


def _empty(database: TestDatabase) -> None:
    """Delete all rows but the seeds; faster than TRUNCATE, which makes new files for every table and index."""
    with psycopg.connect(database.url()) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")  # no order among the tables
        connection.execute("DELETE FROM dagapp.platforms WHERE platform_id <> ALL (%s)", [SEEDS])
        for model in TABLES:
            if model not in {Platform, SchemaDeployment}:
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("dagapp", model.table.name)))


@pytest.fixture(scope="session")
def shared_database() -> Iterator[TestDatabase]:
    """Give the database of all tests of this process: a clone for each would be most of their time."""
    created = _create_database(TEMPLATE)
    yield created
    _drop_database(created)


@pytest.fixture
def database(shared_database: TestDatabase) -> Iterator[TestDatabase]:
    """Give a database with the whole schema and no rows but the seeds."""
    yield shared_database
    _empty(shared_database)


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
