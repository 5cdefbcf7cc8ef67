"""`/api/v1/workflows`: what can be submitted, and what is wrong with the files that cannot. Operators only."""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from graticule.api.access import Operator, OperatorOnly
from graticule.api.diagrams import MERMAID, GraphFormat, diagram
from graticule.api.services import Jobs, Workflows, WorkflowSharing
from graticule.core.errors import InvalidInput
from graticule.core.models.fields import JsonObject, Short
from graticule.dag.compile import Compiled, Problem, Severity, compile_workflow
from graticule.dag.graph import Graph, InputSpec
from graticule.handlers.registry import known_handlers
from graticule.http.paging import Page
from graticule.http.problems import problem_responses
from graticule.services.shared_workflows import WorkflowOrigin
from graticule.services.workflow_library import WorkflowLibrary
from graticule.services.workflows import Workflows as WorkflowsInUse

router = APIRouter(
    prefix="/api/v1/workflows",
    tags=["workflows"],
    dependencies=[OperatorOnly],
    responses=problem_responses(401, 403, 503),
)

_EXAMPLE: Final = """workflow_id: hello
name: Hello
version: 1
nodes:
  start: {type: start, next: greet}
  greet: {handler: hello_world, params: {name: World}, next: end}
  end: {type: end}
"""
_YAML_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The workflow's YAML.",
        "content": {"application/yaml": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}


class WorkflowSummary(WorkflowOrigin):
    """A workflow that can be submitted."""

    workflow_id: str
    name: str
    version: str
    description: str
    inputs: dict[str, InputSpec]
    workflow_hash: str
    file: str | None


class WorkflowDetail(WorkflowSummary):
    """A workflow with its compiled graph."""

    graph: JsonObject


class InstanceProblems(BaseModel):
    """What is wrong with the files of another orchestrator."""

    owner_id: str
    hostname: str
    problems: list[str]


class WorkflowPage(Page[WorkflowSummary]):
    """The workflows, and the problems of files: those with an error did not load."""

    problems: list[Problem]
    other_problems: list[InstanceProblems] = Field(description="What keeps files of other orchestrators from loading.")


class Validation(BaseModel):
    """What became of a workflow's text."""

    valid: bool
    problems: list[Problem]
    graph: JsonObject | None = Field(description="The compiled graph; null when there is an error.")


@router.get("")
async def list_workflows(workflows: Workflows) -> WorkflowPage:
    """List the workflows that can be submitted, and the problems of files."""
    return _page(workflows)


@router.post("/validate", openapi_extra=_YAML_BODY, responses=problem_responses(413, 422))
async def validate(request: Request) -> Validation:
    """Compile a workflow's YAML and tell all that is wrong with it; nothing is kept."""
    compiled = await asyncio.to_thread(_compiled, await request.body())
    errors = any(problem.severity is Severity.ERROR for problem in compiled.problems)
    graph = None if compiled.graph is None else compiled.graph.model_dump(mode="json")
    return Validation(valid=graph is not None and not errors, problems=list(compiled.problems), graph=graph)


def _compiled(body: bytes) -> Compiled:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("The workflow is not UTF-8 text.") from None
    return compile_workflow(text, file="request", handlers=known_handlers())


@router.post("/reload")
async def reload(workflows: Workflows, sharing: WorkflowSharing, operator: Operator) -> WorkflowPage:
    """Read the files of this orchestrator again and announce what changed to the others.

    Files with an error are listed in `problems`; the last sound definition of each stays in use. A workflow that no
    orchestrator has in its files any more is withdrawn.
    """
    await sharing.reload(operator)
    return _page(workflows)


@router.get("/{workflow_id}", response_model=WorkflowDetail, responses={**MERMAID, **problem_responses(404, 422)})
async def one_workflow(
    workflow_id: Annotated[Short, Path(description="The workflow.")],
    workflows: Workflows,
    jobs: Jobs,
    shape: Annotated[GraphFormat, Query(alias="format")] = GraphFormat.JSON,
) -> WorkflowDetail | PlainTextResponse:
    """Give one workflow with its compiled graph."""
    await jobs.learn_workflows([workflow_id])
    library = workflows.library
    graph = library.get(workflow_id)
    if shape is GraphFormat.MERMAID:
        return diagram(graph)
    summary = _summary(library, graph)
    return WorkflowDetail(**dict(summary), graph=graph.model_dump(mode="json"))


def _page(workflows: WorkflowsInUse) -> WorkflowPage:
    library = workflows.library
    others = [
        InstanceProblems(owner_id=other.owner_id, hostname=other.hostname, problems=other.workflow_problems)
        for other in workflows.others
        if other.workflow_problems
    ]
    items = [_summary(library, graph) for _, graph in sorted(library.graphs.items())]
    return WorkflowPage(items=items, problems=list(library.problems), other_problems=others)


def _summary(library: WorkflowLibrary, graph: Graph) -> WorkflowSummary:
    file = library.files.get(graph.workflow_id)
    return WorkflowSummary(
        **dict(library.origin(graph.workflow_id)),
        workflow_id=graph.workflow_id,
        name=graph.name,
        version=graph.version,
        description=graph.description,
        inputs=graph.inputs,
        workflow_hash=graph.content_hash,
        file=None if file is None else str(file),
    )
