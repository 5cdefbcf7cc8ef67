"""An orchestrator without room on its disks says so, and how that is fixed; it is not restarted for it."""

from pathlib import Path

from tests.conftest import TestDatabase
from tests.integration.api.conftest import StartApi

MORE_THAN_ANY_DISK_HAS = 10**9


async def test_an_orchestrator_without_room_is_not_ready_but_alive(
    database: TestDatabase, start_api: StartApi, tmp_path: Path
) -> None:
    async with start_api(database, min_free_mb=MORE_THAN_ANY_DISK_HAS) as client:
        ready = await client.get("/readyz")
        assert (ready.status_code, [*ready.json()["reasons"]]) == (503, ["disks"])
        reason = ready.json()["reasons"]["disks"]
        assert reason.startswith(f"{tmp_path}/storage has ")
        assert reason.endswith(f"Free at least {MORE_THAN_ANY_DISK_HAS} MiB there, or lower GRATICULE_MIN_FREE_MB.")
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "unhealthy")
        (damaged,) = [name for name, check in health.json()["checks"].items() if not check["ok"]]
        assert (damaged, health.json()["checks"]["disks"]["reason"]) == ("disks", reason)
        assert (await client.get("/livez")).status_code == 200


async def test_an_orchestrator_with_room_is_ready(database: TestDatabase, start_api: StartApi) -> None:
    async with start_api(database, min_free_mb=1) as client:
        assert (await client.get("/readyz")).status_code == 200
