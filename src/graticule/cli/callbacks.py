"""`graticule callbacks …`: what is told to partners' servers when processing ends."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import AsJson, Limit, ServerAddress, ask, ask_all, local_time, page_size, print_models
from graticule.cli.console import done, print_columns, say

if TYPE_CHECKING:
    from graticule.client.models import Delivery

app = typer.Typer(no_args_is_help=True, help="See the callbacks to partners' servers, and send them anew.")


class State(StrEnum):
    """Where a callback stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@app.command("list")
def list_deliveries(
    *,
    state: Annotated[State | None, typer.Option(help="Only those that stand there.")] = None,
    job: Annotated[str | None, typer.Option(help="Only those of this job.")] = None,
    limit: Limit = 50,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List callbacks, newest first: to whom, how often they were tried, and what came of it.

    Example:

      graticule callbacks list --state given_up
    """
    from graticule.client import calls

    wanted = calls.list_deliveries(state=state, job_id=job, limit=page_size(limit))
    found = ask_all(server, wanted, limit)
    if as_json:
        print_models(found)
    elif not found:
        say("There is no such callback." if state or job else "There is no callback yet.")
    else:
        print_columns(("id", "state", "tries", "next try", "to", "error"), [_row(each) for each in found])


def _row(delivery: "Delivery") -> tuple[str, ...]:
    tries, due = str(delivery.attempt_count), local_time(delivery.next_attempt_at)
    return str(delivery.callback_id), delivery.state, tries, due, delivery.url, delivery.last_error or ""


@app.command()
def redeliver(
    callback: Annotated[int, typer.Argument(metavar="ID", min=1, help="The id, as the list shows it.")],
    server: ServerAddress = None,
) -> None:
    """Send a callback anew, also one that was delivered; its tries are counted from one."""
    from graticule.client import calls

    ask(server, calls.redeliver(callback))
    done(f"Callback {callback} will be sent again in a moment.")
