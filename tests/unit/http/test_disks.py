"""A process that writes is ready only while there is room on its disks, and says where there is none."""

from pathlib import Path

import httpx
from fastapi import FastAPI

from graticule.config import Settings
from graticule.http.application import create_application
from graticule.http.disks import Disks
from graticule.storage.disk_space import MIB, free_bytes, orchestrator_disks, worker_disks
from graticule.worker.app import create_worker

STORAGE, SCRATCH = Path("/data/storage"), Path("/scratch")


def watching(free: dict[Path, int]) -> FastAPI:
    disks = Disks({"storage": STORAGE, "scratch": SCRATCH}, 100, free=lambda folder: free[folder])
    app = create_application(process="test", title="Test", checks={"disks": disks.check})
    disks.install(app)
    return app


async def answer(app: FastAPI, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return await client.get(path)


async def test_a_full_disk_is_named_with_what_is_left_until_there_is_room_again() -> None:
    free = {STORAGE: 100 * MIB, SCRATCH: 5000 * MIB}
    app = watching(free)
    assert (await answer(app, "/readyz")).status_code == 200
    free[STORAGE] = 100 * MIB - 1
    full = await answer(app, "/readyz")
    assert full.status_code == 503
    fix = "Free at least 100 MiB there, or lower GRATICULE_MIN_FREE_MB."
    assert full.json()["reasons"] == {"disks": f"/data/storage has 99 MiB free. {fix}"}
    health = await answer(app, "/health")
    assert (health.status_code, health.json()["status"]) == (503, "unhealthy")
    assert health.json()["checks"]["disks"]["detail"] == {
        "storage_free_bytes": 100 * MIB - 1,
        "scratch_free_bytes": 5000 * MIB,
    }
    assert (await answer(app, "/livez")).status_code == 200, "to restart it would free nothing"
    free[STORAGE] = 200 * MIB
    assert (await answer(app, "/readyz")).status_code == 200


async def test_the_metric_has_what_is_free() -> None:
    app = watching({STORAGE: 7 * MIB, SCRATCH: 9 * MIB})
    lines = (await answer(app, "/metrics")).text.splitlines()
    assert 'graticule_disk_free_bytes{disk="storage"} 7.340032e+06' in lines
    assert 'graticule_disk_free_bytes{disk="scratch"} 9.437184e+06' in lines


def test_processes_look_at_what_they_write_to(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert orchestrator_disks(settings) == {"storage": tmp_path / "storage", "home": tmp_path}
    assert orchestrator_disks(Settings(home=tmp_path / "none", storage_root=tmp_path)) == {"storage": tmp_path}
    assert set(worker_disks(settings)) == {"storage", "scratch"}
    assert free_bytes(tmp_path / "not" / "yet" / "there") > 0


async def test_a_worker_without_room_is_not_ready(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, min_free_mb=10**9, transport="servicebus")
    app = create_worker(settings, None)
    reasons = (await answer(app, "/readyz")).json()["reasons"]
    assert f"{tmp_path}/storage has " in reasons["disks"]
