"""How a handler ends early: stopped from outside, or because the file or the options cannot be used."""

from collections.abc import Awaitable, Callable
from functools import wraps

from graticule.core.errors import InvalidInput
from graticule.handlers.context import HandlerContext, ProcessContext, TaskContext
from graticule.handlers.findings import Rejected
from graticule.handlers.result import HandlerResult

Handler = Callable[[ProcessContext], HandlerResult]
AsyncHandler = Callable[[HandlerContext], Awaitable[HandlerResult]]


class Stopped(Exception):
    """Nobody waits for this task any more, or its worker stops."""

    def __init__(self, result: HandlerResult) -> None:
        super().__init__("stopped")
        self.result = result


def go_on(ctx: TaskContext) -> None:
    """Raise `Stopped` when the task is not to be continued."""
    if ctx.cancelled:
        raise Stopped(HandlerResult.failure("cancelled", retryable=False))
    if ctx.shutdown_requested:
        raise Stopped(HandlerResult.interrupted())


def answering(handler: Handler) -> Handler:
    """Let a `def` handler end by raising what tells how: the task is stopped, the file rejected, an option refused."""

    @wraps(handler)
    def answered(ctx: ProcessContext) -> HandlerResult:
        try:
            return handler(ctx)
        except (Stopped, Rejected, InvalidInput) as told:
            return _answer(told)

    return answered


def answering_async(handler: AsyncHandler) -> AsyncHandler:
    """Let an `async def` handler end in the same ways."""

    @wraps(handler)
    async def answered(ctx: HandlerContext) -> HandlerResult:
        try:
            return await handler(ctx)
        except (Stopped, Rejected, InvalidInput) as told:
            return _answer(told)

    return answered


def _answer(told: Stopped | Rejected | InvalidInput) -> HandlerResult:
    if isinstance(told, Stopped):
        return told.result
    report = told.report() if isinstance(told, Rejected) else None
    return HandlerResult.failure(str(told), retryable=False, report=report)
