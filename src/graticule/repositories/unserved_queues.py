"""Queues whose tasks wait although no live worker serves them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel

from graticule.core.ids import JobId, NodeId, OwnerId, TaskId
from graticule.core.models.fields import MAX_PRIORITY
from graticule.repositories.queries import load_queries
from graticule.repositories.views import Views


class WaitingTask(BaseModel):
    """A task that waits for a worker."""

    task_id: TaskId
    job_id: JobId
    node_id: NodeId
    priority: int
    turn: int
    available_at: datetime


class UnservedQueueRepository(Views):
    """Finds what waits for a worker that is not there; a worker is live if it was heard from within `threshold`."""

    queries: ClassVar = load_queries("unserved_queues.sql")

    async def served(self, threshold: float) -> frozenset[str]:
        """Return the queues that live workers serve."""
        return frozenset(row["queue"] for row in await self._rows("served_queues", {"threshold": threshold}))

    async def unserved(self, threshold: float) -> list[str]:
        """Return the queues in which tasks wait and that no live worker serves."""
        return [row["queue"] for row in await self._rows("unserved_queues", {"threshold": threshold})]

    async def waiting(
        self, queue: str, since: datetime, until: datetime, *, after: WaitingTask | None, limit: int
    ) -> list[WaitingTask]:
        """Return tasks that wait and became available then, the most urgent first, after the one that was seen last."""
        seen = (MAX_PRIORITY, -1, since, "") if after is None else _place(after)
        after_priority, after_turn, after_at, after_id = seen
        parameters: Mapping[str, Any] = {
            "queue": queue,
            "since": since,
            "until": until,
            "after_priority": after_priority,
            "after_turn": after_turn,
            "after_at": after_at,
            "after_id": after_id,
            "limit": limit,
        }
        return await self._views(WaitingTask, "waiting_tasks", parameters)

    async def note(
        self, owner_id: OwnerId, queue: str, tasks: Sequence[WaitingTask], command: str, now: datetime
    ) -> int:
        """Write an event for each node of the owner's jobs that waits, once; return how many."""
        parameters: Mapping[str, Any] = {
            "owner_id": owner_id,
            "queue": queue,
            "job_ids": [task.job_id for task in tasks],
            "node_ids": [task.node_id for task in tasks],
            "command": command,
            "now": now,
        }
        (row,) = await self._rows("note_waiting_nodes", parameters)
        return int(row["events"])


def _place(task: WaitingTask) -> tuple[int, int, datetime, str]:
    return task.priority, task.turn, task.available_at, task.task_id
