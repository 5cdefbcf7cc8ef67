"""`graticule demo`: the platform from nothing to a map that is catalogued and approved, in one go."""

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table

from graticule.cli.asking import MOST_ITEMS
from graticule.cli.console import done, out, say, warn
from graticule.cli.processes import GATEWAY_PORT, SERVE_PORT
from graticule.cli.settings import load_settings
from graticule.cli.up import run_until_signal
from graticule.core.audience import Audience

if TYPE_CHECKING:
    from graticule.cli.installation import Installation
    from graticule.client import Document
    from graticule.config import Settings

WORKFLOW: Final = "demo"
INPUTS: Final = {"chunks": 40, "failure_rate": 0.35}
NO_EXTRA: Final = (
    "Maps need packages that are not installed: pip install 'graticule[worker]' brings them. "
    "Without them, here is the engine alone."
)
GO_ON: Final = """
  Start it to stay:    {command} up (the gateway: {gateway}, the services: {services})
  Use the console:     then open {gateway} in a browser, and sign in with the admin key: {key}
  Look at the maps:    then open the addresses of the maps above in a browser
  See what was made:   {command} asset list
  Send data yourself:  put a file into {bronze}, and see docs/tutorials/first-partner.md
  Try the engine:      {command} submit demo -p chunks=40 --watch
  What else there is:  {command} --help
"""


def demo() -> None:
    """Start the platform, let a partner send a raster and a vector, review them, and stop it again."""
    run_until_signal(_demo(load_settings()), status=130)  # it was to come to an end by itself


async def _demo(settings: "Settings") -> None:
    from graticule.cli.demo_samples import CONTAINER, PARTNER, can_make_samples, make_samples
    from graticule.cli.demo_story import tell_story
    from graticule.cli.installation import free_ports, run_installation
    from graticule.storage.place import storage_of

    began = time.monotonic()
    say("Starting a database, an orchestrator, a gateway, a worker and the services.")
    samples = asyncio.create_task(asyncio.to_thread(make_samples)) if can_make_samples() else None
    async with run_installation(settings, "127.0.0.1", free_ports(GATEWAY_PORT, 4), say) as running:
        done(f"Ready after {time.monotonic() - began:.1f} s.")
        await _show_installation(running)
        if samples is None:
            warn(NO_EXTRA)
            await _show_job(running)
        else:
            await tell_story(running, storage_of(settings), await samples)
    done(f"Everything is stopped after {time.monotonic() - began:.0f} s; the data stays in {running.home}.")
    _show_ways_on(settings.storage_folder / CONTAINER / PARTNER, running.admin_key.place)


def _show_ways_on(bronze: Path, key: Path | str) -> None:
    """Tell what to do next; of the key only where it is kept."""
    places = {"gateway": f"http://127.0.0.1:{GATEWAY_PORT}", "services": f"http://127.0.0.1:{SERVE_PORT}"}
    places |= {"bronze": os.path.relpath(bronze), "key": os.path.relpath(key) if isinstance(key, Path) else key}
    told = GO_ON.format(command=_own_command(), **places)
    out.print(told, soft_wrap=True)


def _own_command() -> str:
    """Give the command as the reader can type it here."""
    return "graticule" if shutil.which("graticule") else os.path.relpath(sys.argv[0])


async def _show_installation(running: "Installation") -> None:
    """Tell in a few lines what runs and what was made."""
    import httpx

    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        table = Table("process", "address", "health", "database role", box=None, header_style="bold")
        headers = {"X-API-Key": running.admin_key.value}
        told = (await client.get(f"{running.gateway}/api/admin/health", headers=headers)).raise_for_status().json()
        for address in (running.gateway, running.orchestrator, *running.workers):
            health = (await client.get(f"{address}/health")).raise_for_status().json()
            # The gateway tells strangers no details.
            table.add_row(*_health(health, address, {**told["database"], **health["checks"]["database"]}["detail"]))
        if running.serve is not None:
            health = (await client.get(f"{running.serve}/health")).raise_for_status().json()
            table.add_row(health["process"], running.serve, health["status"], Audience.INTERNAL.role)
        bootstrap = f"{running.orchestrator}/api/v1/bootstrap"
        status = (await client.get(f"{bootstrap}/status", headers=headers)).raise_for_status().json()
        tables = (await client.get(f"{bootstrap}/tables", headers=headers)).raise_for_status().json()["items"]
    server = status["server_version"].split()[0]
    versions = f"PostgreSQL {server}, PostGIS {status['postgis_version']}, pgstac {status['pgstac_version']}"
    out.print()
    out.print(table)
    out.print(f"\n {versions}; {len(tables)} tables, schema current.\n", soft_wrap=True)


def _health(health: "Document", address: str, database: "Document") -> tuple[str, str, str, str]:
    return health["process"], address, f"{health['status']}, {database['latency_ms']:.1f} ms", database["role"]


async def _show_job(running: "Installation") -> None:
    """Submit the workflow `demo` and show it to its end; in a terminal, then also what the audit trail says of it."""
    from graticule.cli.event_lines import FoldedLines
    from graticule.cli.server import Server, connected
    from graticule.cli.watch import watch_job
    from graticule.client import calls, documents
    from graticule.services.jobs import Submission

    async with connected(Server(running.orchestrator, running.admin_key.value)) as client:
        wanted = Submission(workflow_id=WORKFLOW, input_params=dict(INPUTS), submitted_by="demo")
        job = (await client.send(calls.submit_job(wanted))).job
        done(f"Submitted the workflow {WORKFLOW}: a conditional, and a fan-out of tasks that fail by chance.")
        out.print()
        await watch_job(client, job.job_id)
        if out.is_terminal:  # elsewhere the lines were printed as they came
            out.print("\n Every step left an event, in short:\n")
            lines = FoldedLines(job.created_at)
            async for event in client.pages(documents(calls.list_job_events(job.job_id, limit=MOST_ITEMS))):
                for line in lines.take(event):
                    out.print(line, soft_wrap=True)
    out.print()
