"""The nodes of jobs."""

from datetime import datetime
from typing import ClassVar

from psycopg.types.json import Jsonb
from pydantic import JsonValue

from graticule.core.errors import IllegalTransition, OwnershipLost
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.models import Node
from graticule.core.states import NODE, NodeStatus
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.jobs import Ownership
from graticule.repositories.queries import load_queries


class NodeRepository(Repository[Node]):
    """Reads and writes nodes."""

    model = Node
    subject: ClassVar = "node"
    queries: ClassVar = load_queries("nodes.sql")

    async def of_job(self, job_id: JobId, parent_node_id: NodeId | None = None) -> list[Node]:
        """Give the static nodes of a job, or the children of one of its fan-outs."""
        return await self._all("list_nodes", {"job_id": job_id, "parent_node_id": parent_node_id})

    async def transition(
        self,
        job_id: JobId,
        node_id: NodeId,
        new: NodeStatus,
        owner: Ownership,
        now: datetime,
        *,
        task_id: TaskId | None = None,
        worker_id: WorkerId | None = None,
        output: JsonValue = None,
        output_ref: str | None = None,
        error_message: str | None = None,
        ready_at: datetime | None = None,
        deadline_at: datetime | None = None,
    ) -> Node:
        """Move a node to a new state, as the owner of its job; `ready_at` lets a retry wait for its backoff."""
        fence = {"owner_id": owner.owner_id, "owner_epoch": owner.owner_epoch}
        values = {
            **fence,
            "now": now,
            "task_id": task_id,
            "worker_id": worker_id,
            "output": None if output is None else Jsonb(output),
            "output_ref": output_ref,
            "error_message": error_message,
            "ready_at": ready_at,
            "deadline_at": deadline_at,
        }
        key = {"job_id": job_id, "node_id": node_id}
        try:
            return await self._transition("transition_node", NODE, new, key, values)
        except IllegalTransition as error:
            await self._check_held(job_id, owner, error)
            raise

    async def _check_held(self, job_id: JobId, owner: Ownership, cause: IllegalTransition) -> None:
        """Tell a lost job from a step that the table does not have: the owner must drop the one, not the other."""
        parameters = {"job_id": job_id, "owner_id": owner.owner_id, "owner_epoch": owner.owner_epoch}
        with domain_errors("check the job's owner"):
            cursor = await self._connection.execute(self.queries["holds_job"], parameters)
            row = await cursor.fetchone()
        if not (row and row["holds"]):
            raise OwnershipLost(f"Job {job_id} is no longer held in term {owner.owner_epoch}.") from cause
