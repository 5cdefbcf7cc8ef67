"""Runs the handler of a task: in this loop, or in a child process."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from graticule.core.errors import GraticuleError
from graticule.core.states import ResultStatus
from graticule.core.trace_context import continued, current_traceparent, parse_traceparent
from graticule.handlers.catalogue import Catalogue
from graticule.handlers.context import HandlerContext
from graticule.handlers.registry import RegisteredHandler
from graticule.logs import bound, get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.database import Database
from graticule.storage.protocol import Storage
from graticule.telemetry import Kind, Span, span
from graticule.worker.checkpoints import CheckpointStore, TaskCheckpoints
from graticule.worker.outcome import (
    InvalidParams,
    Outcome,
    failed,
    outcome_of,
    outcome_of_error,
    trace_of,
    validated,
)
from graticule.worker.pool import ProcessPool
from graticule.worker.run import Ending, Run
from graticule.worker.staging import Staging

CatalogueOf = Callable[[TaskMessage], Catalogue]

_log = get_logger(__name__)
_ENDED: Final = {
    Ending.LOST: "The worker lost the task.",
    Ending.HANDED_BACK: "The worker stopped.",
}
_WITHDRAWN: Final = Outcome(ResultStatus.CANCELLED, error_message="The job does not want the task any more.")


def runnable(known: Mapping[str, RegisteredHandler], *, has_database: bool) -> list[str]:
    """Name the handlers whose tasks a worker can run; the others fail here at once."""
    unable = set() if has_database else {name for name, each in known.items() if each.needs_database}
    if unable:
        _log.warning("there is no database: these handlers cannot run here", handlers=sorted(unable))
    return [name for name in known if name not in unable]


@contextmanager
def on_behalf_of(message: TaskMessage) -> Iterator[None]:
    """Do what is in the block for a task: log lines name it and its job, and it belongs to the job's trace."""
    place = parse_traceparent(message.traceparent)
    with bound(task_id=message.task_id, job_id=message.job_id, node_id=message.node_id), continued(place):
        yield


class Executor:
    """Runs one task to its outcome."""

    def __init__(
        self,
        pool: ProcessPool,
        checkpoints: CheckpointStore,
        storage: Storage,
        database: Database | None = None,
        catalogue: CatalogueOf | None = None,
    ) -> None:
        """Let handlers write the catalogue as `catalogue` says; without it, in the database."""
        self._pool = pool
        self._checkpoints = checkpoints
        self._storage = storage
        self._database = database
        self._catalogue = catalogue
        self._staging = Staging(database)

    async def execute(self, run: Run) -> Outcome:
        """Run the handler; whatever it does, there is an outcome. Only a cancellation of our own goes on."""
        if run.handler is None:
            return failed(f"This worker has no handler {run.message.handler!r}; another one may have it.")
        if run.handler.needs_database and self._database is None:
            return failed(_without_database(run.message), retryable=False)
        with on_behalf_of(run.message), _handling(run.message, run.handler) as handling:
            outcome = await self._attempt(run, run.handler)
            outcome = outcome if run.ending is None else _made_to_end(run, run.ending, outcome)
            _record(handling, outcome)
        return outcome

    async def _attempt(self, run: Run, handler: RegisteredHandler) -> Outcome:
        try:
            checkpoints = TaskCheckpoints(run.message, self._checkpoints, self._storage)
            if run.in_process:
                return await self._pool.run(run, handler, checkpoints, self._staging.of(run.message))
            run.begin(run.message.timeout_seconds)
            return outcome_of(await handler.function(self._context(run, handler, checkpoints)))
        except InvalidParams as error:
            return failed(str(error), retryable=False)
        except asyncio.CancelledError as error:
            if run.ending is None and _is_cancelled_from_outside():
                raise
            return outcome_of_error(error)
        except BaseException as error:
            trace = {} if isinstance(error, GraticuleError) else {"exception": trace_of(error)}
            _log.warning("the handler raised", handler=handler.name, error=type(error).__name__, **trace)
            return outcome_of_error(error)

    def _context(self, run: Run, handler: RegisteredHandler, checkpoints: TaskCheckpoints) -> HandlerContext:
        message = run.message
        return HandlerContext(
            task_id=message.task_id,
            job_id=message.job_id,
            node_id=message.node_id,
            retry_count=message.retry_count,
            traceparent=current_traceparent(),
            delivery_count=message.delivery_count,
            params=validated(handler.params, message.params),
            logger=get_logger(f"graticule.handlers.{handler.name}"),
            signals=run.signals,
            report_progress=run.note_progress,
            storage=self._storage.limited_to(message.sources),
            checkpoint=checkpoints,
            database=self._database,
            catalogue=None if self._catalogue is None else self._catalogue(message),
        )


def _handling(message: TaskMessage, handler: RegisteredHandler) -> Span:
    """Give the span of one attempt; how long its message waited is one of its attributes."""
    return span(
        f"handle {handler.name}",
        Kind.CONSUMER,
        handler=handler.name,
        queue=message.queue,
        task_id=message.task_id,
        job_id=message.job_id,
        node_id=message.node_id,
        retry_count=message.retry_count,
        delivery_count=message.delivery_count,
        waited_seconds=message.waited_seconds,
    )


def _record(handling: Span, outcome: Outcome) -> None:
    handling.set({"graticule.status": outcome.status.value})
    if outcome.status is not ResultStatus.COMPLETED:
        handling.fail(outcome.error_message or outcome.status.value)


def _without_database(message: TaskMessage) -> str:
    return (
        f"{message.handler} needs the database, and this worker has none. Give the node a `queue` that workers with a "
        f"GRATICULE_DATABASE_URL serve, or set it for the workers of {message.queue}."
    )


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _made_to_end(run: Run, ending: Ending, outcome: Outcome) -> Outcome:
    if ending is Ending.WITHDRAWN:
        return outcome if outcome.status is ResultStatus.COMPLETED else _WITHDRAWN
    if ending is Ending.TIMED_OUT:
        return failed(f"The handler was ended after its timeout of {run.message.timeout_seconds} s.")
    return failed(_ENDED[ending])
