"""The platform as it runs in Azure: blobs in Azurite, tasks by Service Bus, and workers that reach no database.

What carries secrets here leaves none behind: all that was written, said and logged is searched for them.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import httpx
import psycopg
import pytest
from tests.azure_login import identified
from tests.azurite_server import KEY as ACCOUNT_KEY
from tests.azurite_server import Azurite
from tests.chaos.member import Member, Orders
from tests.conftest import TestDatabase
from tests.e2e.processes import free_ports
from tests.given_away import all_rows, given_away
from tests.managed_identity import HEADER
from tests.rasters import make_raster
from tests.servicebus_emulator import Emulator, QueueOptions

from graticule.config import Settings
from graticule.core.table import DatabaseRole
from graticule.storage.place import storage_of

pytestmark = pytest.mark.timeout(240)

ADMIN_KEY: Final = "the-key-of-the-admin-of-this-test"
WORKER_TOKEN: Final = "the-token-of-the-workers-of-this-test"
BROKER_KEY: Final = "the-key-of-the-broker-of-this-test"
QUEUES: Final = ("orchestrator-jobs", "functionapp-tasks", "container-tasks")
SESSIONS: Final = "SELECT DISTINCT usename::text FROM pg_stat_activity WHERE datname = current_database()"


@dataclass(frozen=True)
class Site:
    """An orchestrator, two workers without a database, and what they speak to."""

    database: TestDatabase
    storage: Settings
    url: str
    home: Path
    members: tuple[Member, ...]

    @property
    def logs(self) -> dict[str, str]:
        return {member.orders.log.stem: member.output for member in self.members}

    @property
    def kept_here(self) -> list[Path]:
        """Give what was stored on this machine, where nothing should be."""
        return list(self.home.glob("*/storage/*"))

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """Ask the orchestrator, which may still be starting."""
        async with httpx.AsyncClient(headers={"X-API-Key": ADMIN_KEY}, timeout=30, verify=False) as client:
            while True:
                try:
                    answer = await client.request(method, f"{self.url}/api/v1{path}", **options)
                except httpx.ConnectError:
                    assert all(member.running for member in self.members), self.logs
                    await asyncio.sleep(0.1)
                    continue
                assert answer.status_code < 300, answer.text
                return answer.json()

    async def run(self, workflow_id: str, **inputs: Any) -> Any:
        """Run a job to its end."""
        asked = {"workflow_id": workflow_id, "input_params": inputs}
        job_id = (await self.call("POST", "/jobs", json=asked))["job_id"]
        while True:
            job = await self.call("GET", f"/jobs/{job_id}")
            if job["status"] not in {"pending", "running"}:
                return job
            await asyncio.sleep(0.2)


@pytest.fixture
async def site(emptied_database: TestDatabase, azurite: Azurite, tmp_path: Path) -> AsyncIterator[Site]:
    """Run the processes, each with what it needs and no more."""
    azure, port, logs = azurite.fresh(), free_ports(), tmp_path / "logs"
    url = f"http://127.0.0.1:{port}"
    logs.mkdir()
    options = QueueOptions(lock_seconds=300)
    async with Emulator(dict.fromkeys(QUEUES, options), keys={"RootManageSharedAccessKey": BROKER_KEY}) as emulator:
        shared = {
            "GRATICULE_LOG_LEVEL": "DEBUG",
            "GRATICULE_TRANSPORT": "servicebus",
            "GRATICULE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
            "GRATICULE_WORKER_TOKEN": WORKER_TOKEN,
            **azure.environment,
        }
        as_orchestrator = {
            "GRATICULE_HOME": str(tmp_path / "orchestrator"),
            "GRATICULE_ADMIN_KEY": ADMIN_KEY,
            "GRATICULE_DATABASE_URL": emptied_database.url(DatabaseRole.ORCHESTRATOR),
        }
        as_worker = {"GRATICULE_HOME": str(tmp_path / "worker"), "GRATICULE_DAG_CALLBACK_URL": url}
        orders = [
            _orders("orchestrator", int(url.rpartition(":")[2]), logs / "orchestrator.log", shared | as_orchestrator)
        ]
        orders += [_orders("worker", free_ports(), logs / f"worker-{n}.log", shared | as_worker) for n in range(2)]
        members = tuple(Member(each) for each in orders)
        with identified(azure.environment):
            yield Site(
                emptied_database,
                Settings.model_validate({"home": tmp_path / "test", **azure.settings}),
                url,
                tmp_path,
                members,
            )
        for member in members:
            member.kill()


def _orders(command: str, port: int, log: Path, environment: dict[str, str]) -> Orders:
    return Orders((command, "--port", str(port)), log, environment)


async def test_large_rasters_are_processed_by_workers_that_reach_no_database(site: Site, tmp_path: Path) -> None:
    storage = storage_of(site.storage)
    content = make_raster(tmp_path / "wide.tif", "rgb", width=1200, height=600, photometric="RGB").read_bytes()
    await storage.put("bronze/partner/wide.tif", content)
    # GDAL names what it could not read, and the name is an address with a signature.
    await storage.put("bronze/partner/cut.tif", content[: len(content) // 2])
    await storage.put("bronze/partner/none.tif", b"no raster at all")
    whole, cut, none = [
        await site.run("process_large_raster", container_name="bronze", blob_name=name, tile_size=512, overlap=0)
        for name in ("partner/wide.tif", "partner/cut.tif", "partner/none.tif")
    ]
    assert (whole["status"], cut["status"], none["status"]) == ("completed", "failed", "failed"), site.logs
    assert DatabaseRole.WORKER not in await _users(site.database)
    tiles = [blob.path async for blob in storage.list(storage.silver) if blob.path.endswith(".tif")]
    assert len(tiles) == whole["result"]["tile_count"] == 6
    assert await storage.exists(whole["result"]["blob_path"])
    assert await _count(site.database, "SELECT count(*) FROM pgstac.items") == 1
    assert await _count(site.database, "SELECT count(*) FROM dagapp.dag_checkpoints") > 0, "none came by HTTP"
    assert not site.kept_here
    await _nothing_is_given_away(site, *(job["job_id"] for job in (whole, cut, none)))


async def _count(database: TestDatabase, query: LiteralString) -> int:
    async with await psycopg.AsyncConnection.connect(database.url()) as connection:
        row = await (await connection.execute(query)).fetchone()
    return int(row[0]) if row else 0


async def _users(database: TestDatabase) -> set[str]:
    async with await psycopg.AsyncConnection.connect(database.url()) as connection:
        rows = await (await connection.execute(SESSIONS)).fetchall()
    return {str(user) for (user,) in rows}


async def _nothing_is_given_away(site: Site, *job_ids: str) -> None:
    """Search logs, events, answers and every row of every table."""
    said = site.logs | await all_rows(site.database)
    for path in [f"/jobs/{job_id}{part}" for job_id in job_ids for part in ("", "/nodes", "/events")]:
        said[path] = json.dumps(await site.call("GET", path))
    assert given_away(said, (ADMIN_KEY, WORKER_TOKEN, BROKER_KEY, ACCOUNT_KEY, HEADER)) == set()
    assert all(len(text) > 100 for text in site.logs.values()), "there was nothing to search"
