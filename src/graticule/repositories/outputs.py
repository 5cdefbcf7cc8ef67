"""Who may write which output: the database checks it in the transaction that writes."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from graticule.core.ids import JobId
from graticule.repositories.database import Connection
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("outputs.sql")


class OutputKind(StrEnum):
    """What an output is, in the words of the database's rule; an item's name is `collection/item`."""

    TABLE = "table"
    PREFIX = "prefix"
    COLLECTION = "collection"
    ITEM = "item"


async def require_outputs(connection: Connection, job_id: JobId, kind: OutputKind, *names: str) -> None:
    """Raise `OutputRefused` unless all of these are the job's to write; they stay so until the transaction ends."""
    with domain_errors("check the outputs of the job"):
        parameters = {"job_id": job_id, "kind": kind.value, "names": list(names)}
        await connection.execute(QUERIES["require_outputs"], parameters)


async def require_items(connection: Connection, job_id: JobId, collection_id: str, item_ids: Iterable[str]) -> None:
    """Raise `OutputRefused` unless the collection and these items of it are the job's to write."""
    await require_outputs(connection, job_id, OutputKind.COLLECTION, collection_id)
    await require_outputs(connection, job_id, OutputKind.ITEM, *(f"{collection_id}/{each}" for each in item_ids))
