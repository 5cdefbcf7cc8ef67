"""What an address leads to is remembered, and forgotten as soon as a change of it is announced."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows

from graticule.core.audience import Audience
from graticule.core.errors import Gone, NotFound
from graticule.core.models.platform import UrlMode
from graticule.core.states import ApprovalState, ProcessingState
from graticule.core.table import DatabaseRole
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.serve.resolution import CACHE_SECONDS, Resolver

APPROVED: dict[str, Any] = {
    "approval_state": ApprovalState.APPROVED,
    "reviewer": "rita",
    "reviewed_at": rows.NOW,
    "approved_revision": 1,
    "processing_state": ProcessingState.COMPLETED,
    "blob_path": "silver/a/v0/r1/cog.tif",
}
REVOKE = """
    UPDATE dagapp.asset_versions
    SET approval_state = 'rejected', approved_revision = NULL, revoked_at = now(), rejection_reason = 'wrong'
"""
ANNOUNCE = "SELECT pg_notify('graticule_assets', %s)"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CountingDatabase(Database):
    """A pool that counts how often it was asked for a connection, and can keep its users waiting."""

    def __init__(self, url: str, role: DatabaseRole) -> None:
        super().__init__(url, role, pool_size=2)
        self.asked = 0
        self.hold: asyncio.Event | None = None
        self.read = asyncio.Event()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        self.asked += 1
        async with super().connection() as opened:
            yield opened
        self.read.set()
        if self.hold is not None:
            await self.hold.wait()


@pytest.fixture
async def served(connection: Connection) -> None:
    await AssetRepository(connection).insert(
        rows.asset(url_mode=UrlMode.ALL_VERSIONS, latest_approved_version_ordinal=0)
    )
    await AssetVersionRepository(connection).insert(rows.version(**APPROVED))


@pytest.fixture
async def reading(database: TestDatabase) -> AsyncIterator[CountingDatabase]:
    url = database.url(DatabaseRole.SERVE_INTERNAL)
    counting = CountingDatabase(url, DatabaseRole.SERVE_INTERNAL)
    async with counting:
        yield counting


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def resolver(database: TestDatabase, reading: CountingDatabase, clock: Clock) -> AsyncIterator[Resolver]:
    made = Resolver(reading, Audience.INTERNAL, clock=clock)
    async with made.told_of_changes(database.url(DatabaseRole.SERVE_INTERNAL)):
        await until(lambda: made._is_told)
        yield made


async def until(holds: Any) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is awaited has no event of its own
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("served")
async def test_a_burst_of_requests_costs_one_query_and_later_ones_none(
    resolver: Resolver, reading: CountingDatabase
) -> None:
    found = await asyncio.gather(*(resolver.served(rows.ASSET, None) for _ in range(50)))
    assert {each.blob_path for each in found} == {"silver/a/v0/r1/cog.tif"}
    await resolver.served(rows.ASSET, None)
    assert reading.asked == 1


@pytest.mark.usefixtures("served")
async def test_what_is_remembered_holds_for_seconds_only(
    resolver: Resolver, reading: CountingDatabase, clock: Clock
) -> None:
    await resolver.served(rows.ASSET, 0)
    clock.now += CACHE_SECONDS
    await resolver.served(rows.ASSET, 0)
    assert reading.asked == 2


@pytest.mark.usefixtures("served")
async def test_a_change_that_is_announced_takes_effect_within_a_second(
    resolver: Resolver, admin: psycopg.AsyncConnection
) -> None:
    await resolver.served(rows.ASSET, None)
    async with admin.transaction():
        await admin.execute(REVOKE)
        await admin.execute(ANNOUNCE, [rows.ASSET])
    async with asyncio.timeout(1):
        while True:
            try:
                await resolver.served(rows.ASSET, None)
            except Gone:
                break
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("served")
async def test_the_change_of_another_asset_forgets_nothing_and_that_of_all_everything(
    resolver: Resolver, reading: CountingDatabase, admin: psycopg.AsyncConnection
) -> None:
    await resolver.served(rows.ASSET, None)
    await admin.execute(ANNOUNCE, ["f" * 32])
    await admin.execute(ANNOUNCE, [""])
    await until(lambda: not resolver._known)
    await resolver.served(rows.ASSET, None)
    assert reading.asked == 2


@pytest.mark.usefixtures("served")
async def test_what_was_read_before_a_change_is_not_remembered_after_it(
    resolver: Resolver, reading: CountingDatabase, admin: psycopg.AsyncConnection
) -> None:
    """The row was read, then the change was announced, and only then the reader went on."""
    reading.hold = asyncio.Event()
    asked = asyncio.create_task(resolver.served(rows.ASSET, None))
    await reading.read.wait()
    await admin.execute(REVOKE)
    await admin.execute(ANNOUNCE, [rows.ASSET])
    await until(lambda: not resolver._searches)
    reading.hold.set()
    await asked
    with pytest.raises(Gone):
        await resolver.served(rows.ASSET, None)


async def test_what_is_not_there_is_not_remembered(
    resolver: Resolver, connection: Connection, reading: CountingDatabase
) -> None:
    with pytest.raises(NotFound):
        await resolver.served(rows.ASSET, None)
    await AssetRepository(connection).insert(rows.asset())
    await AssetVersionRepository(connection).insert(rows.version(**APPROVED))
    assert (await resolver.served(rows.ASSET, None)).version_ordinal == 0  # and nobody had to announce it


@pytest.mark.usefixtures("served")
async def test_without_somebody_who_tells_of_changes_nothing_is_remembered(
    resolver: Resolver, reading: CountingDatabase, admin: psycopg.AsyncConnection
) -> None:
    await resolver.served(rows.ASSET, None)
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'graticule-serve-listener' AND datname = current_database()"
    )
    await until(lambda: not resolver._known)
    await until(lambda: resolver._is_told)  # it listens again
    await resolver.served(rows.ASSET, None)
    assert reading.asked == 2
