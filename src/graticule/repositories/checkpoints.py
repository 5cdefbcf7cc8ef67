"""Checkpoints: where the next attempt of a node goes on."""

from typing import ClassVar

from graticule.core.models import Checkpoint
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class CheckpointRepository(Repository[Checkpoint]):
    """Reads and writes the last checkpoint of a node."""

    model = Checkpoint
    subject: ClassVar = "checkpoint"
    queries: ClassVar = load_queries("checkpoints.sql")

    async def save(self, checkpoint: Checkpoint) -> None:
        """Keep this phase in place of the one before."""
        await self._execute("save_checkpoint", statements.parameters(checkpoint))
