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
from graticule.core.table import DatabaseRole
from graticule.handlers.registry import handlers
from graticule.http.application import create_application
from graticule.http.database import create_database_application
from graticule.http.disks import Disks
from graticule.storage.disk_space import worker_disks
from graticule.storage.place import StoragePlace
from graticule.worker.executor import runnable
from graticule.worker.hidden_memory import hide_memory
from graticule.worker.metrics import WorkerMetrics
from graticule.worker.pool import ChildSettings, ProcessPool
from graticule.worker.presence import new_worker_id, worker_row
from graticule.worker.ways import orchestrator_check, ways_of
from graticule.worker.worker import Surroundings, Worker, WorkerOptions

DEFAULT_QUEUES: Final = ("functionapp-tasks", "container-tasks")
DEFAULT_CONCURRENCY: Final = 64  # tasks that mostly wait; those that compute share as many processes as there are CPUs


def create_worker(
    settings: Settings,
    database_url: str | None,
    *,
    queues: Sequence[str] = DEFAULT_QUEUES,
    concurrency: int | None = None,
) -> FastAPI:
    """Make the application of a worker: it works while the application runs.

    Without a database its tasks come by the broker, and its reports go by HTTP.
    """
    app = _application(settings, database_url)
    serve_application = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        hide_memory()
        slots = concurrency or settings.worker_concurrency or DEFAULT_CONCURRENCY
        async with serve_application(app), _worker(app, settings, database_url, tuple(queues), slots) as worker:
            yield
            _hurry_at_next_signal(worker)

    app.router.lifespan_context = lifespan
    return app


def _application(settings: Settings, database_url: str | None) -> FastAPI:
    disks = worker_disks(settings)
    if database_url is not None:
        return create_database_application("worker", DatabaseRole.WORKER, settings, database_url, disks=disks)
    watched = Disks(disks, settings.min_free_mb)
    app = create_application(
        process="worker",
        title="Graticule worker",
        checks={"orchestrator": orchestrator_check(settings), "disks": watched.check},
    )
    watched.install(app)
    app.state.database = None
    return app


@asynccontextmanager
async def _worker(
    app: FastAPI, settings: Settings, url: str | None, queues: tuple[str, ...], concurrency: int
) -> AsyncIterator[Worker]:
    """Put a worker together, and let it work inside the block."""
    known = handlers()
    place = StoragePlace.of(settings)
    row = worker_row(new_worker_id(), queues, runnable(known, has_database=url is not None), concurrency)
    metrics = WorkerMetrics(app.state.registry)
    async with ways_of(settings, row, app.state.database, url, metrics.queues) as ways:
        given = Surroundings(
            ways=ways,
            storage=place.opened(),
            pool=ProcessPool(
                min(concurrency, os.cpu_count() or 1),
                ChildSettings(place, settings.log_level, settings.log_format),
            ),
            metrics=metrics,
            handlers=known,
        )
        worker = Worker(WorkerOptions(queues, concurrency, settings.worker_grace_seconds), given)
        async with worker.running():
            yield worker


def _hurry_at_next_signal(worker: Worker) -> None:
    """Stop at once at the second signal; the first has brought us here."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread: nobody sends us signals
            loop.add_signal_handler(number, worker.hurry)
