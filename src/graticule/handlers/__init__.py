"""Handlers: the functions that workers run. This is all that their authors need.

    from graticule.handlers import HandlerContext, HandlerResult, register_handler

    @register_handler("raster.validate", queue="container-tasks", timeout_seconds=600)
    async def validate(ctx: HandlerContext) -> HandlerResult: ...

An `async def` handler shares the worker's loop: it must not block, and one that never awaits can be neither
timed out nor cancelled. A `def` handler has a child process to itself and can be killed at any time.
A task may run twice: write to a temporary name and rename, and upsert by deterministic ids.
"""

from graticule.handlers.context import Checkpoint, CheckpointNotSaved, HandlerContext, ProcessContext
from graticule.handlers.registry import RegisteredHandler, handlers, known_handlers, register_handler
from graticule.handlers.result import HandlerResult

__all__ = [
    "Checkpoint",
    "CheckpointNotSaved",
    "HandlerContext",
    "HandlerResult",
    "ProcessContext",
    "RegisteredHandler",
    "handlers",
    "known_handlers",
    "register_handler",
]
