"""A migration adds columns while processes are at work, whose sessions have prepared statements for whole rows."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import LiteralString

import psycopg
import pytest
from tests.conftest import TestDatabase

from graticule.core.errors import Unavailable
from graticule.core.ids import JobId, OwnerId
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.jobs import JobRepository
from graticule.repositories.messages import MessageRepository

PREPARED_AFTER = 6  # executions on one connection
STATEMENTS: dict[LiteralString, Callable[[Connection], Awaitable[object]]] = {
    "dag_job_events": lambda connection: EventRepository(connection).of_job(JobId("a job")),
    "dag_job_messages": lambda connection: MessageRepository(connection).claim(OwnerId("me"), "a queue", 1, 60),
    "dag_jobs": lambda connection: JobRepository(connection).by_ids([JobId("a job")]),
}


@pytest.mark.parametrize("table", STATEMENTS)
async def test_a_session_goes_on_when_a_column_is_added(own_database: TestDatabase, table: LiteralString) -> None:
    role, add_column = DatabaseRole.ORCHESTRATOR, f"ALTER TABLE dagapp.{table} ADD COLUMN of_the_next_release text"
    async with Database(own_database.url(role), role, pool_size=1) as pool:
        for _ in range(PREPARED_AFTER):
            await _run(pool, table)
        with psycopg.connect(own_database.url(), autocommit=True) as admin:
            admin.execute(add_column)
        with suppress(Unavailable):  # once: whoever asked asks again
            await _run(pool, table)
        await _run(pool, table)


async def _run(pool: Database, table: LiteralString) -> None:
    async with pool.connection() as connection:
        await STATEMENTS[table](connection)
