"""The STAC catalogue for workers that do not reach the database; by the same rules as for those that do.

What is written counts only if the task that asks for it is still its worker's when it is committed.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Final, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from graticule.core.errors import Conflict, OutputRefused
from graticule.core.fault_points import Commit
from graticule.core.models.fields import JsonObject, TaskKey, WorkerKey
from graticule.handlers.catalogue import find_item
from graticule.handlers.outputs.staging import checked_prefix
from graticule.handlers.stac.rules import LONGEST_ID, LONGEST_ITEM_ID
from graticule.handlers.stac.writing import Having, WantedCollection, ensure, replace_items, write_item
from graticule.repositories.catalogue import CatalogueRepository, begin_writing
from graticule.repositories.database import Connection, Database
from graticule.repositories.outputs import OutputKind, require_items, require_outputs
from graticule.repositories.promotions import HeldPrefixRepository, PrefixHolder
from graticule.repositories.reports import Reporter, ReportRepository
from graticule.repositories.tasks import Delivery
from graticule.services.results import DeliveryCount

MOST_ITEMS: Final = 500  # in one request
HOLD_SECONDS: Final = 60.0  # as long as a session of the database may be silent that holds a prefix

CollectionId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
ItemId = Annotated[str, Field(min_length=1, max_length=LONGEST_ITEM_ID)]


class OfTask(BaseModel):
    """The task for which something is done, and who holds it in which delivery."""

    model_config = ConfigDict(frozen=True)

    task_id: TaskKey = Field(examples=["01a1e0340e647089aacb762008f1f8db_register_0"])
    worker_id: WorkerKey
    delivery_count: DeliveryCount


class CollectionWanted(BaseModel):
    """A collection as it is made if it is not there, and what is said anew of one that is."""

    model_config = ConfigDict(frozen=True)

    document: JsonObject
    text: JsonObject = Field(default_factory=dict, description="Of title, description, license and keywords.")

    @property
    def id(self) -> str:
        """Its id; empty when the document, which is not checked yet, has none."""
        return str(self.document.get("id", ""))

    @property
    def wanted(self) -> WantedCollection:
        """Give it as the catalogue's writer takes it."""
        return WantedCollection(self.document, self.text)


class EnsureCollection(OfTask):
    """A collection that is to be there."""

    collection: CollectionWanted
    room_for: AwareDatetime | None = Field(None, description="It is to take items of this time.")


class Ensured(BaseModel):
    """What became of a collection."""

    created: bool


class ItemsHaving(BaseModel):
    """The items of a collection that have this value of a property."""

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=255)]
    value: Annotated[str, Field(max_length=1024)]


class WriteItems(OfTask):
    """Items of a collection that has room for them."""

    collection_id: CollectionId
    items: list[JsonObject] = Field(min_length=1, max_length=MOST_ITEMS)
    replaces: ItemsHaving | None = Field(None, description="What is removed before these are written.")


class WrittenItems(BaseModel):
    """The collection of items that were written."""

    collection: JsonObject


class OfPrefix(OfTask):
    """A prefix of the storage."""

    prefix: Annotated[str, Field(min_length=1, max_length=1024)]
    hold_id: Annotated[str, Field(min_length=16, max_length=64)] = Field(
        description="Names this hold and no other: what is asked for one that is over is refused."
    )

    @property
    def holder(self) -> PrefixHolder:
        """Give who is to hold it; `InvalidInput` when it leads elsewhere."""
        delivery = Delivery(self.task_id, self.delivery_count)
        return PrefixHolder(checked_prefix(self.prefix), self.hold_id, self.worker_id, delivery)


class HoldPrefix(OfPrefix):
    """A prefix that a task is to hold alone."""

    renews: bool = Field(False, description="Only go on holding it: False again when its time was over.")
    collection_id: CollectionId | None = Field(None, description="Checked with the prefix: the job must own both.")
    item_id: ItemId | None = Field(None, description="Of that collection, checked likewise.")


class PrefixAnswer(BaseModel):
    """Whether a task holds a prefix, and since when; if not, another one does, and it may be asked for again."""

    held: bool
    now: datetime | None = None


class RegisterItem(OfPrefix):
    """An item whose files stand below a prefix that the task holds."""

    collection: CollectionWanted
    item: JsonObject


class FoundItem(BaseModel):
    """An item, if there is one, and the database's time."""

    item: JsonObject | None
    now: datetime


class CatalogueService:
    """Writes the catalogue for tasks."""

    def __init__(self, database: Database, hold_seconds: float = HOLD_SECONDS) -> None:
        self._database = database
        self._hold_seconds = hold_seconds

    async def find(self, collection_id: str, item_id: str) -> FoundItem:
        """Look for an item."""
        found = await find_item(self._database, collection_id, item_id)
        return FoundItem(item=found.item, now=found.now)

    async def ensure(self, asked: EnsureCollection) -> Ensured:
        """Let there be a collection."""
        async with self._writing(asked, asked.collection.id) as (_, catalogue):
            return Ensured(created=await ensure(catalogue, asked.collection.wanted, asked.room_for))

    async def write_items(self, asked: WriteItems) -> WrittenItems:
        """Write items, in place of those with their ids and of those that they replace."""
        replaced = None if asked.replaces is None else Having(asked.replaces.name, asked.replaces.value)
        item_ids = [str(item.get("id")) for item in asked.items]
        async with self._writing(asked, asked.collection_id, item_ids) as (_, catalogue):
            written = await replace_items(catalogue, asked.collection_id, asked.items, replaced)
        return WrittenItems(collection=cast("JsonObject", written))

    async def hold(self, asked: HoldPrefix) -> PrefixAnswer:
        """Hold a prefix for a task, or go on doing so; `Conflict` when the task is not the worker's."""
        holder = asked.holder
        async with self._database.transaction(Commit.REPORT) as connection:
            if asked.collection_id is not None and asked.item_id is not None:
                await self._require(connection, asked, asked.collection_id, [asked.item_id], holder.prefix)
            prefixes = HeldPrefixRepository(connection)
            now = await prefixes.hold_longer(holder, self._hold_seconds)
            if now is None and not asked.renews:
                if not await prefixes.is_of_job(holder):
                    raise OutputRefused(
                        f"The task {asked.task_id} may not hold the prefix {asked.prefix!r}: it is not one of its job.",
                        hint="A job holds its blob_prefix, and one that is submitted directly any below direct/.",
                    )
                now = await prefixes.hold(holder, self._hold_seconds)
            if now is None and not await prefixes.is_of_worker(holder):
                raise _lost(asked)
        return PrefixAnswer(held=now is not None, now=now)

    async def release(self, asked: OfPrefix) -> None:
        """Let others have a prefix."""
        async with self._database.committing(Commit.REPORT) as connection:
            await HeldPrefixRepository(connection).release(asked.holder)

    async def register(self, asked: RegisterItem) -> None:
        """Write an item and its collection, if the task still holds the prefix of its files."""
        holder = asked.holder
        item_ids = [str(asked.item.get("id"))]
        async with self._writing(asked, asked.collection.id, item_ids, holder.prefix) as (connection, catalogue):
            await write_item(catalogue, asked.collection.wanted, asked.item)
            if await HeldPrefixRepository(connection).hold_longer(holder, self._hold_seconds) is None:
                raise Conflict(f"The task {asked.task_id} does not hold the prefix {asked.prefix!r} any more.")

    @asynccontextmanager
    async def _writing(
        self, asked: OfTask, collection_id: str, item_ids: Sequence[str] = (), prefix: str | None = None
    ) -> AsyncIterator[tuple[Connection, CatalogueRepository]]:
        async with self._database.transaction(Commit.REPORT) as connection:
            catalogue = await begin_writing(connection)
            await self._require(connection, asked, collection_id, item_ids, prefix)
            yield connection, catalogue
            reporter = Reporter(asked.task_id, asked.worker_id, asked.delivery_count)
            if not await ReportRepository(connection).hold_lease(reporter):
                raise _lost(asked)

    async def _require(
        self, connection: Connection, asked: OfTask, collection_id: str, item_ids: Sequence[str], prefix: str | None
    ) -> None:
        """Raise `OutputRefused` unless all of these are the outputs of the task's job."""
        job_id = await ReportRepository(connection).job_of_task(asked.task_id)
        if job_id is None:
            raise _lost(asked)
        if prefix is not None:
            await require_outputs(connection, job_id, OutputKind.PREFIX, prefix)
        await require_items(connection, job_id, collection_id, item_ids)


def _lost(asked: OfTask) -> Conflict:
    return Conflict(f"The task {asked.task_id} is no longer the worker's.")
