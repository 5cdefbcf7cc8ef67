"""`graticule dead-letters …`: messages that were set aside."""

from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import AsJson, ServerAddress, as_typed, ask, ask_all, page_size, print_json
from graticule.cli.console import done, print_columns, say

if TYPE_CHECKING:
    from graticule.client import Document

app = typer.Typer()
Letter = Annotated[str, typer.Argument(metavar="ID", help="The id, as the list shows it.")]


@app.callback(invoke_without_command=True)
def dead_letters(context: typer.Context) -> None:
    """See, requeue and discard tasks and job messages that were given up. Without a command: list.

    A dead letter is a message that nobody tries to deliver any more, set aside
    with the reason. Either it is a task that was delivered 10 times without a
    result, as when its worker dies of it each time: its node has failed for good.
    Or it asks for a job, and cannot be accepted: its workflow is not known, or
    its inputs are wrong.

    Mend the cause and requeue it, or discard it.
    """
    if context.invoked_subcommand is None:
        as_typed(context, "list")


@app.command("list")
def list_letters(
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first: what was given up, in which queue, after how many deliveries, and why."""
    from graticule.client import calls, documents

    found = ask_all(server, documents(calls.list_dead_letters(queue=queue, limit=page_size(limit))), limit)
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
    """Let a dead letter be delivered again, with a fresh number of deliveries.

    If the job of a task has failed because of it, the job goes on with a new
    attempt, as with `graticule retry`: what completed is kept. A message that
    asks for a job is read again, and may make the job this time.

    Example:

      graticule dead-letters requeue 019c5c1e3fd07e0c1d4b2a990f1c6a55_split__3_0
    """
    from graticule.client import calls

    ask(server, calls.requeue_dead_letter(letter))
    done(f"{letter} is in its queue again.")


@app.command()
def discard(letter: Letter, server: ServerAddress = None) -> None:
    """Take a dead letter off the list for good: it is never delivered.

    The job of a task stays as it is: one that has failed can still go on with
    `graticule retry`. A message that asks for a job makes none.

    Example:

      graticule dead-letters discard 019c5c1e3fd07e0c1d4b2a990f1c6a55_split__3_0
    """
    from graticule.client import calls

    ask(server, calls.discard_dead_letter(letter))
    done(f"{letter} is discarded.")
