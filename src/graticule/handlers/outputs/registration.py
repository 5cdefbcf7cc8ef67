"""Puts a job's outputs where they stay and catalogues them: both, or neither of them."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from graticule.core.errors import GraticuleError, InvalidInput, NotFound
from graticule.handlers.catalogue import Check, PrefixHold, catalogue_of
from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.integrity import FILES_ETAG, TILES_HASH, hash_etags
from graticule.handlers.outputs.settling import settle
from graticule.handlers.outputs.staging import (
    Promotion,
    begin,
    checked_prefix,
    final_path,
    move_outputs,
    promoted_sizes,
    promotion_of,
    stage_again,
    staged_sizes,
)
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.collections import Holding, wanted_collection
from graticule.handlers.stac.inputs import Registering
from graticule.handlers.stac.items import Stored, Times, multihash
from graticule.repositories.catalogue import Document


class _Cancelled(Exception):
    """Nobody waits for the outputs any more."""


class Registration(ABC):
    """The registration of one output; each kind of data says which files it has, and what its item says."""

    holds: ClassVar[Holding]

    def __init__(self, ctx: HandlerContext, given: Registering) -> None:
        self._ctx, self._given = ctx, given

    @property
    @abstractmethod
    def files(self) -> Sequence[str]:
        """The staged outputs that are promoted."""

    @property
    @abstractmethod
    def blobs(self) -> Mapping[str, str | None]:
        """The blobs that the item describes, by their paths, with their checksums; the first stands for all."""

    @property
    @abstractmethod
    def dated(self) -> datetime | None:
        """When the source says that it was made."""

    @abstractmethod
    def item(self, stored: Mapping[str, Stored], times: Times) -> Document:
        """Give the item, with the blobs as they are stored now."""

    @property
    def tiles_hash(self) -> str | None:
        """The hash of all tiles together, when the output is a mosaic of them."""
        return None

    @property
    def check(self) -> Check | None:
        """What refuses an output that must not be catalogued any more, in the transaction that would write it."""
        return None

    async def result(self) -> Document | HandlerResult:
        """Register, and give the item, or how it failed; if the catalogue cannot be written, all is staged again."""
        try:
            return await self._settled()
        except _Cancelled:
            return HandlerResult.failure("cancelled", retryable=False)
        except InvalidInput as refused:
            return HandlerResult.failure(str(refused), retryable=False)
        except GraticuleError as error:
            return HandlerResult.failure(str(error))

    async def _settled(self) -> Document:
        """Leave nothing half done whatever happens; what cannot be settled now, the next attempt or a prune finds
        written down."""
        try:
            return await self._promoted_and_catalogued()
        finally:
            await asyncio.shield(self._settle())

    async def _settle(self) -> None:
        try:
            await settle(self._ctx.storage, catalogue_of(self._ctx), self._ctx.job_id)
        except GraticuleError as error:
            self._ctx.logger.warning("what was promoted could not be settled", error=str(error))

    async def _promoted_and_catalogued(self) -> Document:
        """Do both, or none of them, beside no other registration of this prefix."""
        ctx, given = self._ctx, self._given
        async with catalogue_of(ctx).holding(checked_prefix(given.blob_prefix)) as hold:
            self._go_on()
            await hold.require(given.stac_collection_id, given.stac_item_id)
            present = await hold.item(given.stac_collection_id, given.stac_item_id)
            promotion = self._promotion(await self._staged(hold, present), hold.now)
            if lost := [name for name in self.files if name not in promotion.sizes]:
                return await self._catalogued_before(promotion, present, lost[0])
            await begin(ctx.storage, ctx.job_id, promotion)
            await move_outputs(ctx.storage, ctx.job_id, promotion, hold.confirm)
            item = await self._catalogued(hold, present)
            self._go_on()
        return item

    async def _staged(self, hold: PrefixHold, present: Document | None) -> dict[str, int]:
        """Give what the job has staged; what an attempt that ended in the middle has moved is staged again before."""
        left = await promotion_of(self._ctx.storage, self._ctx.job_id)
        if left is not None and not left.is_over(present):
            await stage_again(self._ctx.storage, self._ctx.job_id, left, hold.confirm)
        return await staged_sizes(self._ctx.storage, self._ctx.job_id)

    async def _catalogued_before(self, promotion: Promotion, present: Document | None, lost: str) -> Document:
        """Give the item that another attempt of this job has written; without one, an output is lost."""
        there = await promoted_sizes(self._ctx.storage, self._given.blob_prefix)
        if present is None or not promotion.is_in(present) or not there.keys() >= set(self.files):
            raise NotFound(f"The output {lost!r} is lost: it is not where the job has staged it.")
        return present

    def _promotion(self, staged: Mapping[str, int], now: datetime) -> Promotion:
        described = [(path, multihash(checksum)) for path, checksum in self.blobs.items()]
        href, checksum = described[0] if described else (None, None)
        return Promotion(
            blob_prefix=self._given.blob_prefix,
            collection_id=self._given.stac_collection_id,
            item_id=self._given.stac_item_id,
            href=href,
            checksum=checksum,
            beside=dict(described[1:]),
            sizes={name: staged[name] for name in self.files if name in staged},
            at=now,
        )

    async def _catalogued(self, hold: PrefixHold, present: Document | None) -> Document:
        """Write the item and its collection, both or none of them."""
        given = self._given
        stored = {path: await self._stored(path, checksum) for path, checksum in self.blobs.items()}
        times = times_of(given.datetime or self.dated, present, hold.now)
        item = await asyncio.to_thread(self.item, stored, times)
        item["properties"] |= await self._file_hashes()
        wanted = wanted_collection(given.stac_collection_id, given.collection, given.platform_id, self.holds)
        await hold.write(wanted, item, self.check)
        return item

    async def _file_hashes(self) -> dict[str, str]:
        """Return what tells later whether the files are still these; what they supersede is still beside them."""
        storage, prefix = self._ctx.storage, self._given.blob_prefix
        own = {final_path(storage, prefix, name) for name in self.files}
        if not own:
            return {}
        etags = hash_etags([blob async for blob in storage.list(final_path(storage, prefix, "")) if blob.path in own])
        return {FILES_ETAG: etags} | ({} if self.tiles_hash is None else {TILES_HASH: self.tiles_hash})

    async def _stored(self, path: str, checksum: str | None) -> Stored:
        return Stored(path, (await self._ctx.storage.stat(path)).size, checksum)

    def _go_on(self) -> None:
        if self._ctx.cancelled:
            raise _Cancelled


def times_of(dated: datetime | None, present: Document | None, now: datetime) -> Times:
    """Date an item: as asked, or as its source is, or as it was when it was catalogued first."""
    first = datetime.fromisoformat(present["properties"]["datetime"]) if present else now.replace(microsecond=0)
    return Times(dated or first, now)
