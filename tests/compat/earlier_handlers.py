"""Handlers as earlier packages have them, in their spelling: nothing of them knows of this release."""

from typing import Any

from graticule.handlers import HandlerResult, register_handler

NOTE = "silver/earlier/note.txt"


@register_handler("earlier_report", queue="functionapp-tasks", timeout_seconds=60)
async def report(ctx: Any) -> HandlerResult:
    """Ask the database, and leave a note in the storage."""
    ctx.logger.info("a report is written")
    async with ctx.pool.connection() as connection:
        cursor = await connection.execute("SELECT current_user AS login, %s::int + 1 AS answer", [ctx.params["number"]])
        row = await cursor.fetchone()
    await ctx.blob_repository.put(NOTE, ctx.params["text"].encode())
    ids = {"task_id": ctx.task_id, "job_id": ctx.job_id, "node_id": ctx.node_id}
    return HandlerResult(success=True, output={**row, **ids}, metrics={"rows": 1})


@register_handler("earlier_count", queue="container-tasks", timeout_seconds=60)
def count(ctx: Any) -> HandlerResult:
    """Read the note, in a process of its own."""
    text = ctx.blob_repository.get(ctx.params["path"]).decode()
    return HandlerResult(success=True, output={"characters": len(text), "text": text})


@register_handler("earlier_failure", queue="functionapp-tasks", timeout_seconds=60)
async def fail(ctx: Any) -> HandlerResult:
    return HandlerResult(success=False, output={}, error_message=f"no CRS in {ctx.params['path']}")
