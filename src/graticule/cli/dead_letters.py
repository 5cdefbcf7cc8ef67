"""`graticule dead-letters …`: messages that were set aside."""

from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.console import done, print_columns, say
from graticule.cli.jobs import AsJson, ServerAddress, call, print_json

if TYPE_CHECKING:
    from graticule.cli.client import Document

app = typer.Typer(help="See, requeue and discard messages that were given up after too many deliveries.")
Letter = Annotated[str, typer.Argument(metavar="ID", help="The id, as the list shows it.")]


@app.callback(invoke_without_command=True)
def dead_letters(context: typer.Context) -> None:
    """See, requeue and discard messages that were given up after too many deliveries. Without a command: list."""
    if context.invoked_subcommand is None:
        list_letters()


@app.command("list")
def list_letters(
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first."""
    found = call(server, lambda client: client.dead_letters(limit, queue))
    if as_json:
        print_json(found)
    elif not found:
        say("There are no dead letters.")
    else:
        print_columns(("id", "kind", "queue", "deliveries", "reason"), [_row(letter) for letter in found])


def _row(letter: "Document") -> tuple[str, ...]:
    return letter["id"], letter["kind"], letter["queue"], str(letter["delivery_count"]), letter["reason"]


@app.command()
def requeue(letter: Letter, server: ServerAddress = None) -> None:
    """Let a dead letter be delivered again.

    Example:

      graticule dead-letters requeue 019c5c1e3fd07e0c1d4b2a990f1c6a55_split__3_0
    """
    call(server, lambda client: client.settle_dead_letter(letter, "requeue"))
    done(f"{letter} is in its queue again.")


@app.command()
def discard(letter: Letter, server: ServerAddress = None) -> None:
    """Take a dead letter off the list for good."""
    call(server, lambda client: client.settle_dead_letter(letter, "discard"))
    done(f"{letter} is discarded.")
