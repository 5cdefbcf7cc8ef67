"""Handlers that write the STAC catalogue; the last of them to run also puts a job's outputs where they stay."""

import asyncio
import importlib
from types import ModuleType
from typing import Final

from graticule.handlers.context import HandlerContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.inputs import CollectionInputs, ItemInputs, TilesInputs

_ITEM_SECONDS: Final = 300
_ITEMS_SECONDS: Final = 1800


@register_handler("raster.stac_ensure_collection", params=CollectionInputs, timeout_seconds=_ITEM_SECONDS)
async def stac_ensure_collection(ctx: HandlerContext) -> HandlerResult:
    """Let there be a collection, with these texts."""
    registration = await _registration()
    result: HandlerResult = await registration.ensure_collection(ctx)
    return result


@register_handler("raster.stac_register_item", params=ItemInputs, timeout_seconds=_ITEM_SECONDS)
async def stac_register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote a job's outputs and catalogue them."""
    registration = await _registration()
    result: HandlerResult = await registration.register_item(ctx)
    return result


@register_handler("raster.stac_register_items", params=TilesInputs, timeout_seconds=_ITEMS_SECONDS)
async def stac_register_items(ctx: HandlerContext) -> HandlerResult:
    """Catalogue the tiles of an output, in place of those that it had before."""
    registration = await _registration()
    result: HandlerResult = await registration.register_items(ctx)
    return result


async def _registration() -> ModuleType:
    """Load the STAC library with what uses it, aside: the first time that takes a while."""
    return await asyncio.to_thread(importlib.import_module, "graticule.handlers.raster.registration")
