"""Copies for the public: one holder at a time makes or removes those of a version, while a decision asks for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from psycopg.types.json import Jsonb

from graticule.core.errors import Conflict
from graticule.core.ids import JobId
from graticule.core.models.engine import JobPurpose
from graticule.repositories.catalogue import CatalogueRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES = load_queries("publications.sql")
HOLDERS: Final = 3  # of a process at once: each keeps a connection for as long as it copies
ASK_AGAIN_SECONDS: Final = 0.2
Pause = Callable[[float], Awaitable[None]]

_holders: WeakKeyDictionary[Database, asyncio.Semaphore] = WeakKeyDictionary()


class Unwanted(Conflict):
    """No decision asks for what the job does, or not any more."""

    code = "job_superseded"


@dataclass(frozen=True, slots=True)
class Deed:
    """What a job does to the copies of a version."""

    job_id: JobId
    purpose: JobPurpose
    asset_id: str
    version_ordinal: int

    @property
    def version(self) -> dict[str, Any]:
        """The version, as parameters of a query."""
        return {"asset_id": self.asset_id, "version_ordinal": self.version_ordinal}


class PublicationHold:
    """The copies of a version, which nobody else touches until this transaction ends."""

    def __init__(self, connection: Connection, deed: Deed, now: datetime) -> None:
        self.connection = connection
        self.deed = deed
        self.now = now

    async def confirm(self) -> None:
        """Make sure that the version is still held, and that what is done to it is still wanted."""
        parameters = {**self.deed.version, "job_id": self.deed.job_id, "purpose": self.deed.purpose.value}
        (row,) = await self._asked("why_unwanted", parameters)
        if row["reason"]:
            raise Unwanted(f"The job must not go on: {row['reason']}.")

    async def names_its_outputs(self, outputs: Mapping[str, Any]) -> bool:
        """Return whether these outputs are those that the decision behind the job named."""
        parameters = {"job_id": self.deed.job_id, "outputs": Jsonb(dict(outputs))}
        return any(row["is_named"] for row in await self._asked("names_its_outputs", parameters))

    async def runs(self) -> list[str]:
        """Give the runs in Azure Data Factory of exports of the version that did not complete."""
        return [row["run_id"] for row in await self._asked("runs_of_exports", self.deed.version)]

    async def item(self, collection_id: str, item_id: str) -> dict[str, Any] | None:
        """Give an item of the catalogue, or None."""
        (row,) = await self._asked("find_original", {"collection_id": collection_id, "item_id": item_id})
        found: dict[str, Any] | None = row["content"]
        return found

    async def is_intact(self, collection_id: str, item_id: str) -> bool:
        """Return whether an item is the one that the job of the revision registered, as far as that is known."""
        parameters = {"job_id": self.deed.job_id, "collection_id": collection_id, "item_id": item_id}
        (row,) = await self._asked("is_original_intact", parameters)
        return bool(row["intact"])

    async def _asked(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Ask, and let what was locked for that be free again: a hold lasts long, and others change tables."""
        with domain_errors(query.replace("_", " ")):
            async with self.connection.transaction(force_rollback=True):
                return await (await self.connection.execute(QUERIES[query], parameters)).fetchall()


@asynccontextmanager
async def holding(database: Database, deed: Deed, pause: Pause) -> AsyncIterator[PublicationHold]:
    """Wait until nobody holds the version, and hold it; what is written on its connection is committed at the end.

    Whoever waits keeps no connection; `pause` waits a moment, or raises when nobody waits for the task any more.
    """
    async with AsyncExitStack() as stack:
        holders = _holders.setdefault(database, asyncio.Semaphore(HOLDERS))
        while holders.locked():
            await pause(ASK_AGAIN_SECONDS)
        await stack.enter_async_context(holders)
        while (held := await _tried(database, deed, stack)) is None:
            await pause(ASK_AGAIN_SECONDS)
        await held.confirm()
        yield held


async def _tried(database: Database, deed: Deed, stack: AsyncExitStack) -> PublicationHold | None:
    async with AsyncExitStack() as attempt:
        connection = await attempt.enter_async_context(database.connection())
        await attempt.enter_async_context(connection.transaction())
        with domain_errors("hold the copies"):
            row = await (await connection.execute(QUERIES["hold_version"], deed.version)).fetchone() or {}
            if not row.get("is_held"):
                return None
            now = await (await connection.execute(QUERIES["time_of_holding"])).fetchone() or {}
        await stack.enter_async_context(attempt.pop_all())
        return PublicationHold(connection, deed, now["now"])
    return None


class PublicTables:
    """Copies of tables of features, on a connection whose transaction belongs to the caller."""

    def __init__(self, connection: Connection, deed: Deed) -> None:
        self._connection = connection
        self._deed = deed

    async def copy(self, name: str) -> int:
        """Copy a table in place of the copy that has its name, and return the bytes; one that is up to date is kept."""
        row = await self._row("make_copy", job_id=self._deed.job_id, name=name) or {}
        return int(row["size"])

    async def names(self, *, but: int | None = None) -> list[str]:
        """Name the copies of the version, of all revisions or of all but one."""
        with domain_errors("find the copies of tables"):
            cursor = await self._connection.execute(QUERIES["copies_of_version"], {**self._deed.version, "but": but})
            return [row["name"] for row in await cursor.fetchall()]

    async def drop(self, names: Sequence[str]) -> None:
        """Drop copies, with their prepared tiles."""
        for name in names:
            await self._row("drop_copy", job_id=self._deed.job_id, name=name)

    async def _row(self, query: str, **parameters: Any) -> dict[str, Any] | None:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(QUERIES[query], parameters)).fetchone()


class PublishedItems:
    """Items of a version in the catalogue, on a connection whose transaction belongs to the caller."""

    def __init__(self, connection: Connection, deed: Deed) -> None:
        self._connection = connection
        self._deed = deed

    async def collections(self, names: Sequence[str], *, with_tiles: bool = False) -> list[str]:
        """Give those of these collections that are there, and with them those of their tiles."""
        parameters = {"collection_ids": list(names), "with_tiles": with_tiles}
        return [row["id"] for row in await self._rows("collections_of", parameters)]

    async def ids(
        self, collections: Sequence[str], item_id: str | None = None, *, but: int | None = None
    ) -> dict[str, list[str]]:
        """Give the items of the version by their collections, of all revisions or of all but one.

        With them comes the item that is named.
        """
        parameters = {**self._deed.version, "collection_ids": list(collections), "item_id": item_id, "but": but}
        found: dict[str, list[str]] = {}
        for row in await self._rows("items_of_version", parameters):
            found.setdefault(row["collection"], []).append(row["id"])
        return found

    async def delete(self, items: dict[str, list[str]]) -> int:
        """Delete items, and tell how many there were."""
        catalogue = CatalogueRepository(self._connection)
        return sum([await catalogue.delete_items(collection, ids) for collection, ids in items.items()])

    async def delete_empty(self, collection_id: str) -> None:
        """Delete a collection if it has no items; whoever calls this keeps others from writing some."""
        if await self._rows("collection_to_delete", {"collection_id": collection_id}):
            await self._rows("delete_collection", {"collection_id": collection_id})

    async def _rows(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(QUERIES[query], parameters)).fetchall()
