"""The STAC catalogue by HTTP, for the handlers of a worker that does not reach the database."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

import orjson

from graticule.core import json_codec
from graticule.core.backoff import Backoff
from graticule.core.errors import ConfigurationError, Conflict, GraticuleError
from graticule.handlers.catalogue import Check, Found, PrefixHold
from graticule.handlers.stac.writing import Having, WantedCollection
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.catalogue import Document
from graticule.worker.callbacks.client import CallbackClient, patiently

CONFIRM_SECONDS: Final = 5.0  # far less than the minute for which a prefix is held
MOST_ITEMS: Final = 500  # in one request
MOST_BYTES: Final = 4 * 1024 * 1024  # about; an orchestrator takes 10 MiB

_log = get_logger(__name__)


class HttpCatalogue:
    """The catalogue for one task; what is written counts only while the task is this worker's."""

    def __init__(self, client: CallbackClient, message: TaskMessage) -> None:
        self._client = client
        self._subject = client.subject(message)

    async def find(self, collection_id: str, item_id: str) -> Found:
        """Look for an item."""
        return await _find(self._client, collection_id, item_id)

    async def ensure(self, wanted: WantedCollection, room_for: datetime | None = None) -> bool:
        """Make a collection, or say of the one that is there what is new; tell whether it was made."""
        room = None if room_for is None else room_for.isoformat()
        answer = await self._ask("collection", {"collection": _told(wanted), "room_for": room})
        return bool(answer["created"])

    async def replace_items(self, collection_id: str, items: Sequence[Document], replaced: Having) -> Document:
        """Write items in place of those that are `replaced`, and give the collection as it is then.

        Many go in several requests. An attempt that ends between them leaves a part, which the next one replaces.
        """
        collection: Document = {}
        gone: dict[str, str] | None = {"name": replaced.name, "value": replaced.value}
        for part in _parts(items):
            answer = await self._ask("items", {"collection_id": collection_id, "items": part, "replaces": gone})
            collection, gone = answer["collection"], None
        return collection

    @asynccontextmanager
    async def holding(self, prefix: str) -> AsyncIterator[PrefixHold]:
        """Wait until nobody holds the prefix, and hold it; what is written meanwhile stays."""
        hold = _HttpHold(self._client, {**self._subject, "prefix": prefix, "hold_id": uuid4().hex})
        try:
            await hold.take()
            yield hold
        finally:
            await asyncio.shield(hold.release())

    async def _ask(self, path: str, content: dict[str, Any]) -> Any:
        return await patiently(lambda: self._client.ask(f"catalogue/{path}", {**self._subject, **content}))


class _HttpHold:
    """A prefix that an orchestrator holds for the task."""

    def __init__(self, client: CallbackClient, subject: dict[str, Any]) -> None:
        self._client = client
        self._subject = subject

    async def take(self) -> None:
        """Wait until nobody holds the prefix, and hold it."""
        backoff = Backoff()
        answer = await self._ask("prefix", {})
        while not answer["held"]:
            await asyncio.sleep(backoff.next())
            answer = await self._ask("prefix", {})
        self.now = datetime.fromisoformat(answer["now"])
        self._heard_at = time.monotonic()

    async def confirm(self) -> None:
        """Make sure that the prefix is still held."""
        if time.monotonic() - self._heard_at >= CONFIRM_SECONDS:
            await self._renew()

    async def item(self, collection_id: str, item_id: str) -> Document | None:
        """Give an item, or None."""
        return (await _find(self._client, collection_id, item_id)).item

    async def require(self, collection_id: str, item_id: str) -> None:
        """Raise `OutputRefused` unless the prefix and the item are the job's to write."""
        await self._renew(collection_id=collection_id, item_id=item_id)

    async def write(self, wanted: WantedCollection, item: Document, check: Check | None = None) -> None:
        """Write an item and its collection, both or none of them."""
        if check is not None:
            raise ConfigurationError("This can only be catalogued by a worker with a GRATICULE_DATABASE_URL.")
        await self._renew()  # the prefix must be held until that is committed
        await self._ask("registration", {"collection": _told(wanted), "item": item})

    async def release(self) -> None:
        """Let others have the prefix; if that cannot be said, its time runs out."""
        try:
            await self._client.ask("catalogue/prefix/release", self._subject)
        except GraticuleError as error:
            _log.warning("a prefix could not be released", prefix=self._subject["prefix"], error=str(error))

    async def _renew(self, **checked: str) -> None:
        answer = await self._ask("prefix", {"renews": True, **checked})
        if not answer["held"]:
            raise Conflict(f"The prefix {self._subject['prefix']!r} is not held any more.")
        self._heard_at = time.monotonic()

    async def _ask(self, path: str, content: dict[str, Any]) -> Any:
        return await patiently(lambda: self._client.ask(f"catalogue/{path}", {**self._subject, **content}))


async def _find(client: CallbackClient, collection_id: str, item_id: str) -> Found:
    answer = await patiently(lambda: client.find("catalogue/item", collection_id=collection_id, item_id=item_id))
    return Found(answer["item"], datetime.fromisoformat(answer["now"]))


def _told(wanted: WantedCollection) -> dict[str, Any]:
    return {"document": wanted.document, "text": wanted.text}


def _parts(items: Sequence[Document]) -> Iterator[list[orjson.Fragment]]:
    """Divide items into what one request can carry."""
    part: list[orjson.Fragment] = []
    size = 0
    for text in map(json_codec.encode, items):
        if part and (len(part) == MOST_ITEMS or size + len(text) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(orjson.Fragment(text))
        size += len(text)
    if part:
        yield part
