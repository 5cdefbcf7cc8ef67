"""The orchestrator's application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from graticule.api import (
    bootstrap,
    callbacks,
    dead_letters,
    events,
    jobs,
    operations,
    staged,
    workflows,
)
from graticule.config import Settings
from graticule.core.channels import EVENTS
from graticule.core.table import DatabaseRole
from graticule.http.database import LifespanPart, create_database_application
from graticule.orchestrator.engine import Engine, create_engine
from graticule.repositories.listener import Listener
from graticule.services.bootstrap import BootstrapService
from graticule.services.dead_letters import DeadLetterService
from graticule.services.event_stream import EventStream
from graticule.services.job_reading import JobReader
from graticule.services.results import ResultIntake
from graticule.services.statistics import StatisticsService
from graticule.storage.local import LocalStorage

ROLE = DatabaseRole.ORCHESTRATOR
ROUTERS = (
    bootstrap.router,
    jobs.router,
    jobs.submitting,
    events.router,
    workflows.router,
    callbacks.router,
    operations.router,
    dead_letters.router,
    staged.router,
)


def engine_running(app: FastAPI) -> AbstractAsyncContextManager[None]:
    """Let the engine decide for jobs while the application runs."""
    engine: Engine = app.state.engine
    return engine.running()


@asynccontextmanager
async def event_stream_open(app: FastAPI) -> AsyncIterator[None]:
    """Close the stream's connections with the application."""
    yield
    await app.state.events.close()


def create_api(
    settings: Settings,
    database_url: str,
    owner_url: str | None = None,
    *,
    parts: Sequence[LifespanPart] = (engine_running,),
) -> FastAPI:
    """Make the orchestrator's application for a database; `parts` run as long as it does."""
    app = create_database_application("orchestrator", ROLE, settings, database_url, parts=[event_stream_open, *parts])
    app.state.admin_key = settings.admin_key
    app.state.worker_token = settings.worker_token
    app.state.bootstrap = BootstrapService(owner_url or database_url, development=settings.development)
    _add_services(app, settings, database_url)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _add_services(app: FastAPI, settings: Settings, database_url: str) -> None:
    """Add what the routes work with; see `graticule.api.services`."""
    database = app.state.database
    engine = create_engine(settings, database, database_url)
    app.state.engine = engine
    app.state.jobs = engine.jobs
    app.state.workflows = engine.workflows
    app.state.job_reader = JobReader(database, engine.outputs)
    app.state.results = ResultIntake(database, LocalStorage(settings.storage_folder))
    app.state.dead_letters = DeadLetterService(database)
    app.state.statistics = StatisticsService(database, threshold_seconds=settings.orphan_threshold_seconds)
    listener = Listener(database_url, ROLE, [EVENTS], name="graticule-orchestrator-events")
    app.state.events = EventStream(database, listener)
