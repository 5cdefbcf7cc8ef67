"""One database for all these tests; what a test makes, it makes in a schema of its own."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg import sql
from tests.conftest import TestDatabase, new_database
from tests.integration.schema.bench import Bench, alone_on_the_server, new_schema


@pytest.fixture(scope="session")
def shared_database() -> Iterator[TestDatabase]:
    """Give the database of all tests of this process: a clone for each would be most of their time."""
    with new_database() as created:
        yield created


@pytest.fixture
async def bench(shared_database: TestDatabase) -> AsyncIterator[Bench]:
    """Give a bench with an empty schema."""
    url, schema = shared_database.url(), new_schema()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield Bench(connection, url, schema)
        await connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


@pytest.fixture
def quiet_server() -> Iterator[None]:
    """Keep other tests from making pgstac on the same server meanwhile."""
    with alone_on_the_server():
        yield
