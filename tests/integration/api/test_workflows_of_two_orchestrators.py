"""A definition that is reloaded at one orchestrator is what the others run, as soon as they are notified."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.api.conftest import KEY, running_client

from graticule.api.app import create_api, engine_running
from graticule.config import Settings
from graticule.core.table import DatabaseRole

# Nothing but a notification moves these instances within a test.
ONLY_NOTIFIED: dict[str, Any] = {
    "orchestrator_poll_interval": 600.0,
    "heartbeat_interval_seconds": 600.0,
    "orphan_scan_interval_seconds": 600.0,
    "orphan_threshold_seconds": 3600.0,
}


def definition(version: int) -> str:
    return f"""workflow_id: shared
version: {version}
inputs: {{since_{version}: {{type: integer, default: {version}}}}}
nodes:
  start: {{type: start, next: end}}
  end: {{type: end}}
"""


@asynccontextmanager
async def orchestrator(database: TestDatabase, home: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Run an orchestrator with a folder of its own, and return a client."""
    settings = Settings(home=home, workflows=str(home / "workflows"), admin_key=SecretStr(KEY), **ONLY_NOTIFIED)
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=[engine_running])
    async with running_client(app) as client:
        client.headers["X-API-Key"] = KEY
        yield client


async def until_version(client: httpx.AsyncClient, version: str) -> dict[str, Any]:
    """Wait until an instance runs a version that was announced, and return what it says of it."""
    async with asyncio.timeout(20):
        while True:
            answer = await client.get("/api/v1/workflows/shared")
            found: dict[str, Any] = answer.json()
            if answer.status_code == 200 and found["version"] == version and found["announced_by"]:
                return found
            await asyncio.sleep(0.02)


def write(home: Path, version: int) -> None:
    (home / "workflows").mkdir(parents=True, exist_ok=True)
    (home / "workflows" / "shared.yaml").write_text(definition(version))


@pytest.mark.parametrize("has_own_file", [False, True])
async def test_a_changed_definition_reaches_the_other_orchestrator_by_notification(
    database: TestDatabase, tmp_path: Path, *, has_own_file: bool
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, 1)
    (other / "workflows").mkdir(parents=True)
    if has_own_file:
        write(other, 1)
    async with orchestrator(database, one) as first, orchestrator(database, other) as second:
        for client in (first, second):
            await until_version(client, "1")
        write(one, 2)
        assert (await first.post("/api/v1/workflows/reload")).status_code == 200
        found = await until_version(second, "2")
        assert [*found["inputs"]] == ["since_2"]
        answer = await second.post("/api/v1/jobs", json={"workflow_id": "shared", "inputs": {"since_2": 7}})
        assert answer.status_code == 201, answer.text
        assert answer.json()["workflow_version"] == "2"
        refused = await second.post("/api/v1/jobs", json={"workflow_id": "shared", "inputs": {"since_1": 7}})
        assert refused.status_code == 422, refused.text
