"""The STAC catalogue as handlers reach it: in the database, or by way of an orchestrator; the same is written."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from graticule.core.errors import ConfigurationError
from graticule.core.ids import JobId
from graticule.handlers.context import HandlerContext
from graticule.handlers.stac.writing import Having, WantedCollection, ensure, replace_items, write_item
from graticule.repositories.catalogue import CatalogueRepository, Document, begin_writing, reading
from graticule.repositories.database import Connection, Database
from graticule.repositories.outputs import OutputKind, require_items, require_outputs
from graticule.repositories.promotions import PrefixHold as LockedPrefix
from graticule.repositories.promotions import holding

Check = Callable[[Connection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Found:
    """An item, if there is one, and the database's time."""

    item: Document | None
    now: datetime


class PrefixHold(Protocol):
    """A prefix of the storage that nobody else holds until the end of the block."""

    @property
    def now(self) -> datetime:
        """The database's time when it was taken."""

    async def confirm(self) -> None:
        """Make sure that the prefix is still held."""

    async def item(self, collection_id: str, item_id: str) -> Document | None:
        """Give an item, or None."""

    async def require(self, collection_id: str, item_id: str) -> None:
        """Raise `OutputRefused` unless the prefix and the item are the job's to write."""

    async def write(self, wanted: WantedCollection, item: Document, check: Check | None = None) -> None:
        """Write an item and its collection, both or none of them.

        `check` refuses what must not be catalogued any more, in the transaction that writes it: only where the
        database is reached.
        """


class Catalogue(Protocol):
    """Reads and writes the catalogue for one task."""

    async def find(self, collection_id: str, item_id: str) -> Found:
        """Look for an item."""

    async def ensure(self, wanted: WantedCollection, room_for: datetime | None = None) -> bool:
        """Make a collection, or say of the one that is there what is new; tell whether it was made.

        With `room_for`, it can take items of that time after this.
        """

    async def replace_items(self, collection_id: str, items: Sequence[Document], replaced: Having) -> Document:
        """Write items in place of those that are `replaced`, and give the collection as it is then."""

    def holding(self, prefix: str) -> AbstractAsyncContextManager[PrefixHold]:
        """Wait until nobody holds the prefix, and hold it."""


class _DatabaseHold(LockedPrefix):
    """What is written is committed at the end of the block."""

    def __init__(self, connection: Connection, now: datetime, job_id: JobId, prefix: str) -> None:
        super().__init__(connection, now)
        self._job_id, self._prefix = job_id, prefix

    async def require(self, collection_id: str, item_id: str) -> None:
        """Raise `OutputRefused` unless the prefix and the item are the job's to write.

        Files may move for long after this, and decisions must not wait for that: it is checked again with the item.
        """
        async with self.connection.transaction(force_rollback=True):
            await self._require(collection_id, item_id)

    async def _require(self, collection_id: str, item_id: str) -> None:
        await require_outputs(self.connection, self._job_id, OutputKind.PREFIX, self._prefix)
        await require_items(self.connection, self._job_id, collection_id, [item_id])

    async def write(self, wanted: WantedCollection, item: Document, check: Check | None = None) -> None:
        """Write an item and its collection, both or none of them."""
        catalogue = await begin_writing(self.connection)
        await self._require(wanted.id, str(item["id"]))
        if check is not None:
            await check(self.connection)
        await write_item(catalogue, wanted, item)


class DatabaseCatalogue:
    """The catalogue in the database."""

    def __init__(self, database: Database, job_id: JobId) -> None:
        self._database, self._job_id = database, job_id

    async def find(self, collection_id: str, item_id: str) -> Found:
        """Look for an item."""
        return await find_item(self._database, collection_id, item_id)

    async def ensure(self, wanted: WantedCollection, room_for: datetime | None = None) -> bool:
        """Make a collection, or say of the one that is there what is new; tell whether it was made."""
        async with self._writing(wanted.id, []) as catalogue:
            return await ensure(catalogue, wanted, room_for)

    async def replace_items(self, collection_id: str, items: Sequence[Document], replaced: Having) -> Document:
        """Write items in place of those that are `replaced`, and give the collection as it is then."""
        async with self._writing(collection_id, items) as catalogue:
            return await replace_items(catalogue, collection_id, items, replaced)

    @asynccontextmanager
    async def holding(self, prefix: str) -> AsyncIterator[PrefixHold]:
        """Wait until nobody holds the prefix, and hold it."""
        async with holding(self._database, prefix) as hold:
            yield _DatabaseHold(hold.connection, hold.now, self._job_id, prefix)

    @asynccontextmanager
    async def _writing(self, collection_id: str, items: Sequence[Document]) -> AsyncIterator[CatalogueRepository]:
        async with self._database.connection() as connection, connection.transaction():
            catalogue = await begin_writing(connection)
            await require_items(connection, self._job_id, collection_id, [str(item["id"]) for item in items])
            yield catalogue


async def find_item(database: Database, collection_id: str, item_id: str) -> Found:
    """Look for an item in the database."""
    async with reading(database) as catalogue:
        return Found(await catalogue.item(collection_id, item_id), database.now())


def catalogue_of(ctx: HandlerContext) -> Catalogue:
    """Give the catalogue by the way that the worker has: an orchestrator, or the database."""
    if ctx.catalogue is not None:
        return ctx.catalogue
    if ctx.database is None:
        raise ConfigurationError(
            "This worker has no way to the catalogue.",
            hint="Set GRATICULE_DATABASE_URL, or GRATICULE_DAG_CALLBACK_URL with GRATICULE_WORKER_TOKEN.",
        )
    return DatabaseCatalogue(ctx.database, ctx.job_id)
