"""The gateway's application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from pydantic import BaseModel

from graticule import __version__
from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.gateway import admin, assets, platform, platforms, proxy, status, storage, submissions
from graticule.gateway.forwarding import Orchestrator, install_forwarding
from graticule.gateway.proxy import ORCHESTRATOR, Proxy
from graticule.gateway.used_clients import uses_told
from graticule.http.callers import install_access
from graticule.http.database import create_database_application, readiness_checks
from graticule.http.probes import probe_router
from graticule.services.asset_reading import AssetReader
from graticule.services.job_reading import JobReader
from graticule.services.operator_reading import OperatorReader
from graticule.services.outputs import OutputStore
from graticule.services.platforms import PlatformService
from graticule.services.service_tokens import ServiceTokens
from graticule.services.statistics import StatisticsService
from graticule.storage.local import LocalStorage

ROUTERS: Final = (
    platform.router,
    platforms.router,
    assets.router,
    submissions.router,
    status.router,
    proxy.router,
    admin.router,
    storage.router,
)


class Welcome(BaseModel):
    """What a visitor finds at the front door."""

    name: str = "Graticule"
    version: str = __version__
    links: dict[str, str] = {"health": "/health", "readiness": "/readyz", "metrics": "/metrics", "api": "/openapi.json"}


@asynccontextmanager
async def outbound_open(app: FastAPI) -> AsyncIterator[None]:
    """Hold the connections to the processes behind the gateway while the application runs."""
    async with app.state.orchestrator, app.state.proxy:
        yield


def create_gateway(settings: Settings, database_url: str, *, streams: bool = True) -> FastAPI:
    """Make the gateway's application for a database, which it only ever reads.

    Without `streams` it passes no event streams on, for servers that collect a whole answer before they send it.
    """
    app = create_database_application(
        "gateway",
        DatabaseRole.GATEWAY,
        settings,
        database_url,
        parts=[outbound_open, uses_told],
        max_body_bytes=settings.gateway_max_body_bytes,
        health_details=False,  # they are for operators: /api/admin/health
    )
    install_forwarding(app)
    install_access(app, app.state.database, settings)
    _add_services(app, settings)
    _add_outbound(app, settings, streams=streams)
    app.add_api_route("/", welcome, response_model=Welcome, summary="The front door")
    app.include_router(
        probe_router(
            "gateway",
            readiness_checks(app.state.readiness),
            details=False,
            live="/api/livez",
            ready="/api/readyz",
            health="/api/gateway/health",
        )
    )
    for router in ROUTERS:
        app.include_router(router)
    return app


async def welcome() -> Welcome:
    """Tell what this is and where to go on."""
    return Welcome()


def _add_services(app: FastAPI, settings: Settings) -> None:
    """Add what the routes work with; see `graticule.gateway.services`."""
    database = app.state.database
    app.state.settings = settings
    app.state.assets = AssetReader(database)
    app.state.platforms = PlatformService(database)
    app.state.storage = LocalStorage.of(settings)
    app.state.job_reader = JobReader(database, OutputStore(app.state.storage))
    app.state.operator_reader = OperatorReader(database)
    app.state.statistics = StatisticsService(database, threshold_seconds=settings.orphan_threshold_seconds)


def _add_outbound(app: FastAPI, settings: Settings, *, streams: bool) -> None:
    """Add what reaches the processes behind the gateway."""
    tokens = ServiceTokens.of(settings.service_key)
    address = str(settings.orchestrator_url.get_secret_value())
    app.state.orchestrator = Orchestrator(address, None if tokens is None else tokens.sign)
    targets = {name: str(each.get_secret_value()) for name, each in settings.proxy_targets.items()}
    app.state.proxy = Proxy({**targets, ORCHESTRATOR: address}, app.state.orchestrator, streams=streams)
