"""Writing the STAC catalogue, and putting a job's outputs where they stay."""

import asyncio
from datetime import datetime
from typing import cast

from pydantic import JsonValue

from graticule.core.errors import ConfigurationError, GraticuleError, InvalidInput, NotFound
from graticule.handlers.context import HandlerContext
from graticule.handlers.raster.settling import settle
from graticule.handlers.raster.staging import (
    Promotion,
    begin,
    checked_prefix,
    move_outputs,
    promoted_sizes,
    promotion_of,
    stage_again,
    staged_sizes,
)
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.collections import covering, described_anew, new_collection
from graticule.handlers.stac.inputs import CollectionInputs, CollectionText, ItemInputs, Product, TilesInputs
from graticule.handlers.stac.items import (
    DATA,
    MOSAIC,
    TILES_OF,
    Stored,
    Times,
    multihash,
    output_item,
    tile_item_id,
    tile_items,
)
from graticule.repositories.catalogue import CatalogueRepository, Document, begin_writing, reading, writing
from graticule.repositories.database import Database
from graticule.repositories.promotions import PrefixHold, holding
from graticule.storage.protocol import Storage


class _Cancelled(Exception):
    """Nobody waits for the outputs any more."""


async def ensure_collection(ctx: HandlerContext) -> HandlerResult:
    """Let there be a collection, with these texts."""
    given: CollectionInputs = ctx.params
    async with writing(_database(ctx)) as catalogue:
        is_new = await _ensure(catalogue, given.stac_collection_id, given, given.platform_id)
        await _cover(catalogue, given.stac_collection_id)
    return HandlerResult.success({"stac_collection_id": given.stac_collection_id, "created": is_new})


async def register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote a job's outputs and catalogue them; if the catalogue cannot be written, they are staged again."""
    given: ItemInputs = ctx.params
    try:
        item = await _settled(ctx, given)
    except _Cancelled:
        return HandlerResult.failure("cancelled", retryable=False)
    except InvalidInput as refused:
        return HandlerResult.failure(str(refused), retryable=False)
    except GraticuleError as error:
        return HandlerResult.failure(str(error))
    return HandlerResult.success(_registered(given, item))


async def register_items(ctx: HandlerContext) -> HandlerResult:
    """Catalogue the tiles of an output, in place of those that it had before."""
    given: TilesInputs = ctx.params
    database, total = _database(ctx), len(given.tiles)
    ctx.progress(0, total, "describing tiles")
    times = _times(given, await _present(database, given, _first_tile(given)), database.now())
    async with writing(database) as catalogue:
        await _ensure(catalogue, given.stac_collection_id, given.collection, given.platform_id, of_tiles=True)
        await catalogue.make_room(given.stac_collection_id, times.at, times.at)
    items = await asyncio.to_thread(lambda: list(tile_items(given, times)))
    if ctx.cancelled:
        return HandlerResult.failure("cancelled", retryable=False)
    ctx.progress(0, total, "writing items")
    bbox = await _write_tiles(database, given, items)
    ctx.progress(total, total, "catalogued")
    output: dict[str, JsonValue] = {"stac_collection_id": given.stac_collection_id, "item_count": total, "bbox": bbox}
    return HandlerResult.success(output)


async def _settled(ctx: HandlerContext, given: ItemInputs) -> Document:
    """Register, and leave nothing half done whatever happens; what cannot be settled now, the next attempt or a prune
    finds written down."""
    try:
        return await _promoted_and_catalogued(ctx, given)
    finally:
        await asyncio.shield(_settle(ctx))


async def _settle(ctx: HandlerContext) -> None:
    try:
        await settle(ctx.storage, _database(ctx), ctx.job_id)
    except GraticuleError as error:
        ctx.logger.warning("what was promoted could not be settled", error=str(error))


async def _promoted_and_catalogued(ctx: HandlerContext, given: ItemInputs) -> Document:
    """Do both, or none of them, beside no other registration of this prefix."""
    async with holding(_database(ctx), checked_prefix(given.blob_prefix)) as hold:
        _go_on(ctx)
        present = await hold.item(given.stac_collection_id, given.stac_item_id)
        promotion = _described(given, await _staged(ctx, hold, present), hold.now)
        if lost := [name for name in given.staged_files if name not in promotion.sizes]:
            return await _catalogued_before(ctx, given, promotion, present, lost[0])
        await begin(ctx.storage, ctx.job_id, promotion)
        await move_outputs(ctx.storage, ctx.job_id, promotion, hold.confirm)
        item = await _catalogued(ctx, given, hold, present)
        _go_on(ctx)
    return item


async def _staged(ctx: HandlerContext, hold: PrefixHold, present: Document | None) -> dict[str, int]:
    """Give what the job has staged; what an attempt that ended in the middle has moved is staged again before."""
    left = await promotion_of(ctx.storage, ctx.job_id)
    if left is not None and not left.is_over(present):
        await stage_again(ctx.storage, ctx.job_id, left, hold.confirm)
    return await staged_sizes(ctx.storage, ctx.job_id)


async def _catalogued_before(
    ctx: HandlerContext, given: ItemInputs, promotion: Promotion, present: Document | None, lost: str
) -> Document:
    """Give the item that another attempt of this job has written; without one, an output is lost."""
    there = await promoted_sizes(ctx.storage, given.blob_prefix)
    if present is None or not promotion.is_in(present) or not there.keys() >= set(given.staged_files):
        raise NotFound(f"The output {lost!r} is lost: it is not where the job has staged it.")
    return present


def _described(given: ItemInputs, staged: dict[str, int], now: datetime) -> Promotion:
    return Promotion(
        blob_prefix=given.blob_prefix,
        collection_id=given.stac_collection_id,
        item_id=given.stac_item_id,
        href=given.product.path,
        checksum=multihash(given.product.checksum),
        sizes={name: staged[name] for name in given.staged_files if name in staged},
        at=now,
    )


async def _catalogued(ctx: HandlerContext, given: ItemInputs, hold: PrefixHold, present: Document | None) -> Document:
    """Write the item and its collection, both or none of them."""
    stored = await _stored(ctx.storage, given.product)
    times = _times(given, present, hold.now)
    item = await asyncio.to_thread(output_item, given, stored, times)
    catalogue = await begin_writing(hold.connection)
    await _ensure(catalogue, given.stac_collection_id, given.collection, given.platform_id)
    await catalogue.make_room(given.stac_collection_id, times.at, times.at)
    await catalogue.write_items(given.stac_collection_id, [item])
    await _cover(catalogue, given.stac_collection_id)
    return item


def _go_on(ctx: HandlerContext) -> None:
    if ctx.cancelled:
        raise _Cancelled


async def _write_tiles(database: Database, given: TilesInputs, items: list[Document]) -> JsonValue:
    async with writing(database) as catalogue:
        await catalogue.delete_items_having(given.stac_collection_id, TILES_OF, given.stac_item_id)
        await catalogue.write_items(given.stac_collection_id, items)
        written = await _cover(catalogue, given.stac_collection_id)
    return cast("JsonValue", written["extent"]["spatial"]["bbox"][0])


async def _ensure(
    catalogue: CatalogueRepository,
    collection_id: str,
    text: CollectionText,
    platform_id: str | None,
    *,
    of_tiles: bool = False,
) -> bool:
    """Make a collection, or say of the one that is there what is new; tell whether it was made."""
    present = await catalogue.collection(collection_id)
    if present is None:
        made = new_collection(collection_id, text, platform_id=platform_id, of_tiles=of_tiles)
        await catalogue.write_collection(made)
    elif (changed := described_anew(present, text)) != present:
        await catalogue.write_collection(changed)
    return present is None


async def _cover(catalogue: CatalogueRepository, collection_id: str) -> Document:
    """Let a collection tell what its items cover."""
    present = await catalogue.collection(collection_id) or {}
    covered = covering(present, await catalogue.coverage(collection_id))
    if covered != present:
        await catalogue.write_collection(covered)
    return covered


async def _present(database: Database, given: ItemInputs | TilesInputs, item_id: str) -> Document | None:
    async with reading(database) as catalogue:
        return await catalogue.item(given.stac_collection_id, item_id)


async def _stored(storage: Storage, product: Product) -> Stored:
    """Tell what is stored."""
    info = await storage.stat(product.path)
    return Stored(product.path, info.size, product.checksum)


def _first_tile(given: TilesInputs) -> str:
    return tile_item_id(given.stac_item_id, given.tiles[0].tile_id)


def _times(given: ItemInputs | TilesInputs, present: Document | None, now: datetime) -> Times:
    """Date an item: as asked, or as its source is, or as it was when it was catalogued first."""
    first = datetime.fromisoformat(present["properties"]["datetime"]) if present else now.replace(microsecond=0)
    return Times(given.datetime or given.source.acquired_at or first, now)


def _registered(given: ItemInputs, item: Document) -> dict[str, JsonValue]:
    """Give what the workflow ends with."""
    product = given.product
    return {
        "stac_item_id": given.stac_item_id,
        "stac_collection_id": given.stac_collection_id,
        "bbox": item["bbox"],
        "datetime": item["properties"]["datetime"],
        "blob_path": product.path,
        "mosaic_path": product.mosaic_path,
        "tile_count": product.tile_count,
        "size_bytes": product.size_bytes,
        "bands": item["assets"][MOSAIC if product.is_mosaic else DATA].get("bands", []),
        "output_hash": product.output_hash,
        "content_hash": given.source.content_hash,
        "validation": given.source.validation(),
        "tile_url": given.tile_url,
    }


def _database(ctx: HandlerContext) -> Database:
    if ctx.database is None:
        raise ConfigurationError("This worker has no database, and cannot write the catalogue.")
    return ctx.database
