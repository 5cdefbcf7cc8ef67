"""`publish.export`, `publish.reverse`, `publish.unpublish`: what the public reads is made, and removed again."""

import asyncio
import importlib
from types import ModuleType
from typing import Final

from graticule.handlers.context import HandlerContext
from graticule.handlers.publish.inputs import Export, Reverse, Unpublish
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult

QUEUE: Final = "container-tasks"


@register_handler("publish.export", queue=QUEUE, timeout_seconds=7200, params=Export, needs_database=True)
async def export(ctx: HandlerContext) -> HandlerResult:
    """Copy an approved revision for the public, and catalogue the copy."""
    result: HandlerResult = await (await _loaded("exporting")).export(ctx)
    return result


@register_handler("publish.reverse", queue=QUEUE, timeout_seconds=1800, params=Reverse, needs_database=True)
async def reverse(ctx: HandlerContext) -> HandlerResult:
    """Remove all copies of a version."""
    result: HandlerResult = await (await _loaded("withdrawing")).reverse(ctx)
    return result


@register_handler("publish.unpublish", queue=QUEUE, timeout_seconds=1800, params=Unpublish, needs_database=True)
async def unpublish(ctx: HandlerContext) -> HandlerResult:
    """Remove all copies of an asset's versions, and the versions from the catalogue."""
    result: HandlerResult = await (await _loaded("withdrawing")).unpublish(ctx)
    return result


async def _loaded(name: str) -> ModuleType:
    """Load the STAC library with what uses it, aside: the first time that takes a while."""
    return await asyncio.to_thread(importlib.import_module, f"graticule.handlers.publish.{name}")
