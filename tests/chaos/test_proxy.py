"""The bad network, before a real PostgreSQL."""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.chaos.proxy import Proxy, Streams
from tests.conftest import TestDatabase

INSERT = "INSERT INTO dagapp.chaos_rows VALUES (1)"


@pytest.fixture
async def proxy(own_database: TestDatabase) -> AsyncIterator[Proxy]:
    parts = conninfo_to_dict(own_database.url())

    async def connect() -> Streams:
        return await asyncio.open_unix_connection(f"{parts['host']}/.s.PGSQL.{parts['port']}")

    async with await psycopg.AsyncConnection.connect(own_database.url(), autocommit=True) as direct:
        await direct.execute("CREATE TABLE dagapp.chaos_rows (number int)")
    async with Proxy(connect) as running:
        yield running


@pytest.fixture
async def client(proxy: Proxy, own_database: TestDatabase) -> AsyncIterator[psycopg.AsyncConnection]:
    url = make_conninfo(own_database.url(), host="127.0.0.1", port=proxy.port, sslmode="disable")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


async def rows(database: TestDatabase) -> int:
    async with await psycopg.AsyncConnection.connect(database.url()) as connection:
        (found,) = await (await connection.execute("SELECT count(*) FROM dagapp.chaos_rows")).fetchone() or (0,)
        return int(found)


async def test_passes_on_what_is_said(client: psycopg.AsyncConnection, own_database: TestDatabase) -> None:
    await client.execute(INSERT)
    assert await rows(own_database) == 1
    (large,) = await (await client.execute("SELECT repeat('x', 1000000)")).fetchone() or ("",)
    assert len(large) == 1_000_000


async def test_a_statement_whose_answer_is_lost_was_executed(
    client: psycopg.AsyncConnection, proxy: Proxy, own_database: TestDatabase
) -> None:
    await client.execute("SELECT 1")
    proxy.lose_answers()
    with pytest.raises(psycopg.OperationalError):
        await client.execute(INSERT)
    assert await rows(own_database) == 1
    assert client.broken
    assert proxy.lost_answers == 1


async def test_a_transaction_loses_the_answer_to_its_commit(
    client: psycopg.AsyncConnection, proxy: Proxy, own_database: TestDatabase
) -> None:
    async def insert_twice() -> None:
        async with client.transaction():
            await client.execute(INSERT)
            await client.execute(INSERT)

    await client.execute("SELECT 1")
    proxy.lose_answers()
    with pytest.raises(psycopg.OperationalError):
        await insert_twice()
    assert await rows(own_database) == 2


async def test_cut_connections_are_reset(client: psycopg.AsyncConnection, proxy: Proxy) -> None:
    assert proxy.cut() == 1
    with pytest.raises(psycopg.OperationalError):
        await client.execute("SELECT 1")


async def test_is_slow_for_a_while(client: psycopg.AsyncConnection, proxy: Proxy) -> None:
    slow = asyncio.create_task(proxy.slow(0.15, 30))
    await asyncio.sleep(0)
    began = time.monotonic()
    await client.execute("SELECT 1")
    assert time.monotonic() - began >= 0.3  # there and back
    slow.cancel()
    await asyncio.wait({slow})
    began = time.monotonic()
    await client.execute("SELECT 1")
    assert time.monotonic() - began < 0.3


async def test_passes_nothing_on_when_it_stalls_and_resets_then(
    client: psycopg.AsyncConnection, proxy: Proxy, own_database: TestDatabase
) -> None:
    stall = asyncio.create_task(proxy.stall(0.3))
    await asyncio.sleep(0)
    with pytest.raises(psycopg.OperationalError):
        await client.execute(INSERT)
    await stall
    assert await rows(own_database) == 0


async def test_the_server_may_be_away(own_database: TestDatabase) -> None:
    async def refuse() -> Streams:
        raise ConnectionRefusedError

    async with Proxy(refuse) as proxy:
        url = make_conninfo(own_database.url(), host="127.0.0.1", port=proxy.port, sslmode="disable")
        with pytest.raises(psycopg.OperationalError):
            await psycopg.AsyncConnection.connect(url)
