"""A job with a queue, and two workers' connections to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conftest import TestDatabase
from tests.integration.messaging.bus import JOBS, QUEUE, Bus
from tests.integration.repositories import rows
from tests.servicebus_emulator import Emulator, QueueOptions

from graticule.config import Settings, Transport
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.orchestrator import broker
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.workflows import WorkflowRepository

JOB = JobId("job")


@pytest.fixture
def database(emptied_database: TestDatabase) -> TestDatabase:
    return emptied_database


@pytest.fixture
async def with_job(connection: Connection) -> Connection:
    """Give the orchestrator's connection to a database with a job and its node."""
    await WorkflowRepository(connection).insert(rows.workflow())
    await JobRepository(connection).insert(rows.job(JOB, owner_id=rows.OWNER, owner_epoch=1))
    await NodeRepository(connection).insert(rows.node(status="dispatched", task_id="job_node_0"))
    return connection


@pytest.fixture
async def workers(database: TestDatabase, with_job: Connection) -> AsyncIterator[Database]:
    """Give a pool of connections that act as workers."""
    async with Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=3) as opened:
        yield opened


@pytest.fixture
async def one(workers: Database) -> AsyncIterator[Connection]:
    async with workers.connection() as opened:
        yield opened


@pytest.fixture
async def another(workers: Database) -> AsyncIterator[Connection]:
    async with workers.connection() as opened:
        yield opened


@pytest.fixture
async def bus(
    database: TestDatabase, pool: Database, workers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bus]:
    """Give a namespace with a queue of tasks and one of jobs, beside the database with its job."""
    monkeypatch.setattr(broker, "NOTE_SECONDS", 0.05)
    async with Emulator(dict.fromkeys((QUEUE, JOBS), QueueOptions(lock_seconds=300))) as emulator:
        settings = Settings(
            home=tmp_path,
            transport=Transport.SERVICEBUS,
            service_bus_connection_string=emulator.connection_string,
            orchestrator_poll_interval=0.2,
        )
        yield Bus(emulator, settings, database, pool, workers)
