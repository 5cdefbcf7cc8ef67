"""An application that stands on the database: it is ready when the database and its schema are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.http.application import create_application
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


def create_database_application(
    process: str,
    role: DatabaseRole,
    settings: Settings,
    database_url: str,
    *,
    parts: Sequence[LifespanPart] = (),
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    health_details: bool = True,
) -> FastAPI:
    """Make an application whose `app.state.database` acts as `role` while the application runs.

    Each of the parts runs as long as the application does: entered in order once the database is open, and
    left in reverse order before it is closed.
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
    app = create_application(
        process=process,
        title=f"Graticule {process}",
        checks=readiness_checks(readiness),
        lifespan=lifespan,
        max_body_bytes=max_body_bytes,
        health_details=health_details,
    )
    app.state.database = database
    app.state.readiness = readiness
    app.state.registry.register(PoolMetrics(database))
    return app


class PoolMetrics(Collector):
    """The connection pool as Prometheus sees it, read when it asks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterable[Metric]:
        """Give the pool's counters."""
        found = self._database.pool_statistics()
        for name, meaning in POOL_GAUGES.items():
            yield GaugeMetricFamily(f"graticule_database_{name}", meaning, value=found.get(name, 0))


def readiness_checks(service: ReadinessService) -> Mapping[str, Check]:
    """Give the checks of the database and its schema; what they raise is why they are not ok."""
    return {"database": _passing(service.database), "schema": _passing(service.schema)}


def _passing(question: Callable[[], Awaitable[dict[str, Any]]]) -> Check:
    async def check() -> CheckResult:
        return CheckResult(ok=True, detail=await question())

    return check
