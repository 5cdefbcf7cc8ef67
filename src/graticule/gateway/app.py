"""The gateway's application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel

from graticule import __version__
from graticule.config import Settings
from graticule.console.files import FOLDER, Console, install_console, wants_page
from graticule.core.table import DatabaseRole
from graticule.gateway import (
    admin,
    assets,
    earlier_forms,
    platform,
    platforms,
    proxy,
    reviews,
    session,
    staged,
    status,
    storage,
    submissions,
    view,
    workflows,
)
from graticule.gateway.forwarding import Orchestrator, install_forwarding
from graticule.gateway.proxy import ORCHESTRATOR, Proxy
from graticule.gateway.used_clients import uses_told
from graticule.http.callers import install_access
from graticule.http.database import create_database_application, readiness_checks
from graticule.http.probes import probe_router
from graticule.http.problems import problem_responses
from graticule.services.asset_reading import AssetReader
from graticule.services.job_reading import JobReader
from graticule.services.layer_metadata import LayerMetadataService
from graticule.services.oidc_sign_in import OpenIdSignIn
from graticule.services.operator_reading import OperatorReader
from graticule.services.outputs import OutputStore
from graticule.services.platforms import PlatformService
from graticule.services.service_tokens import ServiceTokens
from graticule.services.statistics import StatisticsService
from graticule.storage.options import StorageOptions
from graticule.storage.place import storage_of

ROUTERS: Final = (
    session.router,
    platforms.router,
    assets.router,
    reviews.router,
    submissions.router,
    staged.router,
    status.router,
    proxy.router,
    view.router,
    admin.router,
    workflows.router,
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


def create_gateway(
    settings: Settings, database_url: str, *, streams: bool = True, console_folder: Path = FOLDER
) -> FastAPI:
    """Make the gateway's application for a database, which it only ever reads.

    Without `streams` it passes no event streams on, for servers that collect a whole answer before they send it. The
    console is given out from its folder.
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
    access = install_access(app, app.state.database, settings, sessions=True)
    app.state.open_id_sign_in = OpenIdSignIn.of(settings, access.tokens)
    _add_services(app, settings)
    _add_outbound(app, settings, streams=streams)
    app.add_api_route("/", welcome, response_model=Welcome, responses=_FRONT_DOOR, summary="The front door")
    app.add_api_route("/", welcome, methods=["HEAD"], response_model=Welcome, include_in_schema=False)
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
    app.include_router(platform.router, prefix=platform.PREFIX)
    app.include_router(platform.router, prefix=earlier_forms.PREFIX, include_in_schema=False)
    for router in ROUTERS:
        app.include_router(router)
    install_console(app, Console(console_folder, settings.console_base_map))
    return app


_FRONT_DOOR: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The console for browsers, a document for others.", "content": {"text/html": {}}},
    **problem_responses(503),
}


async def welcome(request: Request, response: Response) -> Welcome | FileResponse:
    """Give browsers the console, and tell others what this is and where to go on."""
    if wants_page(request):
        console: Console = request.app.state.console
        return console.page()
    response.headers["Vary"] = "Accept"
    return Welcome()


def _add_services(app: FastAPI, settings: Settings) -> None:
    """Add what the routes work with; see `graticule.gateway.services`."""
    database = app.state.database
    app.state.settings = settings
    app.state.assets = AssetReader(database)
    app.state.metadata = LayerMetadataService(database)
    app.state.platforms = PlatformService(database, StorageOptions.of(settings))
    app.state.storage = storage_of(settings)
    app.state.job_reader = JobReader(database, OutputStore(app.state.storage))
    app.state.operator_reader = OperatorReader(database)
    app.state.statistics = StatisticsService(database, threshold_seconds=settings.orphan_threshold_seconds)


def _add_outbound(app: FastAPI, settings: Settings, *, streams: bool) -> None:
    """Add what reaches the processes behind the gateway."""
    app.state.streams = streams
    tokens = ServiceTokens.of(settings.service_key)
    address = str(settings.orchestrator_url.get_secret_value())
    app.state.orchestrator = Orchestrator(address, None if tokens is None else tokens.sign)
    targets = {name: str(each.get_secret_value()) for name, each in settings.proxy_targets.items()}
    public = settings.serve_url
    known_as = {} if public is None else {view.SERVE: str(public.get_secret_value())}
    app.state.proxy = Proxy(
        {**targets, ORCHESTRATOR: address}, app.state.orchestrator, known_as=known_as, streams=streams
    )
    app.state.passage_to_services = view.passage_to_services(settings)
