"""What a handler is given: its task, its parameters, and its ways to the worker around it.

An `async def` handler gets a `HandlerContext`, a `def` handler, which runs in a child process, a
`ProcessContext`: the same names, but what is awaited in the one is a plain call in the other.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import JsonValue
from structlog.typing import FilteringBoundLogger

from graticule.core.errors import GraticuleError, InvalidInput
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.storage.blocking import BlockingStorage
from graticule.storage.protocol import Storage

if TYPE_CHECKING:  # a child process has neither, and need not import them
    from graticule.handlers.catalogue import Catalogue
    from graticule.repositories.database import Database


class CheckpointNotSaved(GraticuleError):
    """The phase was not saved: the task belongs to another worker by now, or its job has ended."""

    code = "checkpoint_not_saved"


class NotStaged(GraticuleError):
    """A chunk was not loaded, and nothing of it is there: the database or the worker refused it."""

    code = "not_staged"


class UnfitRows(InvalidInput):
    """A value of a chunk does not fit into its column, and no other attempt would change that."""

    code = "unfit_rows"


class TooWideRows(UnfitRows):
    """The values of a row do not fit into a row of the table together."""

    code = "too_wide_rows"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last phase that an attempt of this node has saved."""

    phase: str
    data: dict[str, JsonValue] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()


class Checkpoints(Protocol):
    """Saves phases of a node, and knows the last one."""

    async def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""

    async def save(
        self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()
    ) -> None:
        """Keep a phase, in place of the one before; `artifacts` are the stored files that it relies on."""


class BlockingCheckpoints(Protocol):
    """The same for a `def` handler."""

    def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""

    def save(self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()) -> None:
        """Keep a phase, in place of the one before; `artifacts` are the stored files that it relies on."""


class StagedRows(Protocol):
    """The rows of a chunk, on their way into the staging table."""

    result: dict[str, JsonValue]  # small; kept with the chunk

    def write(self, data: bytes) -> None:
        """Write rows: a whole stream of COPY's binary format, from its header to its trailer.

        It goes on while the next rows are prepared; what the database says against them is raised by the next call.
        """


class BlockingStaging(Protocol):
    """The staging table of the task's own job, by way of the worker: a child process has no database.

    `vector.stage` makes the table, with a ledger of the chunks that are in it.
    """

    def loaded(self, index: int) -> dict[str, JsonValue] | None:
        """Give the result of a chunk that the ledger has, or None: an attempt before this one has loaded it."""

    def chunk(self, index: int, columns: Sequence[str]) -> AbstractContextManager[StagedRows]:
        """Load a chunk: at the end of the block its rows and its place in the ledger are committed as one.

        An error, the end of this process or of its worker, a cancellation or a lost lease leaves nothing of it.
        `NotStaged` and `Unavailable` may pass with another attempt, `UnfitRows` will not.
        """


@dataclass(slots=True)
class Signals:
    """What the worker has to tell a handler while it runs."""

    cancelled: bool = False
    shutdown_requested: bool = False


@dataclass(slots=True)
class Pace:
    """How fast a task goes, by what it has told; what an earlier attempt did does not count."""

    began: float | None = None
    first: float = 0.0

    def outlook(self, done: float, total: float) -> dict[str, JsonValue]:
        """Give how many percent are done and, once that can be told, how many seconds are left."""
        now = time.monotonic()
        if self.began is None:
            self.began, self.first = now, done
        told: dict[str, JsonValue] = {"percent": round(100 * done / total, 1) if total > 0 else 100.0}
        if done > self.first and now > self.began:
            told["eta_seconds"] = round(max(0.0, total - done) * (now - self.began) / (done - self.first), 1)
        return told


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What both kinds of handlers are given."""

    task_id: TaskId
    job_id: JobId
    node_id: NodeId
    retry_count: int
    params: Any  # a dict, or an instance of the model that the handler has declared
    logger: FilteringBoundLogger
    signals: Signals
    report_progress: Callable[[dict[str, JsonValue]], None]
    traceparent: str | None = None
    delivery_count: int = 1  # above 1, a worker was lost while it ran this attempt
    pace: Pace = field(default_factory=Pace)

    @property
    def cancelled(self) -> bool:
        """Whether the job was cancelled, or failed elsewhere: nobody waits for this task any more."""
        return self.signals.cancelled

    @property
    def shutdown_requested(self) -> bool:
        """Whether the worker stops: save what matters and return `HandlerResult.interrupted()`."""
        return self.signals.shutdown_requested

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is; cheap, for only about one call a second goes further than this process."""
        told: dict[str, JsonValue] = {"done": done}
        if total is not None:
            told |= {"total": total, **self.pace.outlook(done, total)}
        if message is not None:
            told["message"] = message[:500]
        self.report_progress(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerContext(TaskContext):
    """What an `async def` handler is given."""

    storage: Storage
    checkpoint: Checkpoints
    database: "Database | None" = None  # with the rights of a worker: the catalogue, and tables of features
    catalogue: "Catalogue | None" = None  # where it is not reached in the database

    @property
    def pool(self) -> "Database | None":
        """The database, as earlier handlers call it."""
        return self.database

    @property
    def blob_repository(self) -> Storage:
        """The storage, as earlier handlers call it."""
        return self.storage


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessContext(TaskContext):
    """What a `def` handler is given, in its child process."""

    storage: BlockingStorage
    checkpoint: BlockingCheckpoints
    staging: BlockingStaging | None = None

    @property
    def blob_repository(self) -> BlockingStorage:
        """The storage, as earlier handlers call it."""
        return self.storage
