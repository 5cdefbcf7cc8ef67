"""What is measured of every HTTP process, and the page that Prometheus reads."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, Info
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from graticule import __version__

# Anyone can send any word as a method, and each would be a new series.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})


def create_registry(process: str) -> CollectorRegistry:
    """Make the registry of one application: two in one Python process do not collide."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("graticule_build", "The version that runs, and as what.", registry=registry)
    build.info({"version": __version__, "process": process})
    return registry


class HttpMetrics:
    """Requests by route, and how long they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "graticule_http_requests_total",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "graticule_http_request_duration_seconds",
            "Time from the first byte of a request to the last of its answer; streams of events have none.",
            ["method", "route"],
            registry=registry,
        )

    def observe(self, *, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count one request, and how long it took if it was to end soon."""
        method = method if method in _METHODS else "OTHER"
        self._requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(method, route).observe(seconds)


Refresh = Callable[[], Awaitable[None]]


def metrics_router(registry: CollectorRegistry, refreshes: Sequence[Refresh]) -> APIRouter:
    """Serve the registry at `/metrics`; what has to be read elsewhere is refreshed first."""
    router = APIRouter()

    async def metrics(request: Request) -> Response:
        await asyncio.gather(*(refresh() for refresh in refreshes))
        accept = ",".join(request.headers.getlist("accept"))
        try:
            encode, media_type = choose_encoder(accept)
        except TypeError:  # a version that is not a number
            encode, media_type = choose_encoder("")
        return Response(encode(registry), headers={"Content-Type": media_type})

    router.add_api_route("/metrics", metrics, include_in_schema=False)
    return router
