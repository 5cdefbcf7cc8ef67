"""A workflow as an orchestrator announced it to the others, and where a workflow in use comes from."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, Field, ValidationError

from graticule.core.models import WorkflowDefinition
from graticule.core.models.engine import DefinitionSource
from graticule.dag.graph import Graph


class WorkflowSource(StrEnum):
    """Where a workflow in use comes from."""

    SHIPPED = "shipped"
    PACKAGE = "package"
    FOLDER = "folder"
    DATABASE = "database"  # another orchestrator announced it


class WorkflowOrigin(BaseModel):
    """Where a workflow comes from, and who announced it to the other orchestrators."""

    source: WorkflowSource = Field(
        description="`shipped`, `package` or `folder`: a file of this process. `database`: announced by another one."
    )
    announced_by: str | None = Field(None, description="The orchestrator that announced it; null before it is.")
    announced_at: datetime | None = None
    reloaded_by: str | None = Field(None, description="Who asked for the reload that announced it, if it was one.")


@dataclass(frozen=True, slots=True)
class SharedWorkflow:
    """An announced workflow; without a graph when it needs a newer release than this one."""

    workflow_hash: str
    graph: Graph | None
    source: DefinitionSource
    program_version: str
    announced_by: str
    reloaded_by: str | None
    announced_at: datetime

    @classmethod
    def read(cls, row: WorkflowDefinition) -> Self:
        """Read the graph of a row."""
        try:
            graph = Graph.model_validate(row.definition)
        except ValidationError:
            graph = None
        return cls(
            *(row.workflow_hash, graph, row.source, row.program_version),
            *(row.announced_by, row.reloaded_by, row.announced_at),
        )
