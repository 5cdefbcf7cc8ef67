"""Handlers that write a ledger of what they did, and whose output names the run that counted."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import BaseModel
from tests.chaos.ledger import Entry, Ledger, Moment

from graticule.handlers.context import HandlerContext, ProcessContext, TaskContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult

LEDGER_VARIABLE: Final = "CHAOS_LEDGER"
QUEUE: Final = "chaos-tasks"
LOOK_SECONDS: Final = 0.05  # how often a handler looks whether it is still wanted


class Work(BaseModel):
    """What a task is to do."""

    seconds: float = 0.0
    fails: int = 0  # so many first attempts fail
    items: int = 0
    value: float = 1.0


class Effect:
    """One execution, as it is told to the ledger."""

    def __init__(self, ctx: TaskContext) -> None:
        self.run = uuid4().hex
        self._ctx = ctx
        self._ledger = Ledger(Path(os.environ[LEDGER_VARIABLE]))
        self._write("began")

    def end(self) -> HandlerResult:
        """Have the effect, or fail; and tell so before the worker does."""
        work: Work = self._ctx.params
        if self._ctx.retry_count < work.fails:
            return self.fail("this attempt was to fail")
        self._write("ended")
        return HandlerResult.success({"run": self.run, "value": work.value, "items": list(range(work.items))})

    def fail(self, reason: str, *, retryable: bool = True) -> HandlerResult:
        """End without an effect."""
        self._write("failed")
        return HandlerResult.failure(reason, retryable=retryable)

    def stopped(self) -> HandlerResult | None:
        """Give the result of a handler that is to end early; None when it is not."""
        if self._ctx.cancelled:
            return self.fail("cancelled", retryable=False)
        return HandlerResult.interrupted() if self._ctx.shutdown_requested else None

    def _write(self, moment: Moment) -> None:
        ctx = self._ctx
        self._ledger.write(
            Entry(self.run, moment, ctx.task_id, ctx.job_id, ctx.node_id, ctx.retry_count, ctx.delivery_count)
        )


@register_handler("chaos.wait", queue=QUEUE, params=Work, timeout_seconds=60)
async def wait(ctx: HandlerContext) -> HandlerResult:
    """Work in the worker's own process."""
    effect = Effect(ctx)
    until = time.monotonic() + ctx.params.seconds
    while (left := until - time.monotonic()) > 0:
        if stopped := effect.stopped():
            return stopped
        await asyncio.sleep(min(left, LOOK_SECONDS))
    return effect.end()


@register_handler("chaos.work", queue=QUEUE, params=Work, timeout_seconds=60)
def work(ctx: ProcessContext) -> HandlerResult:
    """Work in a child process."""
    effect = Effect(ctx)
    until = time.monotonic() + ctx.params.seconds
    while (left := until - time.monotonic()) > 0:
        if stopped := effect.stopped():
            return stopped
        time.sleep(min(left, LOOK_SECONDS))
    return effect.end()


@register_handler("chaos.poison", queue=QUEUE, params=Work, timeout_seconds=60)
async def poison(ctx: HandlerContext) -> HandlerResult:
    """End the worker at once, without a word."""
    Effect(ctx)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")
