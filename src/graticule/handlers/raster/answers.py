"""How a raster handler ends early: stopped from outside, or because the file or the options cannot be used."""

from collections.abc import Callable
from functools import wraps

from graticule.core.errors import InvalidInput
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.result import HandlerResult

Handler = Callable[[ProcessContext], HandlerResult]


class Stopped(Exception):
    """Nobody waits for this task any more, or its worker stops."""

    def __init__(self, result: HandlerResult) -> None:
        super().__init__("stopped")
        self.result = result


def go_on(ctx: ProcessContext) -> None:
    """Raise `Stopped` when the task is not to be continued."""
    if ctx.cancelled:
        raise Stopped(HandlerResult.failure("cancelled", retryable=False))
    if ctx.shutdown_requested:
        raise Stopped(HandlerResult.interrupted())


def answering(handler: Handler) -> Handler:
    """Let a handler end by raising what tells how: the task is stopped, the file rejected, an option refused."""

    @wraps(handler)
    def answered(ctx: ProcessContext) -> HandlerResult:
        try:
            return handler(ctx)
        except Stopped as stopped:
            return stopped.result
        except Rejected as rejected:
            return HandlerResult.failure(str(rejected), retryable=False, report=rejected.report())
        except InvalidInput as refused:
            return HandlerResult.failure(str(refused), retryable=False)

    return answered
