"""The application that every HTTP process starts from."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.types import Lifespan

from graticule import __version__
from graticule.http.connections import ConnectionMetrics
from graticule.http.headers import SecurityHeaders
from graticule.http.json_bodies import JsonBodies
from graticule.http.limits import DEFAULT_MAX_BODY_BYTES, BodyLimit
from graticule.http.metrics import HttpMetrics, create_registry, metrics_router
from graticule.http.probes import Check, probe_router
from graticule.http.problems import any_problem, install_problem_handlers, problem_responses
from graticule.http.requests import RequestObserver


class Application(FastAPI):
    """An application whose document names the errors that an operation can always come to."""

    _description: bytes | None = None

    def include_router(self, router: APIRouter, **options: Any) -> None:
        """Include a router; without options its routes are taken as they are.

        FastAPI would build each of them anew at the application's first request, which takes longer than to answer
        it, and has nothing to add but what is documented of every route.
        """
        if options:
            super().include_router(router, **options)
            return
        for route in router.routes:
            if isinstance(route, APIRoute):
                route.responses = self.router.responses | route.responses
            self.router.routes.append(route)

    def openapi(self) -> dict[str, Any]:
        """Give the document, made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            for operation in (each for item in document["paths"].values() for each in item.values()):
                for status, response in problem_responses(*_always_possible(operation)).items():
                    operation["responses"].setdefault(str(status), response)
        return self.openapi_schema or {}

    def setup(self) -> None:
        """Offer the document as it is written once: writing it takes so long that strangers could fill the time."""
        if self.openapi_url is not None:
            self.add_route(self.openapi_url, self._describe, include_in_schema=False)

    async def _describe(self, _: Request) -> Response:
        if self._description is None:
            self._description = bytes(JSONResponse(self.openapi()).body)
        return Response(self._description, media_type=JSONResponse.media_type)


def _always_possible(operation: Mapping[str, Any]) -> list[int]:
    of_caller = [401, 403, 429, 503] if operation.get("security") else []
    of_parameters = [422] if operation.get("parameters") else []
    return [*of_caller, *of_parameters, *([400, 413, 422] if "requestBody" in operation else [])]


def create_application(
    *,
    process: str,
    title: str,
    checks: Mapping[str, Check],
    lifespan: Lifespan[FastAPI] | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    health_details: bool = True,
) -> FastAPI:
    """Make an application with problem documents, request ids, limits, probes and metrics.

    `app.state.registry` is where further metrics are registered, and `app.state.refreshes` has what is awaited before
    they are read. `app.state.stopping` is an event that
    is set when the server begins to stop: whatever answers without end, such as a stream, watches it.
    """
    app = Application(
        title=title,
        version=__version__,
        lifespan=lifespan,
        responses=any_problem(),
        # It would record the queries of requests, in which keys may stand; `RequestObserver` records what may be seen.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,  # these two load their scripts from elsewhere
        redoc_url=None,
    )
    app.state.registry = create_registry(process)
    app.state.connection_metrics = ConnectionMetrics(app.state.registry)
    app.state.refreshes = []
    app.state.stopping = asyncio.Event()
    _add_middleware(app, max_body_bytes)
    app.include_router(probe_router(process, checks, details=health_details))
    app.include_router(metrics_router(app.state.registry, app.state.refreshes))
    return app


def _add_middleware(app: FastAPI, max_body_bytes: int) -> None:
    """Add from the inside out: each one wraps those before it."""
    app.add_middleware(JsonBodies, max_bytes=max_body_bytes)
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    install_problem_handlers(app)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestObserver, metrics=HttpMetrics(app.state.registry))
