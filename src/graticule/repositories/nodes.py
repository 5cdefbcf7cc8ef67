"""The nodes of jobs, as they are read; steps write them."""

from typing import ClassVar

from graticule.core.ids import JobId, NodeId
from graticule.core.models import Node
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class NodeRepository(Repository[Node]):
    """Reads and writes nodes."""

    model = Node
    subject: ClassVar = "node"
    queries: ClassVar = load_queries("nodes.sql")

    async def of_job(self, job_id: JobId, parent_node_id: NodeId | None = None) -> list[Node]:
        """Give the static nodes of a job, or the children of one of its fan-outs."""
        return await self._all("list_nodes", {"job_id": job_id, "parent_node_id": parent_node_id})
