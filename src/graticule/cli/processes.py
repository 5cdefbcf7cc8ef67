"""`graticule orchestrator` and `graticule gateway`: one process each."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.settings import load_settings
from graticule.config import RunMode, Settings
from graticule.core.table import DatabaseRole

if TYPE_CHECKING:
    from fastapi import FastAPI

GATEWAY_PORT = 8000
ORCHESTRATOR_PORT = 8001

Host = Annotated[
    str,
    typer.Option(envvar="GRATICULE_HOST", help="The address to listen on; loopback only unless told otherwise."),
]
Port = Annotated[int, typer.Option(envvar="GRATICULE_PORT", min=1, max=65535, help="The port to listen on.")]


def orchestrator(host: Host = "127.0.0.1", port: Port = ORCHESTRATOR_PORT) -> None:
    """Run an orchestrator: the API with write authority."""
    from graticule.api.app import create_api
    from graticule.cli.connection import owner_url, process_url

    settings = load_settings()
    url = process_url(settings, DatabaseRole.ORCHESTRATOR)
    _run(RunMode.ORCHESTRATOR, settings, create_api(settings, url, owner_url(settings)), host, port)


def gateway(host: Host = "127.0.0.1", port: Port = GATEWAY_PORT) -> None:
    """Run a gateway: the front door for partners and operators, which can only read and forward."""
    from graticule.cli.connection import process_url
    from graticule.gateway.app import create_gateway

    settings = load_settings()
    url = process_url(settings, DatabaseRole.GATEWAY)
    _run(RunMode.GATEWAY, settings, create_gateway(settings, url), host, port)


def _run(process: RunMode, settings: Settings, app: "FastAPI", host: str, port: int) -> None:
    from graticule.http.server import serve
    from graticule.logs import configure_logging

    configure_logging(settings.log_level, settings.log_format, process)
    asyncio.run(serve(app, host, port))
