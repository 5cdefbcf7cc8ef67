"""The handler that catalogues a table of features; it also puts the files that were made beside it where they stay."""

import asyncio
import importlib
from typing import Final

from graticule.handlers.context import HandlerContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.table_inputs import TableInputs

QUEUE: Final = "functionapp-tasks"


@register_handler(
    "vector.stac_register_item", queue=QUEUE, timeout_seconds=300, params=TableInputs, needs_database=True
)
async def stac_register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote a job's exports, and catalogue them with the table."""
    # Loaded aside with the STAC library: the first time that takes a while.
    registration = await asyncio.to_thread(importlib.import_module, "graticule.handlers.vector.registration")
    result: HandlerResult = await registration.register_item(ctx)
    return result
