"""The STAC catalogue: collections and items as JSON documents, which pgstac keeps."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.types.json import Jsonb
from pypgstac.hydration import dehydrate

from graticule.core import json_codec
from graticule.repositories.database import Connection, Database
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES = load_queries("catalogue.sql")
BASE_ITEM: Final = "pgstac:base_item"
COLUMNS: Final = ("id", "geometry", "collection")  # what a row has beside its content
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the items of a collection cover: their box, also with longitudes from 0 to 360; times; projections."""

    box: list[float]
    shifted_box: list[float]
    start: datetime
    end: datetime
    projections: list[str]


class CatalogueRepository:
    """Reads and writes the catalogue on a connection whose transaction belongs to the caller."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def collection(self, collection_id: str) -> Document | None:
        """Give a collection, or None."""
        row = await self._row("find_collection", collection_id=collection_id)
        return row and row["content"]

    async def write_collection(self, content: Document) -> None:
        """Write a collection, in place of the one with its id."""
        await self._row("write_collection", content=Jsonb(content))

    async def coverage(self, collection_id: str) -> Coverage | None:
        """Tell what the items of a collection cover; None when there are none."""
        row = await self._row("coverage_of_collection", collection_id=collection_id)
        return None if row is None else Coverage(**row)

    async def item(self, collection_id: str, item_id: str) -> Document | None:
        """Give an item, or None."""
        row = await self._row("find_item", collection_id=collection_id, item_id=item_id)
        return row and row["content"]

    async def hash_item(self, collection_id: str, item_id: str) -> str | None:
        """Return the hash of an item, or None when there is none."""
        row = await self._row("hash_item", collection_id=collection_id, item_id=item_id)
        found: str | None = row["hash"] if row else None
        return found

    async def make_room(self, collection_id: str, first: datetime, last: datetime) -> None:
        """Let a collection that is there take items of these times.

        Until the end of the transaction nobody can read any items, so there is nothing to be done in it after this
        that takes long.
        """
        await self._row("make_room_for_items", collection_id=collection_id, first=first, last=last)

    async def write_items(self, collection_id: str, items: Sequence[Document]) -> None:
        """Write items of a collection that has room for them, in place of those with their ids."""
        await self.delete_items(collection_id, [item["id"] for item in items])
        base = await self._row("base_of_items", collection_id=collection_id) or {}
        rows = await asyncio.to_thread(_rows, items, base)  # of many, that takes a while
        await self._execute("insert_items", collection_id=collection_id, rows=rows)

    async def delete_items(self, collection_id: str, item_ids: Sequence[str]) -> int:
        """Remove items, and tell how many there were."""
        return await self._execute("delete_items", collection_id=collection_id, item_ids=list(item_ids))

    async def delete_items_having(self, collection_id: str, name: str, value: str) -> int:
        """Remove the items that have this value of a property, and tell how many there were."""
        return await self._execute("delete_items_having", collection_id=collection_id, property=name, value=value)

    async def _row(self, query: str, **parameters: Any) -> dict[str, Any] | None:
        with domain_errors(query.replace("_", " ")):
            return await (await self._connection.execute(QUERIES[query], parameters)).fetchone()

    async def _execute(self, query: str, **parameters: Any) -> int:
        with domain_errors(query.replace("_", " ")):
            return (await self._connection.execute(QUERIES[query], parameters)).rowcount


def _rows(items: Sequence[Document], base: Document) -> str:
    return json_codec.encode([_row(item, base) for item in items]).decode()


def _row(item: Document, base: Document) -> Document:
    """Give the row of an item: what its collection says of all items is left out of its content."""
    content = {name: value for name, value in dehydrate(base["base_item"], item).items() if name not in COLUMNS}
    if base["base_item_id"] is not None:
        content[BASE_ITEM] = base["base_item_id"]
    return {
        "id": item["id"],
        "geometry": item["geometry"],
        "datetime": item["properties"]["datetime"],
        "content": content,
    }


@asynccontextmanager
async def writing(database: Database) -> AsyncIterator[CatalogueRepository]:
    """Give the catalogue inside a transaction, to one writer at a time: all that is written stays, or nothing."""
    async with database.connection() as connection, connection.transaction():
        yield await begin_writing(connection)


async def begin_writing(connection: Connection) -> CatalogueRepository:
    """Give the catalogue in a transaction that is under way; until its end there is no other writer."""
    with domain_errors("write to the catalogue"):
        await connection.execute(QUERIES["begin_writing"])
    return CatalogueRepository(connection)


@asynccontextmanager
async def reading(database: Database) -> AsyncIterator[CatalogueRepository]:
    """Give the catalogue to read from."""
    async with database.connection() as connection:
        yield CatalogueRepository(connection)
