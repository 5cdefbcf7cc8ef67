"""Writing the STAC catalogue, and putting a job's outputs where they stay."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, cast

from pydantic import JsonValue

from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.registration import Registration, cover, database_of, ensure, times_of
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.collections import Holding
from graticule.handlers.stac.inputs import CollectionInputs, ItemInputs, TilesInputs
from graticule.handlers.stac.items import (
    DATA,
    MOSAIC,
    TILES_OF,
    Stored,
    Times,
    output_item,
    tile_item_id,
    tile_items,
)
from graticule.repositories.catalogue import Document, reading, writing
from graticule.repositories.database import Connection, Database


async def ensure_collection(ctx: HandlerContext) -> HandlerResult:
    """Let there be a collection, with these texts."""
    given: CollectionInputs = ctx.params
    async with writing(database_of(ctx)) as catalogue:
        is_new = await ensure(catalogue, given.stac_collection_id, given, given.platform_id, Holding.RASTERS)
        await cover(catalogue, given.stac_collection_id)
    return HandlerResult.success({"stac_collection_id": given.stac_collection_id, "created": is_new})


async def register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote a job's outputs and catalogue them; if the catalogue cannot be written, they are staged again."""
    given: ItemInputs = ctx.params
    item = await RasterRegistration(ctx, given).result()
    return item if isinstance(item, HandlerResult) else HandlerResult.success(_registered(given, item))


async def register_items(ctx: HandlerContext) -> HandlerResult:
    """Catalogue the tiles of an output, in place of those that it had before."""
    given: TilesInputs = ctx.params
    database, total = database_of(ctx), len(given.tiles)
    ctx.progress(0, total, "describing tiles")
    present = await _present(database, given, tile_item_id(given.stac_item_id, given.tiles[0].tile_id))
    times = times_of(given.datetime or given.source.acquired_at, present, database.now())
    async with writing(database) as catalogue:
        await ensure(catalogue, given.stac_collection_id, given.collection, given.platform_id, Holding.TILES)
        await catalogue.make_room(given.stac_collection_id, times.at, times.at)
    items = await asyncio.to_thread(lambda: list(tile_items(given, times)))
    if ctx.cancelled:
        return HandlerResult.failure("cancelled", retryable=False)
    ctx.progress(0, total, "writing items")
    bbox = await _write_tiles(database, given, items)
    ctx.progress(total, total, "catalogued")
    output: dict[str, JsonValue] = {"stac_collection_id": given.stac_collection_id, "item_count": total, "bbox": bbox}
    return HandlerResult.success(output)


class RasterRegistration(Registration):
    """The registration of a cloud-optimized raster, or of a mosaic of many."""

    holds: ClassVar = Holding.RASTERS

    def __init__(self, ctx: HandlerContext, given: ItemInputs) -> None:
        super().__init__(ctx, given)
        self._raster = given

    @property
    def files(self) -> Sequence[str]:
        """The staged outputs that are promoted."""
        return self._raster.staged_files

    @property
    def blobs(self) -> Mapping[str, str | None]:
        """The blob that stands for all of it."""
        return {self._raster.product.path: self._raster.product.checksum}

    @property
    def dated(self) -> datetime | None:
        """When the picture was taken, if the file says so."""
        return self._raster.source.acquired_at

    def item(self, stored: Mapping[str, Stored], times: Times) -> Document:
        """Give the item."""
        return output_item(self._raster, stored[self._raster.product.path], times)

    async def check(self, connection: Connection) -> None:
        """Refuse nothing: whose the files are, the prefix tells, which is held."""


async def _write_tiles(database: Database, given: TilesInputs, items: list[Document]) -> JsonValue:
    async with writing(database) as catalogue:
        await catalogue.delete_items_having(given.stac_collection_id, TILES_OF, given.stac_item_id)
        await catalogue.write_items(given.stac_collection_id, items)
        written = await cover(catalogue, given.stac_collection_id)
    return cast("JsonValue", written["extent"]["spatial"]["bbox"][0])


async def _present(database: Database, given: TilesInputs, item_id: str) -> Document | None:
    async with reading(database) as catalogue:
        return await catalogue.item(given.stac_collection_id, item_id)


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
