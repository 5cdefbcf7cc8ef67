"""The database of an installation: an existing server, or the embedded one, kept running."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from graticule.cli.connection import owner_url
from graticule.cli.supervisor import next_pause
from graticule.config import Settings
from graticule.core.errors import ConfigurationError, GraticuleError
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.services.bootstrap import BootstrapService

Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """Where each process reaches the database, with its own login."""

    owner: str = field(repr=False)
    orchestrator: str = field(repr=False)
    gateway: str = field(repr=False)
    worker: str = field(repr=False)
    serve: str = field(repr=False)
    place: str


@contextlib.asynccontextmanager
async def local_database(settings: Settings, home: Path, announce: Announce) -> AsyncIterator[DatabaseUrls]:
    """Give a database that is up and has our schema, for as long as the context lasts."""
    external = settings.external_database
    if external is not None:
        url = external.get_secret_value()
        owner = owner_url(settings) or url
        await _migrate(owner, announce)
        yield DatabaseUrls(owner=owner, orchestrator=url, gateway=url, worker=url, serve=url, place=str(external))
        return
    async with Cluster.of(home, preferred=settings.pg_bin, announce=announce) as cluster:
        urls = await _provision(cluster, settings.postgres_db, home, announce)
        async with _kept_running(cluster, announce):
            yield urls


async def _provision(cluster: Cluster, database: str, home: Path, announce: Announce) -> DatabaseUrls:
    await cluster.ensure_database(database)
    owner = cluster.url(ADMIN, database)
    await _migrate(owner, announce)
    await allow_logins(owner, Credentials.load(home))
    return DatabaseUrls(
        owner=cluster.url(DatabaseRole.OWNER, database),  # not the administrator's: no process needs that one
        orchestrator=cluster.url(DatabaseRole.ORCHESTRATOR, database),
        gateway=cluster.url(DatabaseRole.GATEWAY, database),
        worker=cluster.url(DatabaseRole.WORKER, database),
        serve=cluster.url(DatabaseRole.SERVE_INTERNAL, database),
        place=f"{database} on 127.0.0.1:{cluster.port}",
    )


async def _migrate(owner: str, announce: Announce) -> None:
    """Bring the schema up to date; only additions are made, so this is safe at every start."""
    report = await BootstrapService(owner, development=False).migrate()
    for notice in report.notices:
        announce(notice)
    if report.applied:
        announce(f"Made {len(report.applied)} objects of the schema in {report.database}.")
    for difference in report.differences:
        announce(f"The schema differs: {difference.object} {difference.detail}.")
    if not report.current:
        raise ConfigurationError(
            f"The schema of {report.database} cannot be brought up to date by additions alone.",
            hint="`graticule schema status` says what differs.",
        )


@contextlib.asynccontextmanager
async def _kept_running(cluster: Cluster, announce: Announce) -> AsyncIterator[None]:
    watch = asyncio.create_task(_restart_when_it_dies(cluster, announce))
    try:
        yield
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


async def _restart_when_it_dies(cluster: Cluster, announce: Announce) -> None:
    pause = 0.0
    while True:
        began = time.monotonic()
        code = await cluster.wait()
        pause = next_pause(pause, time.monotonic() - began)
        announce(f"PostgreSQL ended with code {code}; it is started again.")
        while not cluster.running:
            await asyncio.sleep(pause)
            try:
                await cluster.start()
            except (GraticuleError, OSError) as error:  # a full disk is an OSError, and may be mended
                pause = next_pause(pause, 0)
                announce(f"{error} It is tried again in {pause:.0f} s.")
