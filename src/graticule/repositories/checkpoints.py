"""Checkpoints: where the next attempt of a node goes on."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic import JsonValue

from graticule.core.ids import WorkerId
from graticule.core.models import Checkpoint
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries
from graticule.repositories.tasks import Delivery


class CheckpointRepository(Repository[Checkpoint]):
    """Reads and writes the last checkpoint of a node."""

    model = Checkpoint
    subject: ClassVar = "checkpoint"
    queries: ClassVar = load_queries("checkpoints.sql")

    async def save_under_lease(
        self,
        worker_id: WorkerId,
        delivery: Delivery,
        phase: str,
        data: Mapping[str, JsonValue],
        artifacts: Sequence[str],
    ) -> bool:
        """Keep this phase of a task that the worker holds, and tell the job's owner; False when the lease was lost."""
        given = {
            "worker_id": worker_id,
            "task_id": delivery.task_id,
            "delivery_count": delivery.delivery_count,
            "phase": phase,
            "data": Jsonb(dict(data)),
            "artifacts": list(artifacts),
        }
        query = sql.SQL(self.queries["save_checkpoint_under_lease"])
        return await self._fetch_one(query, given, "save the checkpoint") is not None
