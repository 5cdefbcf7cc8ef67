"""The pool of connections: which one is given out, and how soon one that broke is replaced."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool
from tests.conftest import POOL_SIZE

from graticule.core.backoff import LONGEST_SECONDS
from graticule.core.errors import Unavailable
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database, _SoonAgain


async def _pid(connection: Connection) -> int:
    row = await (await connection.execute("SELECT pg_backend_pid() AS pid")).fetchone()
    assert row is not None
    return int(row["pid"])


async def _pids(pool: Database) -> set[int]:
    """Take all connections at once, so that none is on its way any more."""
    async with AsyncExitStack() as taken:
        return {await _pid(await taken.enter_async_context(pool.connection())) for _ in range(POOL_SIZE)}


async def test_the_connection_that_was_used_last_is_given_out_next(pool: Database) -> None:
    known = await _pids(pool)
    async with pool.connection() as connection:
        last = await _pid(connection)
    assert last in known
    for _ in range(5):
        async with pool.connection() as connection:
            assert await _pid(connection) == last


async def test_a_connection_is_not_lost_when_its_user_is_cancelled_while_giving_it_back(pool: Database) -> None:
    async def use(taken: asyncio.Event, end: asyncio.Event) -> None:
        async with pool.connection():
            taken.set()
            await end.wait()

    for _ in range(POOL_SIZE):
        taken, end = asyncio.Event(), asyncio.Event()
        user = asyncio.create_task(use(taken, end))
        await taken.wait()
        async with pool._pool._lock:
            end.set()
            await asyncio.sleep(0)  # it waits for the lock now
            await asyncio.sleep(0)
            user.cancel()
            with pytest.raises(asyncio.CancelledError):
                await user
    assert len(await _pids(pool)) == POOL_SIZE


async def test_when_one_connection_broke_the_others_are_replaced_before_anyone_uses_them(
    pool: Database, admin: psycopg.AsyncConnection
) -> None:
    before = await _pids(pool)
    await admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [list(before)])
    with pytest.raises(Unavailable):
        async with pool.connection() as connection:
            await _pid(connection)
    assert before.isdisjoint(await _pids(pool))


async def test_a_server_that_is_back_after_a_long_time_is_found_within_seconds() -> None:
    attempt = _SoonAgain(timeout=3600)
    now, delays = 0.0, []
    while now < 600:
        attempt.update_delay(now)
        delays.append(attempt.delay)
        now += attempt.delay
    assert max(delays) <= LONGEST_SECONDS
    assert delays[0] < LONGEST_SECONDS / 2


async def test_the_pool_makes_its_attempts_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[object] = []
    schedule = AsyncConnectionPool.schedule_task

    async def seen(pool: Any, task: Any, delay: float) -> None:
        attempts.append(getattr(task, "attempt", None))
        await schedule(pool, task, delay)

    monkeypatch.setattr(AsyncConnectionPool, "schedule_task", seen)
    nowhere = Database("postgresql://nobody@127.0.0.1:1/nowhere", DatabaseRole.WORKER, timeout_seconds=0.5)
    async with nowhere:
        with pytest.raises(Unavailable):
            async with nowhere.connection():
                pass
    assert any(isinstance(attempt, _SoonAgain) for attempt in attempts)
