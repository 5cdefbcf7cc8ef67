"""An application that stands on the database: it is ready when the database and its schema are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.http.application import create_application
from graticule.http.disks import Disks
from graticule.http.limits import DEFAULT_MAX_BODY_BYTES
from graticule.http.probes import Check, CheckResult
from graticule.repositories.database import Database
from graticule.services.readiness import ReadinessService

LifespanPart = Callable[[FastAPI], AbstractAsyncContextManager[None]]

POOL_GAUGES = {
    "pool_size": "Connections that the pool holds.",
    "pool_available": "Connections that nobody uses now.",
    "requests_waiting": "Requests that wait for a connection.",
}
# Each with what the pool calls it, and in which unit.
POOL_COUNTERS = {
    "requests": ("requests_num", 1, "Requests for a connection."),
    "request_errors": ("requests_errors", 1, "Requests that got no connection."),
    "request_wait_seconds": ("requests_wait_ms", 0.001, "Time that requests have waited for a connection."),
    "connections": ("connections_num", 1, "Connections that were tried."),
    "connection_errors": ("connections_errors", 1, "Connections that failed."),
    "connections_lost": ("connections_lost", 1, "Connections that were found broken."),
}
POOL_LABELS = ("pool",)


def create_database_application(
    process: str,
    role: DatabaseRole,
    settings: Settings,
    database_url: str,
    *,
    parts: Sequence[LifespanPart] = (),
    disks: Mapping[str, Path] | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    health_details: bool = True,
) -> FastAPI:
    """Make an application whose `app.state.database` acts as `role` while the application runs.

    Each of the parts runs as long as the application does: entered in order once the database is open, and
    left in reverse order before it is closed. It is ready only while there is room on its `disks`.
    """
    database = Database(
        database_url,
        role,
        pool_size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_seconds,
        name=f"graticule-{process}",
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with database, AsyncExitStack() as running:
            for part in parts:
                await running.enter_async_context(part(app))
            yield

    readiness = ReadinessService(database)
    watched = Disks(disks or {}, settings.min_free_mb)
    app = create_application(
        process=process,
        title=f"Graticule {process}",
        checks={**readiness_checks(readiness), **({"disks": watched.check} if disks else {})},
        lifespan=lifespan,
        max_body_bytes=max_body_bytes,
        health_details=health_details,
    )
    app.state.database = database
    app.state.readiness = readiness
    watched.install(app)
    app.state.pools = PoolMetrics(app.state.registry, database)
    return app


class PoolMetrics(Collector):
    """The connection pools of a process as Prometheus sees them, read when it asks."""

    def __init__(self, registry: CollectorRegistry, *databases: Database) -> None:
        self._databases = [*databases]
        registry.register(self)

    def watch(self, database: Database) -> None:
        """Tell of one more pool."""
        self._databases.append(database)

    def collect(self) -> Iterable[Metric]:
        """Give the numbers of each pool."""
        found = {database.name: database.pool_statistics() for database in self._databases}
        for name, meaning in POOL_GAUGES.items():
            gauge = GaugeMetricFamily(f"graticule_database_{name}", meaning, labels=POOL_LABELS)
            for pool, numbers in found.items():
                gauge.add_metric([pool], numbers.get(name, 0))
            yield gauge
        for name, (counted, scale, meaning) in POOL_COUNTERS.items():
            counter = CounterMetricFamily(f"graticule_database_{name}", meaning, labels=POOL_LABELS)
            for pool, numbers in found.items():
                counter.add_metric([pool], numbers.get(counted, 0) * scale)
            yield counter


def readiness_checks(service: ReadinessService) -> Mapping[str, Check]:
    """Give the checks of the database and its schema; what they raise is why they are not ok."""
    return {"database": _passing(service.database), "schema": _passing(service.schema)}


def _passing(question: Callable[[], Awaitable[dict[str, Any]]]) -> Check:
    async def check() -> CheckResult:
        return CheckResult(ok=True, detail=await question())

    return check
