"""Example handlers: for first steps, demonstrations and tests."""

import asyncio
import random
import time

from pydantic import BaseModel, Field, model_validator

from graticule.handlers.context import HandlerContext, ProcessContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult

LARGE_MB = 100
_PAUSE_SECONDS = 0.2  # between two looks at whether to go on


@register_handler("echo")
async def echo(ctx: HandlerContext) -> HandlerResult:
    """Give the parameters back."""
    return HandlerResult.success({"echoed_params": ctx.params})


class Hello(BaseModel):
    """Whom to greet."""

    name: str = "World"


@register_handler("hello_world", params=Hello)
async def hello_world(ctx: HandlerContext) -> HandlerResult:
    """Greet someone."""
    return HandlerResult.success({"message": f"Hello, {ctx.params.name}!"})


class Sleep(BaseModel):
    """How long to sleep."""

    seconds: float = Field(1.0, ge=0)


@register_handler("sleep", params=Sleep)
async def sleep(ctx: HandlerContext) -> HandlerResult:
    """Sleep, tell how far it is, and wake up when the job is cancelled or the worker stops."""
    seconds: float = ctx.params.seconds
    began = time.monotonic()
    while (slept := time.monotonic() - began) < seconds:
        if ctx.cancelled:
            return HandlerResult.failure("cancelled", retryable=False)
        if ctx.shutdown_requested:
            return HandlerResult.interrupted()
        ctx.progress(round(slept, 1), seconds)
        await asyncio.sleep(min(_PAUSE_SECONDS, seconds - slept))
    return HandlerResult.success({"slept_seconds": seconds})


class Fail(BaseModel):
    """How to fail."""

    message: str = "failed as asked"
    retryable: bool = True


@register_handler("fail", params=Fail)
async def fail(ctx: HandlerContext) -> HandlerResult:
    """Fail."""
    return HandlerResult.failure(ctx.params.message, retryable=ctx.params.retryable)


class Flaky(BaseModel):
    """How often to fail; with a seed, each attempt of a node ends the same way in every run."""

    failure_rate: float = Field(0.2, ge=0, le=1)
    seed: int | str | None = None


@register_handler("flaky_echo")
async def flaky_echo(ctx: HandlerContext) -> HandlerResult:
    """Give the parameters back, or fail, by chance."""
    chance = Flaky.model_validate(ctx.params)
    drawn = _draw(None if chance.seed is None else f"{chance.seed}/{ctx.node_id}/{ctx.retry_count}")
    if drawn < chance.failure_rate:
        return HandlerResult.failure(f"failed by chance (rate {chance.failure_rate:g})")
    return HandlerResult.success({"echoed_params": ctx.params, "attempt": ctx.retry_count + 1})


def _draw(seed: str | None) -> float:
    return random.Random(seed).random()  # noqa: S311 - nothing here is secret


class MultiPhase(BaseModel):
    """How many phases there are, and how long each takes."""

    phases: int = Field(3, ge=1, le=1000)
    seconds_per_phase: float = Field(0.1, ge=0)


@register_handler("multi_phase", params=MultiPhase)
def multi_phase(ctx: ProcessContext) -> HandlerResult:
    """Work in phases, save each, and go on after the last one that an earlier attempt has saved."""
    saved = ctx.checkpoint.load()
    first = 0 if saved is None else int(str(saved.data["completed"]))
    for phase in range(first, ctx.params.phases):
        if ctx.cancelled:
            return HandlerResult.failure("cancelled", retryable=False)
        if ctx.shutdown_requested:
            return HandlerResult.interrupted()
        time.sleep(ctx.params.seconds_per_phase)
        ctx.checkpoint.save(f"phase_{phase + 1}", {"completed": phase + 1})
        ctx.progress(phase + 1, ctx.params.phases, f"phase {phase + 1}")
    resumed_from = None if saved is None else saved.phase
    return HandlerResult.success({"phases": ctx.params.phases, "resumed_from": resumed_from})


class Size(BaseModel):
    """The size of a file, under either name."""

    size_mb: float = Field(ge=0)

    @model_validator(mode="before")
    @classmethod
    def _either_name(cls, given: dict[str, object]) -> dict[str, object]:
        return {"size_mb": given.get("file_size_mb"), **given}


@register_handler("size_check", params=Size)
async def size_check(ctx: HandlerContext) -> HandlerResult:
    """Tell whether a file is large."""
    size: float = ctx.params.size_mb
    return HandlerResult.success({"size_mb": size, "file_size_mb": size, "is_large": size > LARGE_MB})


@register_handler("chunk_processor")
async def chunk_processor(ctx: HandlerContext) -> HandlerResult:
    """Process one chunk of a fan-out."""
    await asyncio.sleep(float(ctx.params.get("seconds", 0)))
    index = ctx.params.get("index", 0)
    return HandlerResult.success({"chunk": ctx.params.get("chunk"), "index": index, "processed": True})
