"""The gateway's application."""

from fastapi import FastAPI
from pydantic import BaseModel

from graticule import __version__
from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.http.database import create_database_application


class Welcome(BaseModel):
    """What a visitor finds at the front door."""

    name: str = "Graticule"
    version: str = __version__
    links: dict[str, str] = {"health": "/health", "readiness": "/readyz", "metrics": "/metrics", "api": "/openapi.json"}


def create_gateway(settings: Settings, database_url: str) -> FastAPI:
    """Make the gateway's application for a database, which it only ever reads."""
    app = create_database_application("gateway", DatabaseRole.GATEWAY, settings, database_url)
    app.add_api_route("/", welcome, response_model=Welcome, summary="The front door")
    return app


async def welcome() -> Welcome:
    """Tell what this is and where to go on."""
    return Welcome()
