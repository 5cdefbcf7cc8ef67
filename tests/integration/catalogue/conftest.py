"""A catalogue for all these tests: each takes collections and jobs of its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import psycopg
import pytest
from pydantic import JsonValue, SecretStr
from tests.conftest import TestDatabase, new_database
from tests.integration.repositories import rows

from graticule.api.app import create_api
from graticule.config import Settings
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.table import DatabaseRole
from graticule.handlers.catalogue import Catalogue
from graticule.handlers.context import Checkpoints, HandlerContext, Signals
from graticule.handlers.registry import handlers
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.storage.local import LocalStorage
from graticule.worker.callbacks import client as callback_client
from graticule.worker.callbacks.catalogue import HttpCatalogue
from graticule.worker.callbacks.client import CallbackClient
from graticule.worker.outcome import validated

TOKEN = "the-token-of-the-workers"
WORKER = WorkerId("far-away")
JOBS = ("job-12345678", "job-87654321")
CatalogueOf = Callable[[str], Catalogue]


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
    return f"direct-{uuid4().hex[:12]}"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Give an empty storage."""
    return LocalStorage(tmp_path)


class Orchestrator:
    """The real application, by whose callbacks a worker without a database reaches the catalogue."""

    def __init__(self, client: httpx.AsyncClient, ask: psycopg.Connection[Any]) -> None:
        self.client, self._ask = client, ask
        self._callbacks = CallbackClient("http://orchestrator", TOKEN, WORKER, client)

    def leased(self, job_id: str) -> TaskMessage:
        """Lease a new task to the worker."""
        task_id = TaskId(f"{job_id}_{uuid4().hex}")
        lease = {"status": "leased", "leased_by": WORKER, "lease_expires_at": rows.LATER, "delivery_count": 1}
        rows.add_job(self._ask, job_id)
        task = rows.task(task_id, job_id=job_id, **lease)
        self._ask.execute(statements.insert(type(task)), statements.parameters(task))
        return TaskMessage(task_id, JobId(job_id), NodeId("n"), "echo", {}, "q", delivery_count=1)

    def catalogue(self, message: TaskMessage) -> HttpCatalogue:
        """Give the catalogue as the handler of a task reaches it."""
        return HttpCatalogue(self._callbacks, message)


@asynccontextmanager
async def running_orchestrator(database: TestDatabase, home: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Run the application with an engine that rests."""
    settings = Settings(worker_token=SecretStr(TOKEN), home=home)
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=())
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as client:
        yield client


@pytest.fixture
async def orchestrator(
    shared_catalogue: TestDatabase, ask: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Orchestrator]:
    """Give an orchestrator; who asks it in vain does not ask again for long."""
    monkeypatch.setattr(callback_client, "PATIENCE_SECONDS", 0.0)
    async with running_orchestrator(shared_catalogue, tmp_path / "home") as client:
        yield Orchestrator(client, ask)
    ask.execute("DELETE FROM dagapp.dag_held_prefixes")


class Task:
    """Makes contexts as a worker does, and keeps what is told of the progress."""

    def __init__(
        self, storage: LocalStorage, database: Database | None, catalogue_of: CatalogueOf | None = None
    ) -> None:
        self._storage, self._database, self._catalogue_of = storage, database, catalogue_of
        self.progress: list[dict[str, JsonValue]] = []

    def on(self, storage: LocalStorage) -> "Task":
        """Give the same with another storage."""
        return Task(storage, self._database, self._catalogue_of)

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
            catalogue=None if self._catalogue_of is None else self._catalogue_of(job_id),
        )


@pytest.fixture(params=["database"])
def task(
    request: pytest.FixtureRequest, storage: LocalStorage, database: Database, ask: psycopg.Connection[Any]
) -> Task:
    """Give tasks of a worker that has this storage, and the catalogue in the database or by an orchestrator."""
    for job_id in JOBS:
        rows.add_job(ask, job_id)
    if request.param == "database":
        return Task(storage, database)
    orchestrator: Orchestrator = request.getfixturevalue("orchestrator")
    return Task(storage, None, lambda job_id: orchestrator.catalogue(orchestrator.leased(job_id)))


both_ways = pytest.mark.parametrize("task", ["database", "http"], indirect=True)
