"""The worker as a process: its parts put together, and the port on which it tells how it is."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from graticule.config import Settings
from graticule.core.channels import CANCELLED, queue_channel
from graticule.core.ids import WorkerId
from graticule.core.table import DatabaseRole
from graticule.handlers.registry import handlers
from graticule.http.database import create_database_application
from graticule.messaging.postgres import PostgresTaskQueue, without_waiting_for_disk
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener
from graticule.storage.local import LocalStorage
from graticule.worker.callbacks import CallbackClient, HttpCheckpoints, HttpSink
from graticule.worker.checkpoints import CheckpointStore, DatabaseCheckpoints
from graticule.worker.metrics import WorkerMetrics
from graticule.worker.pool import ChildSettings, ProcessPool
from graticule.worker.presence import Presence, new_worker_id, worker_row
from graticule.worker.reports import DatabaseSink, ReportSink
from graticule.worker.worker import Surroundings, Worker, WorkerOptions

DEFAULT_QUEUES: Final = ("functionapp-tasks", "container-tasks")
DEFAULT_CONCURRENCY: Final = 64  # tasks that mostly wait; those that compute share as many processes as there are CPUs
LEASE_CONNECTIONS: Final = 2


def create_worker(
    settings: Settings, database_url: str, *, queues: Sequence[str] = DEFAULT_QUEUES, concurrency: int | None = None
) -> FastAPI:
    """Make the application of a worker: it works while the application runs."""
    app = create_database_application("worker", DatabaseRole.WORKER, settings, database_url)
    serve_database = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        slots = concurrency or settings.worker_concurrency or DEFAULT_CONCURRENCY
        async with serve_database(app), _worker(app, settings, database_url, tuple(queues), slots) as worker:
            yield
            _hurry_at_next_signal(worker)

    app.router.lifespan_context = lifespan
    return app


@asynccontextmanager
async def _worker(
    app: FastAPI, settings: Settings, url: str, queues: tuple[str, ...], concurrency: int
) -> AsyncIterator[Worker]:
    """Put a worker together, and let it work inside the block."""
    worker_id, known = new_worker_id(), handlers()
    database: Database = app.state.database
    storage = LocalStorage.of(settings)
    async with _lease_database(settings, url) as leases, _ways_back(settings, database, worker_id) as ways:
        given = Surroundings(
            queue=PostgresTaskQueue(database, leases, worker_id, settings.worker_lease_seconds),
            sink=ways[0],
            checkpoints=ways[1],
            storage=storage,
            pool=ProcessPool(
                min(concurrency, os.cpu_count() or 1),
                ChildSettings(settings.storage_folder, settings.log_level, settings.log_format, storage.options),
            ),
            presence=Presence(
                database, worker_row(worker_id, queues, list(known), concurrency), settings.heartbeat_interval_seconds
            ),
            listener=Listener(
                url, DatabaseRole.WORKER, [CANCELLED, *map(queue_channel, queues)], name="graticule-worker-listener"
            ),
            metrics=WorkerMetrics(app.state.registry),
            handlers=known,
            database=database,
        )
        options = WorkerOptions(queues, concurrency, settings.worker_renew_seconds, settings.worker_grace_seconds)
        worker = Worker(options, given)
        async with worker.running():
            yield worker


def _lease_database(settings: Settings, url: str) -> Database:
    return Database(
        without_waiting_for_disk(url),
        DatabaseRole.WORKER,
        pool_size=LEASE_CONNECTIONS,
        timeout_seconds=settings.database_timeout_seconds,
        name="graticule-worker-leases",
    )


@asynccontextmanager
async def _ways_back(
    settings: Settings, database: Database, worker_id: WorkerId
) -> AsyncIterator[tuple[ReportSink, CheckpointStore]]:
    """Give the ways on which results and checkpoints go: by HTTP when an address is configured, else the database."""
    if settings.dag_callback_url is None:
        yield DatabaseSink(database, worker_id), DatabaseCheckpoints(database, worker_id)
        return
    token = None if settings.worker_token is None else settings.worker_token.get_secret_value()
    client = CallbackClient(str(settings.dag_callback_url.get_secret_value()), token, worker_id)
    try:
        yield HttpSink(client), HttpCheckpoints(client)
    finally:
        await client.close()


def _hurry_at_next_signal(worker: Worker) -> None:
    """Stop at once at the second signal; the first has brought us here."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread: nobody sends us signals
            loop.add_signal_handler(number, worker.hurry)
