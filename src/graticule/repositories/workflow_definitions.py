"""The workflows that orchestrators announce to each other, and which of them each instance has in its files."""

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from psycopg.types.json import Jsonb
from pydantic import BaseModel

from graticule.core.ids import OwnerId, WorkflowHash, WorkflowId
from graticule.core.models import WorkflowDefinition
from graticule.core.models.engine import DefinitionSource
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries


class DefinitionKey(BaseModel):
    """A definition that was announced at some time, without its content."""

    workflow_id: WorkflowId
    workflow_hash: WorkflowHash
    is_current: bool
    source: DefinitionSource
    program_version: str
    is_reload: bool


class WorkflowHolder(BaseModel):
    """Another orchestrator, with the workflows of its own files."""

    owner_id: OwnerId
    hostname: str
    program_version: str
    workflows: dict[WorkflowId, WorkflowHash]
    workflow_problems: list[str]
    has_session: bool


class WorkflowDefinitionRepository(Repository[WorkflowDefinition]):
    """Reads and writes announced workflows."""

    model = WorkflowDefinition
    subject: ClassVar = "workflow definition"
    queries: ClassVar = load_queries("workflow_definitions.sql")

    async def lock(self) -> None:
        """Keep others from announcing until the transaction ends."""
        await self._execute("lock_definitions", {})

    async def keys(self) -> list[DefinitionKey]:
        """Return everything that was announced, without the contents."""
        with domain_errors("read the workflow definitions"):
            rows = await (await self._connection.execute(self.queries["definition_keys"])).fetchall()
        return [DefinitionKey.model_validate(row) for row in rows]

    async def current(self, ids: Collection[str] | None = None) -> list[WorkflowDefinition]:
        """Return the current definitions, of all workflows or of some."""
        return await self._all("current_definitions", {"ids": None if ids is None else list(ids)})

    async def announce(self, definition: WorkflowDefinition) -> None:
        """Make a definition the current one of its workflow."""
        await self._execute(
            "supersede_definition", {"workflow_id": definition.workflow_id, "now": definition.announced_at}
        )
        await self._execute("put_definition", statements.parameters(definition))

    async def withdraw(self, ids: Collection[str]) -> None:
        """Remove workflows, with all that was ever announced of them."""
        await self._execute("withdraw_definitions", {"ids": list(ids)})

    async def notify(self) -> None:
        """Have the other orchestrators read what was written, once it is committed."""
        await self._execute("notify_workflows", {})

    async def holders(self, owner_id: OwnerId, threshold: float) -> list[WorkflowHolder]:
        """Return the other instances that are open and were heard from within `threshold` seconds."""
        with domain_errors("read the orchestrators"):
            cursor = await self._connection.execute(
                self.queries["workflow_holders"], {"owner_id": owner_id, "threshold": threshold}
            )
            return [WorkflowHolder.model_validate(row) for row in await cursor.fetchall()]

    async def note_files(self, owner_id: OwnerId, workflows: Mapping[str, str], problems: Sequence[str]) -> bool:
        """Record what an instance has in its files; False when the row says so already."""
        parameters = {"owner_id": owner_id, "workflows": Jsonb(dict(workflows)), "problems": list(problems)}
        return await self._execute("note_workflow_files", parameters) == 1
