"""Makes the copies of an approved revision, catalogues them, and removes those that nobody reads any more."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from graticule.config import Settings
from graticule.core.asset_names import PUBLIC_COLLECTION
from graticule.core.errors import GraticuleError, InvalidInput, NotFound, Unavailable
from graticule.core.models.engine import JobPurpose
from graticule.handlers.answers import answering_async
from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.integrity import RevisionFiles, find_fault
from graticule.handlers.publish.copying import Copying, Notes, Zones
from graticule.handlers.publish.data_factory import DataFactory, opened_factory
from graticule.handlers.publish.documents import Copied, Document, public_collection, public_item
from graticule.handlers.publish.factory_runs import FactoryRuns
from graticule.handlers.publish.inputs import Export
from graticule.handlers.publish.pacing import Pace, database_of, failure_of
from graticule.handlers.publish.removing import remove_blobs, stray_copies, withdraw_items
from graticule.handlers.result import HandlerResult
from graticule.repositories.catalogue import CatalogueRepository, begin_writing
from graticule.repositories.outputs import OutputKind, require_outputs
from graticule.repositories.publications import Deed, PublicationHold, PublicTables, PublishedItems, holding

# What of its parameters an export publishes.
PUBLISHED: Final = {"revision", "version_prefix", "blob_path", "table_name", "stac_item_id", "stac_collection_id"}
MAKE_AGAIN: Final = "Revoke the version, or reprocess it and approve the new revision."


@answering_async
async def export(ctx: HandlerContext) -> HandlerResult:
    """Copy a revision to where the public reads, beside the one that is read there until the job has ended."""
    try:
        async with opened_factory(Settings()) as factory:
            return HandlerResult.success(await _Export(ctx, factory).done())
    except GraticuleError as error:
        return failure_of(error)


class _Export:
    """One run of the handler."""

    def __init__(self, ctx: HandlerContext, factory: DataFactory | None) -> None:
        self._ctx, self._factory = ctx, factory
        self._given: Export = ctx.params
        self._pace, self._notes = Pace(ctx), Notes(ctx)
        self._zones = Zones.of(ctx.storage, self._given.prefix)
        self._deed = Deed(ctx.job_id, JobPurpose.EXPORT, self._given.asset_id, self._given.version_ordinal)
        self._run_id: str = ctx.job_id

    async def done(self) -> JsonValue:
        """Do all of it; whatever was done before is not done again."""
        given, database = self._given, database_of(self._ctx)
        external_path = self._external_path()
        async with holding(database, self._deed, self._pace.pause) as hold:
            await self._require_named_outputs(hold)
            item = await self._original(hold)
            async with self._pace.keeping(hold):
                copies = await self._copies(item)
            size = sum(copy.size for copy in copies.values())
            size += await self._pace.while_wanted(self._written(hold, item, copies))
            self._pace.go_on()
        async with holding(database, self._deed, self._pace.pause) as hold, self._pace.keeping(hold):
            await self._remove_others(copies)
        return {
            "external_blob_path": external_path,
            "export_run_id": self._run_id,
            "files": len(copies),
            "size_bytes": size,
            "table_name": given.table_name,
            "stac_item_id": given.stac_item_id if item else None,
            "stac_collection_id": f"{given.stac_collection_id}{PUBLIC_COLLECTION}" if item else None,
        }

    def _external_path(self) -> str | None:
        given = self._given
        if given.blob_path is None:
            if given.table_name is None:
                raise InvalidInput("The revision has neither a blob nor a table that could be exported.")
            return None
        if not given.blob_path.startswith(self._zones.source):
            raise InvalidInput(f"The output {given.blob_path!r} does not lie below {self._zones.source!r}.")
        return self._zones.copy_of(given.blob_path)

    async def _require_named_outputs(self, hold: PublicationHold) -> None:
        """Refuse other outputs than those of the decision: the parameters are what a workflow made of its inputs."""
        if not await hold.names_its_outputs(self._given.model_dump(mode="json", include=PUBLISHED)):
            raise InvalidInput(
                "The outputs that the workflow passes to publish.export are not those that were approved.",
                hint=f"Pass these inputs of the workflow unchanged: {', '.join(sorted(PUBLISHED))}.",
            )

    async def _original(self, hold: PublicationHold) -> Document | None:
        given = self._given
        if given.stac_item_id is None or given.stac_collection_id is None:
            return None
        item = await hold.item(given.stac_collection_id, given.stac_item_id)
        if item is None:
            raise NotFound(f"The item {given.stac_item_id!r} is not in the catalogue.")
        if not await hold.is_intact(given.stac_collection_id, given.stac_item_id):
            raise InvalidInput(
                f"The item {given.stac_item_id!r} cannot be published: it was changed after its job had registered it.",
                hint=MAKE_AGAIN,
            )
        return item

    async def _copies(self, item: Document | None) -> dict[str, Copied]:
        """Let all blobs of the revision be where the public reads."""
        if self._given.blob_path is None:
            return {}
        files = RevisionFiles(self._zones.source, self._given.blob_path, item)
        await self._require_unchanged(files)
        copies = await self._copied(Copying(self._ctx, self._zones, self._pace, self._notes, files.checksums))
        await self._require_unchanged(files)  # what has no checksum may have changed while the others were copied
        return copies

    async def _copied(self, copying: Copying) -> dict[str, Copied]:
        blobs = [blob async for blob in self._ctx.storage.list(self._zones.source)]
        if self._factory is None:
            return await copying.run(blobs)
        plain = [blob for blob in blobs if not self._zones.is_document(blob.path)]
        runs = FactoryRuns(self._ctx, self._factory, self._pace, self._notes)
        self._run_id = await runs.export(self._zones, plain)
        try:
            await copying.check(plain)
        except Unavailable:
            await runs.forget()
            raise
        return await copying.run([blob for blob in blobs if blob not in plain])

    async def _require_unchanged(self, files: RevisionFiles) -> None:
        """Refuse files that were changed since they were cataloged; the copying itself looks at checksums."""
        fault = await self._pace.while_wanted(find_fault(self._ctx.storage, files, max_bytes_hashed=0))
        if fault is not None:
            raise InvalidInput(
                f"The files cannot be published: {fault}.",
                hint=MAKE_AGAIN,
            )

    async def _written(self, hold: PublicationHold, item: Document | None, copies: Mapping[str, Copied]) -> int:
        """Copy the table and catalogue the copies, and let older ones go, in the hold's own transaction."""
        size, tables = 0, PublicTables(hold.connection, self._deed)
        if self._given.table_name is not None:
            size = await tables.copy(self._given.table_name)
        old = await tables.names(but=self._given.kept_revision)
        await tables.drop([name for name in old if name != self._given.table_name])
        await hold.confirm()  # to copy takes a while
        catalogue = await begin_writing(hold.connection)
        public = self._given.public_collections
        await require_outputs(hold.connection, self._ctx.job_id, OutputKind.COLLECTION, *public)
        if item is not None:
            await self._register(catalogue, item, copies)
        items = PublishedItems(hold.connection, self._deed)
        kept = None if item is None else str(item["id"])
        await withdraw_items(catalogue, items, public, kept=kept, kept_revision=self._given.kept_revision)
        return size

    async def _register(self, catalogue: CatalogueRepository, item: Document, copies: Mapping[str, Copied]) -> None:
        original = await catalogue.collection(item["collection"])
        if original is None:
            raise NotFound(f"The collection {item['collection']!r} is not in the catalogue.")
        collection = public_collection(original)
        public = public_item(item, collection["id"], self._given, copies)
        at = datetime.fromisoformat(public["properties"]["datetime"])
        await catalogue.write_collection(collection)
        await catalogue.make_room(collection["id"], at, at)
        await catalogue.write_items(collection["id"], [public])

    async def _remove_others(self, copies: Mapping[str, Copied]) -> None:
        """Remove what else lies there of the version: blobs of other revisions, or of an earlier making of this one.

        What the public reads until the job has ended stays; the next export or reversal finds it.
        """
        given, storage = self._given, self._ctx.storage
        version = f"{storage.options.external}/{given.version_prefix}/"
        there = [blob.path async for blob in storage.list(version)] + stray_copies(storage, given, given.copies)
        kept = {copy.path for copy in copies.values()}
        if given.kept_revision is not None:
            still_read = f"{version}r{given.kept_revision}/"
            kept |= {path for path in there if path.startswith(still_read) or path == given.external_blob_path}
        await remove_blobs(storage, [path for path in there if path not in kept], self._pace)
