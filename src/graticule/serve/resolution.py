"""Which revision an address leads to: asked of the database, remembered for seconds, forgotten when told."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from graticule.core.asset_names import title_of_id
from graticule.core.audience import Audience
from graticule.core.channels import ASSETS
from graticule.core.errors import Gone, NotFound
from graticule.core.models.platform import UrlMode
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener, listening
from graticule.repositories.served_versions import ServedVersions, VersionRow
from graticule.serve.served import Served

CACHE_SECONDS: Final = 5.0  # should a notification be lost
MOST_ASSETS: Final = 10_000

LATEST: Final = "latest"
PREVIEW: Final = "preview"
Which = tuple[str, int | None]  # the latest, version N, or the preview of version N
Key = tuple[str, Which]


class Resolver:
    """Finds what an audience is served. What it remembers of an asset holds until a change of it is announced."""

    def __init__(self, database: Database, audience: Audience, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._audience = audience
        self._clock = clock
        self._known: OrderedDict[str, dict[Which, tuple[VersionRow, float]]] = OrderedDict()
        self._searches: dict[Key, asyncio.Task[VersionRow | None]] = {}
        self._is_told = False  # without somebody who tells of changes, nothing is remembered

    async def served(self, asset_id: str, version: int | None) -> Served:
        """Give what a version, or without one the latest, leads to; `Gone` when it was withdrawn."""
        row = await self._find((asset_id, (LATEST, version)))
        if row is None or (version is not None and row.url_mode is not UrlMode.ALL_VERSIONS):
            raise NotFound(f"There is no {_named(version)} of an asset {asset_id} here.")
        if not row.is_served:
            raise Gone(f"The {_named(version)} of the asset {asset_id} was withdrawn.")
        return _as_served(row)

    async def preview(self, asset_id: str, ordinal: int) -> Served:
        """Give the newest revision of a version, for a reviewer."""
        row = await self._find((asset_id, (PREVIEW, ordinal)))
        if row is None:
            raise NotFound(f"There is no {_named(ordinal)} of an asset {asset_id} to review.")
        return _as_served(row)

    async def check(self) -> None:
        """Raise if the database does not show what this audience may see."""
        async with self._database.connection() as connection:
            await ServedVersions.of_audience(connection, self._audience).check()

    @asynccontextmanager
    async def told_of_changes(self, url: str) -> AsyncIterator[None]:
        """Listen for changes, and remember what was found, as long as the context lasts."""
        listener = Listener(url, self._audience.role, [ASSETS], name="graticule-serve-listener", on_lost=self._deaf)
        task = asyncio.create_task(self._listen(listener))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self, listener: Listener) -> None:
        async with listening(listener) as heard:
            async for each in heard:
                self._forget(None if each.channel is None else each.payload or None)
                self._is_told = True

    def _deaf(self) -> None:
        self._is_told = False
        self._forget(None)

    def _forget(self, asset_id: str | None) -> None:
        """Forget an asset, or all; what is being searched for may be out of date, and is not remembered either."""
        if asset_id is None:
            self._known.clear()
            self._searches.clear()
            return
        self._known.pop(asset_id, None)
        for key in [key for key in self._searches if key[0] == asset_id]:
            del self._searches[key]

    async def _find(self, key: Key) -> VersionRow | None:
        known = self._known.get(key[0], {}).get(key[1])
        if known is not None and self._clock() < known[1]:
            return known[0]
        search = self._searches.get(key)
        if search is None:  # a burst of requests costs one query
            search = self._searches[key] = asyncio.create_task(self._search(key))
        return await asyncio.shield(search)

    async def _search(self, key: Key) -> VersionRow | None:
        asked = self._clock()
        try:
            row = await self._ask(*key)
            if row is not None and self._is_told and self._searches.get(key) is asyncio.current_task():
                self._remember(key, row, asked + CACHE_SECONDS)
            return row
        finally:
            if self._searches.get(key) is asyncio.current_task():
                del self._searches[key]

    async def _ask(self, asset_id: str, which: Which) -> VersionRow | None:
        kind, ordinal = which
        async with self._database.connection() as connection:
            if kind == PREVIEW and ordinal is not None:
                return await ServedVersions.for_review(connection).version(asset_id, ordinal)
            versions = ServedVersions.of_audience(connection, self._audience)
            return await (versions.latest(asset_id) if ordinal is None else versions.version(asset_id, ordinal))

    def _remember(self, key: Key, row: VersionRow, until: float) -> None:
        self._known.setdefault(key[0], {})[key[1]] = (row, until)
        self._known.move_to_end(key[0])
        if len(self._known) > MOST_ASSETS:
            self._known.popitem(last=False)


def _named(version: int | None) -> str:
    return "version" if version is None else f"version {version}"


def _title_of_item(row: VersionRow) -> str | None:
    return title_of_id(row.stac_item_id) if row.stac_item_id else None


def _as_served(row: VersionRow) -> Served:
    is_table = row.table_name is not None
    return Served(
        asset_id=row.asset_id,
        version_ordinal=row.version_ordinal,
        revision=row.revision,
        data_type=row.data_type,
        title=row.title or _title_of_item(row),
        blob_path=row.blob_path,
        table_schema=row.table_schema if is_table else None,
        table_name=row.table_name,
        output_hash=row.output_hash,
        bbox=row.bbox,
    )
