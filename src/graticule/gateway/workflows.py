"""`/api/admin/workflows`: what can be submitted, and what jobs have run of it. Operators only.

It works with every orchestrator down: what they announced is in the database, and so is what jobs ran.
"""

import asyncio
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from graticule.config import Settings
from graticule.core.ids import WorkflowId
from graticule.core.models import Workflow
from graticule.core.models.fields import JsonObject, Short, WorkflowHashKey
from graticule.dag.graph import Graph, InputSpec
from graticule.dag.problems import Problem
from graticule.gateway.services import ForOperators, TheSettings
from graticule.handlers.registry import known_handlers
from graticule.http.callers import CallerWhoOperates
from graticule.http.paging import Page
from graticule.http.problems import problem_responses
from graticule.repositories.operator_views import WorkflowVersion
from graticule.services.operator_reading import MOST_FOUND
from graticule.services.shared_workflows import WorkflowOrigin
from graticule.services.workflow_library import WorkflowLibrary, load, workflow_folders
from graticule.services.workflow_packages import installed_packages

router = APIRouter(
    prefix="/api/admin/workflows", tags=["workflows"], responses=problem_responses(401, 403, 422, 429, 503)
)

WorkflowPath = Annotated[Short, Path(description="The workflow.", examples=["demo"])]
HashPath = Annotated[WorkflowHashKey, Path(description="The hash of one version, as jobs name it.")]

_MISSING: Final = problem_responses(404)


class WorkflowSummary(WorkflowOrigin):
    """A workflow that can be submitted."""

    workflow_id: str
    name: str
    version: str
    description: str
    inputs: dict[str, InputSpec]
    workflow_hash: str


class WorkflowPage(Page[WorkflowSummary]):
    """The workflows, and the problems of files: those with an error did not load."""

    problems: list[Problem]


class WorkflowInFull(WorkflowSummary):
    """A workflow with its compiled graph, and what jobs ran of it."""

    graph: JsonObject
    versions: list[WorkflowVersion] = Field(description=f"Those that jobs ran, newest first, at most {MOST_FOUND}.")


class WorkflowThatRan(WorkflowVersion):
    """A version of a workflow as jobs ran it, whatever became of its file since."""

    workflow_id: str
    name: str
    graph: JsonObject

    @classmethod
    def of(cls, kept: Workflow) -> Self:
        """Show a workflow that was kept."""
        return cls.model_validate({**dict(kept), "graph": kept.definition})


async def _read(settings: TheSettings, reader: ForOperators, caller: CallerWhoOperates) -> WorkflowLibrary:
    """Return the workflows in use: what orchestrators announced, and the files here until they do."""
    own = await asyncio.to_thread(_load, settings)
    return own.with_shared(await reader.shared_workflows())


def _load(settings: Settings) -> WorkflowLibrary:
    return load(workflow_folders(settings), known_handlers(), installed_packages())


Library = Annotated[WorkflowLibrary, Depends(_read)]


@router.get("")
async def workflows(library: Library, caller: CallerWhoOperates) -> WorkflowPage:
    """List the workflows in use, and the problems of files."""
    items = [WorkflowSummary(**_summary(library, graph)) for _, graph in sorted(library.graphs.items())]
    return WorkflowPage(items=items, problems=list(library.problems))


@router.get("/{workflow_id}", responses=_MISSING)
async def one_workflow(
    workflow_id: WorkflowPath, library: Library, reader: ForOperators, caller: CallerWhoOperates
) -> WorkflowInFull:
    """Give one workflow with its compiled graph, and the versions that jobs ran."""
    graph = library.get(workflow_id)
    versions = await reader.workflow_versions(WorkflowId(workflow_id))
    return WorkflowInFull(**_summary(library, graph), graph=graph.model_dump(mode="json"), versions=versions)


@router.get("/{workflow_id}/versions/{workflow_hash}", responses=_MISSING)
async def one_version(
    workflow_id: WorkflowPath, workflow_hash: HashPath, reader: ForOperators, caller: CallerWhoOperates
) -> WorkflowThatRan:
    """Give one version of a workflow that jobs ran."""
    return WorkflowThatRan.of(await reader.workflow_version(WorkflowId(workflow_id), workflow_hash))


def _summary(library: WorkflowLibrary, graph: Graph) -> dict[str, Any]:
    return {
        **dict(library.origin(graph.workflow_id)),
        "workflow_id": graph.workflow_id,
        "name": graph.name,
        "version": graph.version,
        "description": graph.description,
        "inputs": graph.inputs,
        "workflow_hash": graph.content_hash,
    }
