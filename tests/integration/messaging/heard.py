"""Hears what statements notify."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import sql
from tests.conftest import TestDatabase


class Ear:
    """A connection that listens."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def so_far(self) -> list[tuple[str, str]]:
        """Give what was notified until now."""
        return [(each.channel, each.payload) async for each in self._connection.notifies(timeout=0.2)]


@asynccontextmanager
async def ear(database: TestDatabase, *channels: str) -> AsyncIterator[Ear]:
    async with await psycopg.AsyncConnection.connect(database.url(), autocommit=True) as connection:
        for channel in channels:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        yield Ear(connection)
