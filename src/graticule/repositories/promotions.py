"""Holding a prefix of the storage, so that one registration at a time puts files there and catalogues them."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES = load_queries("promotions.sql")
SILENT_SECONDS: Final = 1.0  # far less than the minute after which a silent session ends


class PrefixHold:
    """A prefix that nobody else holds until this transaction ends."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection = connection
        self.now = now
        self._heard_at = time.monotonic()

    async def confirm(self) -> None:
        """Make sure that the prefix is still held, and that the server hears of us."""
        if time.monotonic() - self._heard_at >= SILENT_SECONDS:
            with domain_errors("hold the prefix"):
                await self.connection.execute(QUERIES["is_held"])
            self._heard_at = time.monotonic()

    async def item(self, collection_id: str, item_id: str) -> dict[str, Any] | None:
        """Give an item, or None.

        What was locked to read it is free again after that: whoever makes a collection waits for all who read items.
        """
        parameters = {"collection_id": collection_id, "item_id": item_id}
        with domain_errors("find the item"):
            async with self.connection.transaction(force_rollback=True):
                row = await (await self.connection.execute(QUERIES["find_promoted_item"], parameters)).fetchone()
        self._heard_at = time.monotonic()
        return row and row["content"]


@asynccontextmanager
async def holding(database: Database, prefix: str) -> AsyncIterator[PrefixHold]:
    """Wait until nobody holds the prefix, and hold it; what is written on its connection is committed at the end."""
    async with database.connection() as connection, connection.transaction():
        with domain_errors("hold the prefix"):
            await connection.execute(QUERIES["hold_prefix"], {"prefix": prefix})
            row = await (await connection.execute(QUERIES["time_of_holding"])).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        yield PrefixHold(connection, row["now"])
