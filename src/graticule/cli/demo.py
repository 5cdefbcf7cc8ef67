"""`graticule demo`: the platform from nothing to healthy, in one go."""

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.table import Table

from graticule.cli.console import done, out, say
from graticule.cli.processes import GATEWAY_PORT
from graticule.cli.settings import load_settings
from graticule.cli.up import run_until_signal

if TYPE_CHECKING:
    import httpx

    from graticule.cli.installation import Installation
    from graticule.config import Settings


def demo() -> None:
    """Start the platform, show that it is healthy and what it made, and stop it again."""
    run_until_signal(_demo(load_settings()), status=130)  # it was to come to an end by itself


async def _demo(settings: "Settings") -> None:
    import httpx

    from graticule.cli.installation import run_installation
    from graticule.embedded.ports import free_pair

    began = time.monotonic()
    say("Starting a database, an orchestrator and a gateway.")
    async with run_installation(settings, "127.0.0.1", free_pair(GATEWAY_PORT), say) as running:
        done(f"Ready after {time.monotonic() - began:.1f} s.")
        async with httpx.AsyncClient(timeout=30) as client:
            await _show_health(client, running)
            await _show_schema(client, running)
    done(f"Everything is stopped; the data stays in {running.home}.")
    command = _own_command()
    out.print(f"\n  Start it to stay:    {command} up\n  What else there is:  {command} --help\n", soft_wrap=True)


def _own_command() -> str:
    """Give the command as the reader can type it here."""
    return "graticule" if shutil.which("graticule") else os.path.relpath(sys.argv[0])


async def _show_health(client: "httpx.AsyncClient", running: "Installation") -> None:
    table = Table("process", "address", "health", "database role", box=None, header_style="bold")
    for address in (running.gateway, running.orchestrator):
        health: dict[str, Any] = (await client.get(f"{address}/health")).raise_for_status().json()
        database = health["checks"]["database"]["detail"]
        table.add_row(
            health["process"],
            address,
            f"{health['status']}, {database['latency_ms']:.1f} ms",
            database["role"],
        )
    out.print()
    out.print(table)


async def _show_schema(client: "httpx.AsyncClient", running: "Installation") -> None:
    headers = {"X-API-Key": running.admin_key.value}
    bootstrap = f"{running.orchestrator}/api/v1/bootstrap"
    status: dict[str, Any] = (await client.get(f"{bootstrap}/status", headers=headers)).raise_for_status().json()
    tables = (await client.get(f"{bootstrap}/tables", headers=headers)).raise_for_status().json()["items"]
    shown = Table("what it made", "", box=None, header_style="bold")
    shown.add_row("data folder", str(running.home))
    shown.add_row("database", running.database)
    versions = (f"PostgreSQL {status['server_version'].split()[0]}", f"PostGIS {status['postgis_version']}")
    shown.add_row("with", f"{', '.join(versions)}, pgstac {status['pgstac_version']}")
    shown.add_row("schema", f"{len(tables)} tables with {sum(table['indexes'] for table in tables)} indexes, current")
    shown.add_row("seed rows", ", ".join(f"{table['rows']} in {table['name']}" for table in tables if table["rows"]))
    shown.add_row("admin key", str(running.admin_key.place))
    out.print()
    out.print(shown)
    out.print()
