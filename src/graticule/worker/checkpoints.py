"""Where checkpoints are kept: in the database, or by way of an orchestrator's API."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import JsonValue

from graticule.core.fault_points import Commit
from graticule.core.ids import WorkerId
from graticule.handlers.context import Checkpoint, CheckpointNotSaved
from graticule.logs import get_logger
from graticule.messaging.postgres import delivery_of
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Database
from graticule.storage.protocol import Storage
from graticule.worker.outcome import NotJson, document

LONGEST_PHASE = 128

_log = get_logger(__name__)


class CheckpointStore(Protocol):
    """Keeps the last checkpoint of each node."""

    async def load(self, message: TaskMessage) -> Checkpoint | None:
        """Give the last checkpoint of the task's node."""

    async def save(self, message: TaskMessage, checkpoint: Checkpoint) -> bool:
        """Keep a checkpoint; False when the task is not this worker's any more."""


class DatabaseCheckpoints:
    """Keeps checkpoints in the database, under the task's lease."""

    def __init__(self, database: Database, worker_id: WorkerId) -> None:
        self._database = database
        self._worker_id = worker_id

    async def load(self, message: TaskMessage) -> Checkpoint | None:
        """Give the last checkpoint of the task's node."""
        async with self._database.connection() as connection:
            row = await CheckpointRepository(connection).find(job_id=message.job_id, node_id=message.node_id)
        return None if row is None else Checkpoint(row.phase, row.data, tuple(row.artifacts))

    async def save(self, message: TaskMessage, checkpoint: Checkpoint) -> bool:
        """Keep a checkpoint; False when the task is not this worker's any more."""
        async with self._database.committing(Commit.CHECKPOINT) as connection:
            return await CheckpointRepository(connection).save_under_lease(
                self._worker_id, delivery_of(message), checkpoint.phase, checkpoint.data, checkpoint.artifacts
            )


class TaskCheckpoints:
    """The checkpoints of one task, as its handler sees them."""

    def __init__(self, message: TaskMessage, store: CheckpointStore, storage: Storage) -> None:
        self._message = message
        self._store = store
        self._storage = storage

    async def load(self) -> Checkpoint | None:
        """Give the last saved phase; None when there is none, or when one of its artifacts is gone."""
        found = await self._store.load(self._message)
        if found is None:
            return None
        for artifact in found.artifacts:
            if not await self._storage.exists(artifact):
                _log.warning("a checkpoint is not used: an artifact is gone", phase=found.phase, artifact=artifact)
                return None
        return found

    async def save(
        self, phase: str, data: Mapping[str, JsonValue] | None = None, artifacts: Sequence[str] = ()
    ) -> None:
        """Keep a phase, in place of the one before; `artifacts` are the stored files that it relies on."""
        checkpoint = Checkpoint(phase, dict(data or {}), tuple(artifacts))
        self._check(checkpoint)
        if not await self._store.save(self._message, checkpoint):
            raise CheckpointNotSaved(
                f"The phase {phase!r} was not saved: the task {self._message.task_id} is no longer this worker's."
            )

    def _check(self, checkpoint: Checkpoint) -> None:
        if not 0 < len(checkpoint.phase) <= LONGEST_PHASE:
            raise CheckpointNotSaved(f"The name of a phase must have 1 to {LONGEST_PHASE} characters.")
        try:
            document([checkpoint.phase, checkpoint.data, list(checkpoint.artifacts)])
        except NotJson as error:
            raise CheckpointNotSaved(f"The data of the phase {checkpoint.phase!r} is not JSON: {error}.") from None
