"""A handler that saves phases, and whose second delivery need not take as long as the first."""

import asyncio
import time

from tests.chaos.handlers import LOOK_SECONDS, Effect, Work

from graticule.handlers.context import HandlerContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult


class PhasedWork(Work):
    """What a task is to do."""

    first_seconds: float = 0.0  # beyond the others, for the first delivery
    phases: int = 0


@register_handler("faults.work", params=PhasedWork)
async def work(ctx: HandlerContext) -> HandlerResult:
    """Save the phases that no earlier delivery has saved, and take some time."""
    effect = Effect(ctx)
    saved = await ctx.checkpoint.load() if ctx.params.phases else None
    for phase in range(0 if saved is None else int(str(saved.data["completed"])), ctx.params.phases):
        await ctx.checkpoint.save(f"phase_{phase + 1}", {"completed": phase + 1})
    until = time.monotonic() + ctx.params.seconds + (ctx.params.first_seconds if ctx.delivery_count == 1 else 0)
    while (left := until - time.monotonic()) > 0:
        if stopped := effect.stopped():
            return stopped
        await asyncio.sleep(min(left, LOOK_SECONDS))
    return effect.end()
