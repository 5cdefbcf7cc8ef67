"""One clock for all: the database's, however wrong the machine's own is."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from tests.conftest import TestDatabase

from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database

CLOSE = timedelta(seconds=1)


@pytest.fixture
async def pool_with_wrong_clock(database: TestDatabase) -> AsyncIterator[Database]:
    with time_machine.travel(datetime.now(UTC) - timedelta(hours=5), tick=True):
        async with Database(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR) as opened:
            yield opened


async def _time_of(database: Database) -> datetime:
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT clock_timestamp() AS now")).fetchone()
        assert row is not None
        told: datetime = row["now"]
        return told


async def test_a_process_with_a_wrong_clock_tells_the_time_of_the_database(pool_with_wrong_clock: Database) -> None:
    there = await _time_of(pool_with_wrong_clock)
    assert abs(pool_with_wrong_clock.now() - there) < CLOSE
    assert abs(datetime.now(UTC) - there) > timedelta(hours=4)


async def test_a_clock_that_is_set_meanwhile_changes_nothing(pool: Database) -> None:
    assert abs(pool.now() - await _time_of(pool)) < CLOSE
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1), tick=True):
        assert abs(pool.now() - await _time_of(pool)) < CLOSE
        async with pool.connection() as connection:
            await pool.clock.set_by(connection)
        assert abs(pool.now() - await _time_of(pool)) < CLOSE
    assert abs(pool.now() - await _time_of(pool)) < CLOSE


@pytest.mark.parametrize(("way_seconds", "believed"), [(0.5, True), (1.5, False)])
async def test_an_answer_that_took_long_does_not_set_the_clock_again(
    pool: Database, monkeypatch: pytest.MonkeyPatch, way_seconds: float, believed: bool
) -> None:
    async with pool.connection() as connection:
        began, passed = pool.now(), iter([0.0, way_seconds])
        monkeypatch.setattr("graticule.repositories.clock._passed", lambda: next(passed, way_seconds))
        pool.clock._at, pool.clock._began = began - timedelta(hours=1), 0.0
        await pool.clock.set_by(connection)
        assert (pool.now() - began > timedelta(minutes=-1)) == believed


async def test_the_way_to_the_database_and_back_does_not_make_the_clock_jump(pool: Database) -> None:
    await _time_of(pool)
    set_at = pool.clock._at
    for _ in range(20):
        async with pool.connection() as connection:
            await pool.clock.set_by(connection)
    assert pool.clock._at == set_at
