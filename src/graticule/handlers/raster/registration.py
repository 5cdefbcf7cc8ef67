"""Writing the STAC catalogue, and putting a job's outputs where they stay."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, cast

from pydantic import JsonValue

from graticule.handlers.answers import answering_async
from graticule.handlers.catalogue import catalogue_of
from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.registration import Registration, times_of
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.collections import Holding, wanted_collection
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
from graticule.handlers.stac.writing import Having
from graticule.repositories.catalogue import Document


@answering_async
async def ensure_collection(ctx: HandlerContext) -> HandlerResult:
    """Let there be a collection, with these texts."""
    given: CollectionInputs = ctx.params
    wanted = wanted_collection(given.stac_collection_id, given, given.platform_id, Holding.RASTERS)
    is_new = await catalogue_of(ctx).ensure(wanted)
    return HandlerResult.success({"stac_collection_id": given.stac_collection_id, "created": is_new})


async def register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote a job's outputs and catalogue them; if the catalogue cannot be written, they are staged again."""
    given: ItemInputs = ctx.params
    item = await RasterRegistration(ctx, given).result()
    return item if isinstance(item, HandlerResult) else HandlerResult.success(_registered(given, item))


@answering_async
async def register_items(ctx: HandlerContext) -> HandlerResult:
    """Catalogue the tiles of an output, in place of those that it had before."""
    given: TilesInputs = ctx.params
    catalogue, total = catalogue_of(ctx), len(given.tiles)
    ctx.progress(0, total, "describing tiles")
    first = tile_item_id(given.stac_item_id, given.tiles[0].tile_id)
    found = await catalogue.find(given.stac_collection_id, first)
    times = times_of(given.datetime or given.source.acquired_at, found.item, found.now)
    wanted = wanted_collection(given.stac_collection_id, given.collection, given.platform_id, Holding.TILES)
    await catalogue.ensure(wanted, room_for=times.at)
    items = await asyncio.to_thread(lambda: list(tile_items(given, times)))
    if ctx.cancelled:
        return HandlerResult.failure("cancelled", retryable=False)
    ctx.progress(0, total, "writing items")
    written = await catalogue.replace_items(given.stac_collection_id, items, Having(TILES_OF, given.stac_item_id))
    ctx.progress(total, total, "catalogued")
    bbox = cast("JsonValue", written["extent"]["spatial"]["bbox"][0])
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
        """The blob that stands for all of it, and the tile grid of a mosaic where its checksum is known."""
        product, blobs = self._raster.product, {self._raster.product.path: self._raster.product.checksum}
        if product.scheme_path is not None and product.scheme_checksum is not None:
            blobs[product.scheme_path] = product.scheme_checksum
        return blobs

    @property
    def tiles_hash(self) -> str | None:
        """The hash of all tiles together, when the output is a mosaic of them."""
        return self._raster.product.output_hash if self._raster.product.is_mosaic else None

    @property
    def dated(self) -> datetime | None:
        """When the picture was taken, if the file says so."""
        return self._raster.source.acquired_at

    def item(self, stored: Mapping[str, Stored], times: Times) -> Document:
        """Give the item."""
        product = self._raster.product
        return output_item(self._raster, stored[product.path], times, stored.get(product.scheme_path or ""))


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
