"""The handlers: one that waits for the storage, and one that computes."""

import csv
import json
from collections import defaultdict
from statistics import fmean
from typing import Any

from pydantic import BaseModel, Field

from graticule.handlers import HandlerContext, HandlerResult, ProcessContext, register_handler


class Readings(BaseModel):
    """Where the readings are: a CSV file with the columns gauge, time and level."""

    path: str = Field(min_length=1)


@register_handler("tides.gauges", params=Readings, timeout_seconds=60)
async def gauges(ctx: HandlerContext) -> HandlerResult:
    """Name the gauges that a file has readings of."""
    if not await ctx.storage.exists(ctx.params.path):
        return HandlerResult.failure(f"There is no file {ctx.params.path}.", retryable=False)
    rows = _rows(await ctx.storage.get(ctx.params.path))
    found = sorted({row["gauge"] for row in rows})
    return HandlerResult.success({"gauges": [*found]}, metrics={"rows": len(rows)})


class Gauge(Readings):
    """One gauge of the file."""

    gauge: str


@register_handler("tides.summarize", queue="container-tasks", params=Gauge, memory_limit_mb=512)
def summarize(ctx: ProcessContext) -> HandlerResult:
    """Give the mean level of each day, and go on after the last day that was saved."""
    levels = _levels_by_day(ctx.storage.get(ctx.params.path), ctx.params.gauge)
    saved = ctx.checkpoint.load()
    means: dict[str, Any] = {} if saved is None else dict(saved.data)
    resumed_at = len(means)
    for day in sorted(levels.keys() - means.keys()):
        if ctx.cancelled:
            return HandlerResult.failure("cancelled", retryable=False)
        if ctx.shutdown_requested:
            return HandlerResult.interrupted()
        means[day] = round(fmean(levels[day]), 3)
        ctx.checkpoint.save(day, means)
        ctx.progress(len(means), len(levels), day)
    path = f"silver/tides/{ctx.job_id}/{ctx.params.gauge}.json"
    ctx.storage.put(path, json.dumps(means).encode())
    highest = max(means, key=lambda day: means[day])
    return HandlerResult.success(
        {"gauge": ctx.params.gauge, "days": len(means), "highest": highest, "path": path, "resumed_at": resumed_at}
    )


def _rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def _levels_by_day(content: bytes, gauge: str) -> dict[str, list[float]]:
    levels: dict[str, list[float]] = defaultdict(list)
    for row in _rows(content):
        if row["gauge"] == gauge:
            levels[row["time"][:10]].append(float(row["level"]))
    return levels
