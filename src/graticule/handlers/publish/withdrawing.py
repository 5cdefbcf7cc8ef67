"""Removes what was made for the public, and looks again whether it is gone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from graticule.config import Settings
from graticule.core.errors import GraticuleError, Unavailable
from graticule.core.models.engine import JobPurpose
from graticule.handlers.answers import answering_async
from graticule.handlers.context import HandlerContext
from graticule.handlers.publish.copying import Notes
from graticule.handlers.publish.data_factory import DataFactory, opened_factory
from graticule.handlers.publish.factory_runs import FactoryRuns
from graticule.handlers.publish.inputs import Copy, Reverse, Unpublish, Version
from graticule.handlers.publish.pacing import Pace, database_of, failure_of, unbroken
from graticule.handlers.publish.removing import delete_items, remove_blobs, stray_copies, withdraw_items
from graticule.handlers.result import HandlerResult
from graticule.repositories.catalogue import begin_writing
from graticule.repositories.outputs import OutputKind, require_outputs
from graticule.repositories.publications import Deed, PublicationHold, PublicTables, PublishedItems, holding


@dataclass(slots=True)
class Removed:
    """What there was."""

    blobs: int = 0
    tables: int = 0
    items: int = 0

    def told(self) -> JsonValue:
        """Give it as the handlers' output."""
        return {"removed": {"blobs": self.blobs, "tables": self.tables, "items": self.items}, "remaining": 0}


@answering_async
async def reverse(ctx: HandlerContext) -> HandlerResult:
    """Remove all copies of a version."""
    given: Reverse = ctx.params
    copies = [Copy(external_blob_path=given.external_blob_path), *given.copies]
    return await _withdrawn(ctx, JobPurpose.REVERSAL, [given], copies)


@answering_async
async def unpublish(ctx: HandlerContext) -> HandlerResult:
    """Remove all copies of versions, and their own entries of the catalogue; their data stay."""
    given: Unpublish = ctx.params
    return await _withdrawn(ctx, JobPurpose.UNPUBLISH, given.versions, given.copies)


async def _withdrawn(
    ctx: HandlerContext, purpose: JobPurpose, versions: Sequence[Version], copies: Sequence[Copy]
) -> HandlerResult:
    removed = Removed()
    try:
        async with opened_factory(Settings()) as factory:
            for number, version in enumerate(versions):
                await _Withdrawal(ctx, purpose, version, copies, factory).done(removed)
                ctx.progress(number + 1, len(versions), "versions")
    except GraticuleError as error:
        return failure_of(error)
    return HandlerResult.success(removed.told())


class _Withdrawal:
    """The removal of one version's copies."""

    def __init__(
        self,
        ctx: HandlerContext,
        purpose: JobPurpose,
        version: Version,
        copies: Sequence[Copy],
        factory: DataFactory | None,
    ) -> None:
        self._ctx, self._version, self._factory = ctx, version, factory
        self._pace, self._notes = Pace(ctx), Notes(ctx)
        self._deed = Deed(ctx.job_id, purpose, ctx.params.asset_id, version.version_ordinal)
        self._folder = f"{ctx.storage.options.external}/{version.version_prefix}/"
        self._elsewhere = stray_copies(ctx.storage, version, copies)

    async def done(self, removed: Removed) -> None:
        """Remove all of it, and look again; what is still there then is named, and tried again."""
        async with self._held() as hold:
            removed.blobs += await self._remove_blobs(hold)
            await hold.confirm()
            await self._pace.while_wanted(self._remove_rows(hold, removed))
            self._pace.go_on()
        async with self._held() as hold:
            if left := [*await self._blobs(), *await self._rows(hold)]:
                raise Unavailable(f"{len(left)} copies are still there, such as {left[0]}.")

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[PublicationHold]:
        async with holding(database_of(self._ctx), self._deed, self._pace.pause) as hold:
            yield hold

    async def _remove_blobs(self, hold: PublicationHold) -> int:
        """Remove all blobs of the version, and what was begun and never became one."""
        storage = self._ctx.storage
        runs = await hold.runs()
        async with self._pace.keeping(hold):
            if self._factory is not None:
                await self._end_runs(runs, self._factory)
            found = await self._blobs()
            if found and self._factory is not None and self._factory.reversal_pipeline is not None:
                await self._removed_by_factory(self._factory, self._factory.reversal_pipeline)
            else:
                await remove_blobs(storage, found, self._pace)
                await unbroken(storage.delete_below(self._folder), self._pace)
        return len(found)

    async def _end_runs(self, run_ids: Sequence[str], factory: DataFactory) -> None:
        """Let no export that was cancelled go on to copy, while its copies are removed."""
        runs = self._runs(factory)
        for run_id in run_ids:
            await runs.end(run_id)

    def _runs(self, factory: DataFactory) -> FactoryRuns:
        part = f"factory of version {self._version.version_ordinal}"
        return FactoryRuns(self._ctx, factory, self._pace, self._notes, part)

    async def _removed_by_factory(self, factory: DataFactory, pipeline: str) -> None:
        runs = self._runs(factory)
        await runs.reverse(pipeline, self._deed.asset_id, self._deed.version_ordinal, self._folder)

    async def _blobs(self) -> list[str]:
        """Give the copies that are there."""
        storage = self._ctx.storage
        below = [blob.path async for blob in storage.list(self._folder)]
        return below + [path for path in self._elsewhere if await storage.exists(path)]

    async def _remove_rows(self, hold: PublicationHold, removed: Removed) -> None:
        """Drop tables and delete items, in the hold's own transaction."""
        tables, items = PublicTables(hold.connection, self._deed), PublishedItems(hold.connection, self._deed)
        names = await tables.names()
        await tables.drop(names)
        catalogue = await begin_writing(hold.connection)
        public = self._version.public_collections
        await require_outputs(hold.connection, self._ctx.job_id, OutputKind.COLLECTION, *public)
        count = await withdraw_items(catalogue, items, public)
        if self._deed.purpose is JobPurpose.UNPUBLISH:
            count += await delete_items(catalogue, items, await self._originals(items))
        removed.tables += len(names)
        removed.items += count

    async def _originals(self, items: PublishedItems) -> dict[str, list[str]]:
        """Give the items of the version itself, and of its tiles, which may have collections of their own."""
        names = [*self._version.collections, *filter(None, [self._version.stac_item_id])]
        return await items.ids(await items.collections(names, with_tiles=True), self._version.stac_item_id)

    async def _rows(self, hold: PublicationHold) -> list[str]:
        """Name the tables and items that are there."""
        tables, items = PublicTables(hold.connection, self._deed), PublishedItems(hold.connection, self._deed)
        found = await items.ids(await items.collections(self._version.public_collections))
        if self._deed.purpose is JobPurpose.UNPUBLISH:
            found |= await self._originals(items)
        return [
            *(f"the table {name}" for name in await tables.names()),
            *(f"the item {i}" for ids in found.values() for i in ids),
        ]
