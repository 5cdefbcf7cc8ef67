"""Writing the catalogue: what is written together, and in which order.

Orchestrators write for workers that do not reach the database, hence no STAC library here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graticule.core.errors import Conflict
from graticule.handlers.stac.coverage import covering
from graticule.handlers.stac.rules import check_collection, check_item, time_of
from graticule.repositories.catalogue import CatalogueRepository, Document


@dataclass(frozen=True, slots=True)
class WantedCollection:
    """A collection as it is made if it is not there, and what is said anew of one that is."""

    document: Document
    text: Document = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.document["id"])


@dataclass(frozen=True, slots=True)
class Having:
    """The items of a collection that have this value of a property."""

    name: str
    value: str


async def ensure(catalogue: CatalogueRepository, wanted: WantedCollection, room_for: datetime | None = None) -> bool:
    """Make a collection, or say of the one that is there what is new; tell whether it was made.

    With `room_for`, it can take items of that time after this.
    """
    check_collection(wanted.document, wanted.text)
    is_new = await _ensure(catalogue, wanted)
    await cover(catalogue, wanted.id)
    if room_for is not None:
        await catalogue.make_room(wanted.id, room_for, room_for)
    return is_new


async def write_item(catalogue: CatalogueRepository, wanted: WantedCollection, item: Document) -> None:
    """Write an item and its collection, in place of those that are there."""
    check_collection(wanted.document, wanted.text)
    check_item(item, wanted.id)
    at = time_of(item)
    await _ensure(catalogue, wanted)
    await catalogue.make_room(wanted.id, at, at)
    await catalogue.write_items(wanted.id, [item])
    await cover(catalogue, wanted.id)


async def replace_items(
    catalogue: CatalogueRepository, collection_id: str, items: Sequence[Document], replaced: Having | None
) -> Document:
    """Write items of a collection that has room for them, after those that they replace are gone; give it as it is."""
    for item in items:
        check_item(item, collection_id)
    if await catalogue.collection(collection_id) is None:
        raise Conflict(f"There is no collection {collection_id}.", hint="Let it be made first.")
    if replaced is not None:
        await catalogue.delete_items_having(collection_id, replaced.name, replaced.value)
    await catalogue.write_items(collection_id, items)
    return await cover(catalogue, collection_id)


async def _ensure(catalogue: CatalogueRepository, wanted: WantedCollection) -> bool:
    present = await catalogue.collection(wanted.id)
    if present is None:
        await catalogue.write_collection(wanted.document)
    elif (changed := described_anew(present, wanted.text)) != present:
        await catalogue.write_collection(changed)
    return present is None


def described_anew(present: Document, text: Document) -> Document:
    """Give a collection with those texts that are given; the rest, also what others have added, stays."""
    return {**present, **text}


async def cover(catalogue: CatalogueRepository, collection_id: str) -> Document:
    """Let a collection tell what its items cover."""
    present = await catalogue.collection(collection_id) or {}
    covered = covering(present, await catalogue.coverage(collection_id))
    if covered != present:
        await catalogue.write_collection(covered)
    return covered
