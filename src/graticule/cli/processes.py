"""`graticule orchestrator`, `graticule gateway` and `graticule serve`: one process each."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.settings import load_settings
from graticule.config import RunMode, Settings, StorageKind
from graticule.core.audience import Audience
from graticule.core.table import DatabaseRole

if TYPE_CHECKING:
    from fastapi import FastAPI

GATEWAY_PORT = 8000
ORCHESTRATOR_PORT = 8001
SERVE_PORT = 8003

Host = Annotated[
    str,
    typer.Option(envvar="GRATICULE_HOST", help="The address to listen on; loopback only unless told otherwise."),
]
Port = Annotated[int, typer.Option(envvar="GRATICULE_PORT", min=1, max=65535, help="The port to listen on.")]


def orchestrator(host: Host = "127.0.0.1", port: Port = ORCHESTRATOR_PORT) -> None:
    """Run an orchestrator: the API with write authority, and the loop that advances jobs."""
    from graticule.api.app import create_api
    from graticule.cli.connection import owner_url, process_url
    from graticule.cli.installation import with_kept_admin_key

    settings = with_kept_admin_key(begin(RunMode.ORCHESTRATOR))
    url = process_url(settings, DatabaseRole.ORCHESTRATOR)
    run(create_api(settings, url, owner_url(settings)), settings, host, port)


def gateway(host: Host = "127.0.0.1", port: Port = GATEWAY_PORT) -> None:
    """Run a gateway: the front door for partners and operators, which can only read and forward."""
    from graticule.cli.connection import process_url
    from graticule.gateway.app import create_gateway

    settings = begin(RunMode.GATEWAY)
    run(create_gateway(settings, process_url(settings, DatabaseRole.GATEWAY)), settings, host, port)


def serve(
    audience: Annotated[
        Audience | None,
        typer.Option(help="For whom: those of the house, or the public; by default GRATICULE_SERVE_AUDIENCE."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = SERVE_PORT,
) -> None:
    """Run the services: tiles, features and the STAC catalogue of what was approved, for one audience.

    `internal` shows what is approved, whatever its clearance, and asks nobody who they are: keep it in your network.
    `external` shows what is approved, public and exported, and can read nothing else.
    """
    from graticule.cli.connection import process_url
    from graticule.serve.app import create_serve

    settings = begin(RunMode.SERVE)
    chosen = audience or settings.serve_audience
    settings = settings.model_copy(update={"serve_audience": chosen})
    run(create_serve(settings, process_url(settings, chosen.role), chosen), settings, host, port)


def begin(process: RunMode) -> Settings:
    """Read the settings and begin to log as they say, before anything has something to log; and to trace, if asked."""
    from graticule.logs import configure_logging
    from graticule.storage.privacy import close_to_others, write_privately
    from graticule.telemetry import begin_tracing

    settings = load_settings().model_copy(update={"run_mode": process})
    configure_logging(settings.log_level, settings.log_format, process)
    begin_tracing(process)
    if settings.storage is StorageKind.LOCAL:
        close_to_others(settings.storage_folder)
        write_privately(settings.storage_folder)
    return settings


def run(app: "FastAPI", settings: Settings, host: str, port: int) -> None:
    """Serve an application until a signal comes."""
    from graticule.http.connections import ConnectionPolicy
    from graticule.http.server import serve
    from graticule.telemetry import end_tracing

    try:
        asyncio.run(serve(app, host, port, policy=ConnectionPolicy.of(settings)))
    finally:
        end_tracing()
