"""The orchestrator's application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from graticule.api import (
    assets,
    bootstrap,
    callbacks,
    catalogue,
    clients,
    commands,
    dead_letters,
    deliveries,
    events,
    jobs,
    metadata,
    operations,
    platforms,
    staged,
    stats,
    submissions,
    workflows,
)
from graticule.config import Settings
from graticule.core.channels import EVENTS
from graticule.core.table import DatabaseRole
from graticule.http.callers import install_access
from graticule.http.database import LifespanPart, create_database_application
from graticule.orchestrator.engine import Engine, create_engine
from graticule.repositories.listener import Listener
from graticule.services.asset_reading import AssetReader
from graticule.services.bootstrap import BootstrapService
from graticule.services.catalogue import CatalogueService
from graticule.services.clients import ClientService
from graticule.services.commands import CommandService
from graticule.services.dead_letters import DeadLetterService
from graticule.services.deliveries import DeliveryService
from graticule.services.event_stream import EventStream
from graticule.services.job_reading import JobReader
from graticule.services.layer_metadata import LayerMetadataService
from graticule.services.leases import LeaseService
from graticule.services.platform_statistics import PlatformStatistics
from graticule.services.platforms import PlatformService
from graticule.services.presence import PresenceService
from graticule.services.publishing import PublishingJobs
from graticule.services.results import ResultIntake
from graticule.services.reviewed_files import ReviewedFiles
from graticule.services.reviews import ReviewService
from graticule.services.service_addresses import ServiceAddresses
from graticule.services.service_tokens import ServiceTokens
from graticule.services.staged_jobs import StagedJobs
from graticule.services.statistics import StatisticsService
from graticule.services.submission_checks import SubmissionChecks
from graticule.services.submissions import SubmissionService
from graticule.services.unserved_queues import QueueWarnings
from graticule.storage.disk_space import orchestrator_disks
from graticule.storage.options import StorageOptions
from graticule.storage.place import storage_of

ROLE = DatabaseRole.ORCHESTRATOR
ROUTERS = (
    bootstrap.router,
    jobs.router,
    submissions.router,
    assets.router,
    events.router,
    workflows.router,
    callbacks.router,
    catalogue.router,
    operations.router,
    stats.router,
    dead_letters.router,
    platforms.router,
    metadata.router,
    commands.router,
    staged.router,
    deliveries.router,
    deliveries.platform_secrets,
    clients.router,
    clients.noting,
)


def engine_running(app: FastAPI) -> AbstractAsyncContextManager[None]:
    """Let the engine decide for jobs while the application runs."""
    engine: Engine = app.state.engine
    return engine.running()


@asynccontextmanager
async def state_measured(app: FastAPI) -> AsyncIterator[None]:
    """Read the state for metrics no longer than the application runs."""
    yield
    await app.state.engine.state_metrics.close()


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
    app = create_database_application(
        "orchestrator",
        ROLE,
        settings,
        database_url,
        parts=[event_stream_open, state_measured, clients.uses_noted, *parts],
        disks=orchestrator_disks(settings),
    )
    service_tokens = ServiceTokens.of(settings.service_key)
    access = install_access(app, app.state.database, settings, service_tokens=service_tokens)
    app.state.clients = ClientService(app.state.database, on_change=access.forget)
    app.state.bootstrap = BootstrapService(owner_url or database_url, development=settings.development)
    _add_services(app, settings, database_url)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _add_services(app: FastAPI, settings: Settings, database_url: str) -> None:
    """Add what the routes work with; see `graticule.api.services`."""
    database = app.state.database
    engine = create_engine(settings, database, database_url, app.state.registry)
    app.state.engine = engine
    app.state.pools.watch(engine.loop_database)
    app.state.refreshes.append(engine.state_metrics.refresh)
    app.state.jobs = engine.jobs
    app.state.workflows = engine.workflows
    app.state.workflow_sharing = engine.sharing
    app.state.job_reader = JobReader(database, engine.outputs)
    app.state.addresses = ServiceAddresses.of(settings)
    app.state.staged_jobs = StagedJobs(
        app.state.job_reader, queue=settings.job_queue_name, serve_url=app.state.addresses.internal
    )
    app.state.results = ResultIntake(database, storage_of(settings))
    app.state.leases = LeaseService(database, settings.worker_lease_seconds, engine.queue_metrics)
    app.state.presences = PresenceService(database)
    app.state.catalogue = CatalogueService(database)
    app.state.dead_letters = DeadLetterService(database)
    app.state.deliveries = DeliveryService(database, settings)
    app.state.statistics = StatisticsService(database, threshold_seconds=settings.orphan_threshold_seconds)
    app.state.queue_warnings = QueueWarnings(database, threshold_seconds=settings.orphan_threshold_seconds)
    app.state.platform_statistics = PlatformStatistics(database)
    app.state.platforms = PlatformService(database, StorageOptions.of(settings))
    app.state.metadata = LayerMetadataService(database)
    app.state.commands = CommandService(database, app.state.bootstrap)
    app.state.assets = AssetReader(database)
    checks = SubmissionChecks(database, storage_of(settings))
    app.state.submissions = SubmissionService(database, engine.jobs, engine.workflows, checks)
    files = ReviewedFiles(database, storage_of(settings))
    app.state.reviews = ReviewService(database, PublishingJobs(engine.jobs, engine.workflows), files)
    listener = Listener(database_url, ROLE, [EVENTS], name="graticule-orchestrator-events")
    app.state.events = EventStream(database, listener)
