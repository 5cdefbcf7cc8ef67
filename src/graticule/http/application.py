"""The application that every HTTP process starts from."""

import asyncio
from collections.abc import Mapping

from fastapi import FastAPI
from starlette.types import Lifespan

from graticule import __version__
from graticule.http.headers import SecurityHeaders
from graticule.http.limits import DEFAULT_MAX_BODY_BYTES, BodyLimit
from graticule.http.metrics import HttpMetrics, create_registry, metrics_router
from graticule.http.probes import Check, probe_router
from graticule.http.problems import any_problem, install_problem_handlers
from graticule.http.requests import RequestObserver


def create_application(
    *,
    process: str,
    title: str,
    checks: Mapping[str, Check],
    lifespan: Lifespan[FastAPI] | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
) -> FastAPI:
    """Make an application with problem documents, request ids, limits, probes and metrics.

    `app.state.registry` is where further metrics are registered. `app.state.stopping` is an event that
    is set when the server begins to stop: whatever answers without end, such as a stream, watches it.
    """
    app = FastAPI(
        title=title,
        version=__version__,
        lifespan=lifespan,
        responses=any_problem(),
        docs_url=None,  # these two load their scripts from elsewhere
        redoc_url=None,
    )
    app.state.registry = create_registry(process)
    app.state.stopping = asyncio.Event()
    _add_middleware(app, max_body_bytes)
    app.include_router(probe_router(process, checks))
    app.include_router(metrics_router(app.state.registry))
    return app


def _add_middleware(app: FastAPI, max_body_bytes: int) -> None:
    """Add from the inside out: each one wraps those before it."""
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    install_problem_handlers(app)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestObserver, metrics=HttpMetrics(app.state.registry))
