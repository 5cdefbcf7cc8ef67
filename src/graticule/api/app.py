"""The orchestrator's application."""

from fastapi import FastAPI

from graticule.api import bootstrap
from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.http.database import create_database_application
from graticule.services.bootstrap import BootstrapService


def create_api(settings: Settings, database_url: str, owner_url: str | None = None) -> FastAPI:
    """Make the orchestrator's application for a database."""
    app = create_database_application("orchestrator", DatabaseRole.ORCHESTRATOR, settings, database_url)
    app.state.admin_key = settings.admin_key
    app.state.bootstrap = BootstrapService(owner_url or database_url, development=settings.development)
    app.include_router(bootstrap.router)
    return app
