"""`graticule up`: everything on this machine."""

import asyncio
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.console import done, out, say
from graticule.cli.processes import GATEWAY_PORT, Host
from graticule.cli.settings import load_settings

if TYPE_CHECKING:
    from graticule.cli.installation import Installation
    from graticule.config import Settings


def up(
    port: Annotated[
        int,
        typer.Option(
            envvar="GRATICULE_PORT",
            min=1,
            max=65534,
            help="The gateway's port; the orchestrator's is the next one, then the workers' and the services'.",
        ),
    ] = GATEWAY_PORT,
    host: Host = "127.0.0.1",
    home: Annotated[
        Path | None, typer.Option(help="The data folder; by default GRATICULE_HOME, or .graticule.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, max=64, help="How many worker processes to start.")] = 1,
    serve: Annotated[bool, typer.Option(help="Whether to start the tile, feature and STAC services.")] = True,
) -> None:
    """Run everything on this machine: a database, an orchestrator, a gateway, workers and services, until Ctrl-C.

    The database is a private PostgreSQL in the data folder, or the server that GRATICULE_DATABASE_URL names.
    A process that dies is started again.
    """
    run_until_signal(_up(load_settings(home=home), host, port, workers, serve=serve))


async def _up(settings: "Settings", host: str, port: int, workers: int, *, serve: bool) -> None:
    from graticule.cli.installation import run_installation

    began = time.monotonic()
    async with run_installation(settings, host, port, say, workers=workers, serve=serve) as running:
        _tell(running, time.monotonic() - began)
        await asyncio.Event().wait()


def run_until_signal(work: Coroutine[None, None, None], *, status: int = 0) -> None:
    """Run work that the first SIGINT or SIGTERM ends in order: what it opened is closed, the exit status given."""
    try:
        asyncio.run(_cancelled_by_signal(work))
    except asyncio.CancelledError:
        done("Everything is stopped; the data stays in the data folder.")
        raise typer.Exit(status) from None


async def _cancelled_by_signal(work: Coroutine[None, None, None]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.create_task(work)

    def on_signal() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, say, "Stopping already.")
        say("Stopping.")
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    await task


def _tell(running: "Installation", seconds: float) -> None:
    """Say where everything is; the new admin key is shown once, and only to a person."""
    done(f"Ready after {seconds:.1f} s.")
    lines = {
        "console": f"{running.gateway} (sign in with the admin key)",
        "gateway": running.gateway,
        "orchestrator": running.orchestrator,
        "workers": ", ".join(running.workers) or "none",
        "services": running.serve or "none",
        "database": running.database,
        "data folder": running.home,
        "logs": running.logs,
        "admin key": running.admin_key.place,
    }
    if running.admin_key.is_new and out.is_terminal:
        lines["shown this once"] = running.admin_key.value
    listing = "\n".join(f"  {name:<15} {value}" for name, value in lines.items())
    out.print(f"\n{listing}\n\n  Ctrl-C stops everything.\n", soft_wrap=True, markup=False, emoji=False)
