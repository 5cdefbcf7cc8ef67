"""`graticule command …`: direct commands, done when they are answered."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graticule.cli.asking import AsJson, ServerAddress, ask, print_models, with_client
from graticule.cli.console import done, print_columns, say
from graticule.cli.inputs import split_pairs, typed_inputs

if TYPE_CHECKING:
    from graticule.client import AsyncClient
    from graticule.client.models import CommandListItem, CommandResult

app = typer.Typer(no_args_is_help=True, help="Give direct commands: publish metadata, mend an asset, forget caches.")


@app.command("list")
def list_commands(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """List the commands, and what each of them takes."""
    from graticule.client import calls

    found = ask(server, calls.list_commands()).items
    if as_json:
        print_models(found)
    else:
        print_columns(("command", "takes", "what it does"), [_row(each) for each in found])


def _row(command: "CommandListItem") -> tuple[str, ...]:
    return command.name, ", ".join(_properties(command)), command.summary


def _properties(command: "CommandListItem") -> dict[str, Any]:
    found: Any = command.parameters.get("properties", {})
    return dict(found)


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The command, as `list` shows it.")],
    parameters: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="What it takes.")] = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Give a command, and tell what it has done. To repeat one does no harm.

    Example:

      graticule command run metadata.publish asset_id=0123456789abcdef0123456789abcdef version_ordinal=0
    """
    pairs = split_pairs(parameters or [])
    found = with_client(server, lambda client: _run(client, name, pairs))
    if as_json:
        print_models(found)
    elif found.outcome == "changed":
        done(f"{name} is done. {_told(found.details)}".rstrip())
    else:
        say(f"{name}: it was so already.")


async def _run(client: "AsyncClient", name: str, pairs: dict[str, str]) -> "CommandResult":
    """Send each value as what the command declares it to be."""
    from graticule.client import calls

    known = (await client.send(calls.list_commands())).items if pairs else []
    declared = next((_properties(each) for each in known if each.name == name), {})
    return await client.send(calls.run_command(name, typed_inputs(pairs, declared)))


def _told(details: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in details.items() if value)
