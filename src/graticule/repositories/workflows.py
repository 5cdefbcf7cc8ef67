"""Compiled workflows, kept by content hash."""

from typing import ClassVar

from graticule.core.models import Workflow
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.queries import load_queries


class WorkflowRepository(Repository[Workflow]):
    """Keeps what jobs were started with."""

    model = Workflow
    subject: ClassVar = "workflow"
    queries: ClassVar = load_queries("workflows.sql")

    async def has(self, workflow_hash: str) -> bool:
        """Tell whether this content is kept."""
        return await self._execute("has_workflow", {"workflow_hash": workflow_hash}) == 1

    async def keep(self, workflow: Workflow) -> bool:
        """Keep a compiled workflow; False when this content was there already."""
        return await self._execute("keep_workflow", statements.parameters(workflow)) == 1
