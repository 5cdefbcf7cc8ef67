"""A catalogue for all these tests: each takes collections and jobs of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from pydantic import JsonValue
from tests.conftest import TestDatabase, new_database

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.table import DatabaseRole
from graticule.handlers.context import Checkpoints, HandlerContext, Signals
from graticule.handlers.registry import handlers
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.storage.local import LocalStorage
from graticule.worker.outcome import validated


@pytest.fixture(scope="session")
def shared_catalogue() -> Iterator[TestDatabase]:
    """Give one database to all tests of this process."""
    with new_database() as created:
        yield created


@pytest.fixture
async def database(shared_catalogue: TestDatabase) -> AsyncIterator[Database]:
    """Give connections with the rights of a worker."""
    url = shared_catalogue.url(DatabaseRole.WORKER)
    async with Database(url, DatabaseRole.WORKER, pool_size=8) as opened:
        yield opened


@pytest.fixture
def ask(shared_catalogue: TestDatabase) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection of the administrator, which sees what is in the catalogue."""
    with psycopg.connect(shared_catalogue.url(), autocommit=True) as opened:
        opened.execute("SET search_path = pgstac, public")
        yield opened


@pytest.fixture
def collection_id() -> str:
    """Give a name that no other test uses."""
    return f"c-{uuid4().hex[:12]}"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Give an empty storage."""
    return LocalStorage(tmp_path)


class Task:
    """Makes contexts as a worker does, and keeps what is told of the progress."""

    def __init__(self, storage: LocalStorage, database: Database | None) -> None:
        self._storage, self._database = storage, database
        self.progress: list[dict[str, JsonValue]] = []

    def __call__(self, handler: str, *, job_id: str = "job-12345678", cancelled: bool = False, **given: Any) -> Any:
        """Give the context of a task of this handler."""
        return HandlerContext(
            task_id=TaskId("t"),
            job_id=JobId(job_id),
            node_id=NodeId("n"),
            retry_count=0,
            params=validated(handlers()[handler].params, given),
            logger=get_logger("test"),
            signals=Signals(cancelled=cancelled),
            report_progress=self.progress.append,
            storage=self._storage,
            checkpoint=cast("Checkpoints", None),
            database=self._database,
        )


@pytest.fixture
def task(storage: LocalStorage, database: Database) -> Task:
    """Give tasks of a worker that has this storage and this database."""
    return Task(storage, database)
