"""`/api/v1/commands`: direct commands, answered when they are done. Operators only, and admins for the schema."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, JsonValue, ValidationError

from graticule.api.services import Commands
from graticule.core.exchange import Asked
from graticule.core.models.fields import JsonObject
from graticule.core.permissions import Deed
from graticule.http.callers import CallerWhoOperates
from graticule.http.paging import Page
from graticule.http.problems import problem_responses
from graticule.services.commands import COMMANDS, CommandResult, command_named

router = APIRouter(prefix="/api/v1/commands", tags=["commands"], responses=problem_responses(401, 403, 422, 429, 503))


def _example(model: type[Asked]) -> dict[str, Any]:
    return {name: field.examples[0] for name, field in model.model_fields.items() if field.examples}


CommandName = Annotated[str, Path(max_length=64, description="The command.", examples=["cache.invalidate"])]
Parameters = Annotated[
    dict[str, JsonValue],
    Body(
        default_factory=dict,
        description="What the command takes; `GET /api/v1/commands` has the schema of each.",
        openapi_examples={
            name: {"summary": command.summary, "value": _example(command.parameters)}
            for name, command in COMMANDS.items()
        },
    ),
]


class CommandListItem(BaseModel):
    """A command that can be given."""

    name: str
    summary: str
    deed: Deed
    parameters: JsonObject


@router.get("")
async def list_commands(_: CallerWhoOperates) -> Page[CommandListItem]:
    """List the commands with the schemas of their parameters."""
    return Page(
        items=[
            CommandListItem(
                name=name, summary=each.summary, deed=each.deed, parameters=each.parameters.model_json_schema()
            )
            for name, each in COMMANDS.items()
        ]
    )


@router.post("/{name}", responses=problem_responses(404, 409, 413))
async def execute_command(
    name: CommandName, parameters: Parameters, service: Commands, caller: CallerWhoOperates
) -> CommandResult:
    """Carry a command out; one that finds nothing to do says `unchanged`."""
    return await service.execute(name, _checked(command_named(name).parameters, parameters), caller)


def _checked(model: type[Asked], given: dict[str, Any]) -> Asked:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from error
