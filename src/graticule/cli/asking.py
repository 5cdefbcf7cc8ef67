"""What the commands that talk to a server share: its address, sending a call, and printing what came back."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from graticule.cli.console import out
from graticule.cli.settings import load_settings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from graticule.client import AsyncClient, Call, Page

T = TypeVar("T")

ServerAddress = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="GRATICULE_API_URL",
        help="The orchestrator's address; by default that of what runs in the data folder.",
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
MOST_ITEMS = 500  # of a page


def as_typed(context: typer.Context, command: str) -> None:
    """Run a command of a group as if its name had been typed, so that the options' variables count."""
    context.command.main(args=[command], prog_name=context.command_path, standalone_mode=False)


def with_client(server: str | None, action: "Callable[[AsyncClient], Awaitable[T]]") -> T:
    """Run an action with a client of the server that is meant."""
    from graticule.cli.server import Server, connected

    async def run() -> T:
        async with connected(Server.locate(load_settings(), server)) as client:
            return await action(client)

    return asyncio.run(run())


def ask(server: str | None, call: "Call[T]") -> T:
    """Send a call to the server that is meant, and give its answer."""
    return with_client(server, lambda client: client.send(call))


def ask_all(server: str | None, call: "Call[Page[T]]", limit: int) -> list[T]:
    """Give the first items of a list."""
    return with_client(server, lambda client: first(client, call, limit))


async def first(client: "AsyncClient", call: "Call[Page[T]]", limit: int) -> list[T]:
    """Give the first items of a list; no page is asked for that is not needed."""
    items: list[T] = []
    async for item in client.pages(call):
        items.append(item)
        if len(items) == limit:
            break
    return items


def page_size(limit: int) -> int:
    """Give the size of the pages in which so many items are asked for."""
    return min(limit, MOST_ITEMS)


def print_models(found: "BaseModel | Sequence[BaseModel]") -> None:
    """Print one answer, or a list of them, as JSON."""
    if isinstance(found, Sequence):
        print_json([each.model_dump(mode="json") for each in found])
    else:
        print_json(found.model_dump(mode="json"))


def local_time(moment: datetime | None) -> str:
    """Write a time as it is on the clock here."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def print_json(document: Any) -> None:
    """Print a document of the API."""
    out.print_json(json.dumps(document))
