"""Holding a prefix of the storage, so that one registration at a time puts files there and catalogues them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from graticule.core.ids import WorkerId
from graticule.core.models import HeldPrefix
from graticule.repositories.base import Parameters, Repository
from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries
from graticule.repositories.tasks import Delivery

QUERIES = load_queries("promotions.sql")
SILENT_SECONDS: Final = 1.0  # far less than the minute after which a silent session ends
_BETWEEN_LOOKS_SECONDS: Final = 0.5


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
            now = await _time_of_holding(connection, prefix)
        yield PrefixHold(connection, now)


async def _time_of_holding(connection: Connection, prefix: str) -> datetime:
    """Tell since when the prefix is held: it may take a while until a task on another worker is done with it."""
    while True:
        row = await (await connection.execute(QUERIES["time_of_holding"], {"prefix": prefix})).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        if not row["is_a_tasks"]:
            now: datetime = row["now"]
            return now
        await asyncio.sleep(_BETWEEN_LOOKS_SECONDS)


@dataclass(frozen=True, slots=True)
class PrefixHolder:
    """A task on a worker that does not reach the database, and the prefix that it wants for itself."""

    prefix: str
    hold_id: str
    worker_id: WorkerId
    delivery: Delivery

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Give it as statements take it."""
        named = {"task_id": self.delivery.task_id, "delivery_count": self.delivery.delivery_count}
        return {"prefix": self.prefix, "hold_id": self.hold_id, "worker_id": self.worker_id, **named, **more}


class HeldPrefixRepository(Repository[HeldPrefix]):
    """Holds prefixes for tasks."""

    model = HeldPrefix
    subject: ClassVar = "held prefix"
    queries: ClassVar = QUERIES

    async def is_of_worker(self, holder: PrefixHolder) -> bool:
        """Tell whether the task is in these hands, also if nobody waits for it any more."""
        return await self._row("is_of_worker", holder.parameters()) is not None

    async def is_of_job(self, holder: PrefixHolder) -> bool:
        """Whether the prefix is one of the job of the task, which may have ended."""
        return await self._row("is_prefix_of_job", holder.parameters()) is not None

    async def hold(self, holder: PrefixHolder, seconds: float) -> datetime | None:
        """Hold the prefix, and tell since when; None when another one holds it, or the task is not in these hands."""
        free = await self._row("try_to_hold_prefix", holder.parameters())
        if free is None or not free["is_free"]:
            return None
        return _time(await self._row("hold_for_task", holder.parameters(seconds=seconds)))

    async def hold_longer(self, holder: PrefixHolder, seconds: float) -> datetime | None:
        """Go on holding the prefix; None when it was not held, or its time was over."""
        return _time(await self._row("hold_longer", holder.parameters(seconds=seconds)))

    async def release(self, holder: PrefixHolder) -> None:
        """Hold the prefix no longer."""
        await self._execute("release_prefix", holder.parameters())

    async def _row(self, query: str, parameters: Parameters) -> dict[str, Any] | None:
        with domain_errors("hold the prefix"):
            return await (await self._connection.execute(self.queries[query], parameters)).fetchone()


def _time(row: dict[str, Any] | None) -> datetime | None:
    return None if row is None else row["now"]
