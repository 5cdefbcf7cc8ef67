"""An installation as partners meet it: gateway, orchestrator and worker as processes on a durable database."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, LiteralString

import httpx
import psycopg
from psycopg.rows import DictRow, dict_row

from benchmarks import processes
from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.load.client import Kind
from benchmarks.processes import Process
from graticule.core.table import DatabaseRole

PARTNER: Final = "ddh"
KEYS: Final = 40  # each stays below the rate limit of one client
ENDED_WITHIN_SECONDS: Final = 300.0
# The data itself is not what is measured: the pipeline of rasters is one task that gives its parameters back.
PIPELINE: Final = """
workflow_id: raster_ingest
name: Nothing but the way through the platform
version: 1
inputs:
  container_name: {type: string, required: true}
  blob_name: {type: string, required: true}
nodes:
  start: {type: start, next: take}
  take: {handler: echo, params: {blob: "{{ inputs.container_name }}/{{ inputs.blob_name }}"}, next: end}
  end: {type: end}
"""
# The receipts of all jobs that completed, and of all requests whose job did and whose version is processed.
COMPLETED: LiteralString = """
    SELECT job_id AS receipt FROM dagapp.dag_jobs WHERE status = 'completed'
    UNION ALL
    SELECT request.request_id::text
    FROM dagapp.platform_requests AS request
    JOIN dagapp.dag_jobs AS job USING (job_id)
    JOIN dagapp.asset_versions AS version
        ON version.asset_id = request.asset_id AND version.version_ordinal = request.version_ordinal
    WHERE job.status = 'completed' AND version.processing_state = 'completed'
"""
UNDER_WAY: LiteralString = "SELECT count(*) AS jobs FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')"


@dataclass(frozen=True)
class Platform:
    """The running processes, and keys of those who submit."""

    place: Place
    gateway: Process
    orchestrator: Process
    worker: Process
    keys: Mapping[Kind, Sequence[str]]

    @property
    def processes(self) -> tuple[Process, ...]:
        """Give the processes that are looked at."""
        return self.gateway, self.orchestrator, self.worker

    async def completed(self) -> set[str]:
        """Wait until all jobs ended, and give the receipts of what completed."""
        async with await psycopg.AsyncConnection.connect(
            self.place.url(), autocommit=True, row_factory=dict_row
        ) as connection:
            async with asyncio.timeout(ENDED_WITHIN_SECONDS):
                await _until_ended(connection)
            return {row["receipt"] for row in await (await connection.execute(COMPLETED)).fetchall()}


async def _until_ended(connection: psycopg.AsyncConnection[DictRow]) -> None:
    while True:
        row = await (await connection.execute(UNDER_WAY)).fetchone()
        if row is not None and row["jobs"] == 0:
            return
        await asyncio.sleep(0.5)


@asynccontextmanager
async def platform() -> AsyncIterator[Platform]:
    """Run everything until the block is left."""
    async with private_cluster() as place, AsyncExitStack() as stack:
        await deploy(place)
        admin_key = secrets.token_urlsafe(32)
        shared = _environment(place.home, admin_key)

        async def started(name: str, role: DatabaseRole, **more: str) -> Process:
            environment = {**shared, "GRATICULE_DATABASE_URL": place.url(role), **more}
            return await stack.enter_async_context(processes.running(name, environment, place.home / "logs"))

        orchestrator = await started("orchestrator", DatabaseRole.ORCHESTRATOR)
        gateway = await started("gateway", DatabaseRole.GATEWAY, GRATICULE_ORCHESTRATOR_URL=orchestrator.url)
        worker = await started("worker", DatabaseRole.WORKER)
        yield Platform(place, gateway, orchestrator, worker, await _keys(orchestrator.url, admin_key))


def _environment(home: Path, admin_key: str) -> dict[str, str]:
    workflows = home / "workflows"
    workflows.mkdir()
    (workflows / "raster_ingest.yaml").write_text(PIPELINE, encoding="utf-8")
    (home / "logs").mkdir(exist_ok=True)
    source = home / "storage" / "bronze" / PARTNER / "any.tif"
    source.parent.mkdir(parents=True)
    source.touch()
    return {
        "GRATICULE_HOME": str(home),
        "GRATICULE_WORKFLOWS": str(workflows),
        "GRATICULE_ADMIN_KEY": admin_key,
        "GRATICULE_SERVICE_KEY": secrets.token_urlsafe(32),
        "GRATICULE_LOG_LEVEL": "WARNING",
    }


async def _keys(orchestrator: str, admin_key: str) -> dict[Kind, list[str]]:
    who: dict[Kind, dict[str, object]] = {
        Kind.JOBS: {"roles": ["operator"]},
        Kind.DATA: {"roles": ["submitter"], "platform_id": PARTNER},
    }
    async with httpx.AsyncClient(base_url=orchestrator, headers={"X-API-Key": admin_key}) as client:
        return {
            kind: [await _key(client, f"{kind}-{number}", rights) for number in range(KEYS)]
            for kind, rights in who.items()
        }


async def _key(client: httpx.AsyncClient, name: str, rights: Mapping[str, object]) -> str:
    new = {"client_id": name, "display_name": name, **rights}
    answer = (await client.post("/api/v1/clients", json=new)).raise_for_status()
    return str(answer.json()["key"])
