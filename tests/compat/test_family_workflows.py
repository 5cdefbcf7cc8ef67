"""The workflow examples of the platform family's documents run, completed by no more than each file says.

The worker reports in the earlier shape, without a lease. The handlers and the catalog are the real ones.
"""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import rasterio
from tests.compat.earlier_reports import EarlierWorker

from graticule.core.ids import JobId
from graticule.storage.paths import scratch_name

DOCUMENTS = Path(__file__).with_name("documents")
SCENE = {"container_name": "bronze", "blob_name": "scene.tif"}
TILED = {"threshold_mb": 0.001}
REGISTRATIONS = ("finalize", "raster.stac_register")
RUNS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("echo_test", {"message": "hello"}, ["echo"]),
    ("queue_routing", SCENE, ["raster_validate", "raster_cog_docker"]),
    ("raster_processing", SCENE, ["raster_validate", "raster_cog_docker"]),
    ("conditional_routing", SCENE, ["raster.validate", "raster.process", "finalize"]),
    ("fan_out", {"item_list": ["alpha", "bravo", "charlie"]}, ["echo"] * 5),
    ("tiled_processing", SCENE, ["raster.validate", "raster.create_cog", "raster.stac_register"]),
    (
        "tiled_processing",
        {**SCENE, **TILED},
        [
            *("raster.validate", "raster.generate_tiling_scheme", "raster.process_tile"),
            *("raster.create_mosaicjson", "raster.stac_register"),
        ],
    ),
    ("retry", {"source": "bronze/scene.tif"}, ["raster_cog_docker"]),
    (
        "process_raster",
        SCENE,
        [
            *("validate_raster", "generate_tiling_scheme", "create_cog_tile"),
            *("create_mosaicjson_with_stats", "finalize"),
        ],
    ),
    (
        "large_raster",
        SCENE,
        [
            *("generate_tiling_scheme", "extract_tiles", "create_cog_tile", "create_cog_tile"),
            "create_mosaicjson_with_stats",
        ],
    ),
]
ECHO_EVENTS = ["job_created", "node_ready", "node_dispatched", "job_started", "node_completed", "job_completed"]


@pytest.fixture
async def family(worker: EarlierWorker) -> EarlierWorker:
    """Load the documents as an operator does."""
    for file in DOCUMENTS.glob("*.yaml"):
        shutil.copy(file, worker.api.home / "workflows")
    answer = await worker.api.client.post("/api/v1/workflows/reload")
    assert answer.status_code == 200, answer.text
    assert answer.json()["problems"] == []
    worker.desk.source("rgb", width=600, height=300)
    return worker


@pytest.mark.parametrize(("name", "inputs", "handlers"), RUNS, ids=[f"{run[0]}-{len(run[2])}" for run in RUNS])
async def test_an_example_runs(family: EarlierWorker, name: str, inputs: dict[str, Any], handlers: list[str]) -> None:
    body = {"workflow_id": f"family_{name.removesuffix('_test')}", "inputs": inputs, "priority": 1}
    answer = await family.api.client.post("/api/v1/jobs", json=body)
    assert answer.status_code == 201, answer.text
    job = await family.finish(JobId(answer.json()["job_id"]))
    assert (job["status"], job["error_message"]) == ("completed", None)
    assert family.ran == handlers
    if name == "echo_test":
        assert job["result"] == {"echoed_params": {"message": "hello"}}
        events = (await family.api.get(f"/api/v1/jobs/{job['job_id']}/events"))["items"]
        assert [event["event_type"] for event in events] == ECHO_EVENTS
    if name == "fan_out":
        ids = ["split__0", "split__1", "split__2"]
        assert job["result"]["echoed_params"] == {"fan_out_count": 3, "children": ids}
    if name == "process_raster":
        mosaic = family.desk.file(job["result"]["mosaic_path"])
        _check_are_cogs(family, [path for paths in json.loads(mosaic.read_bytes())["tiles"].values() for path in paths])
    if name == "large_raster":
        made = family.desk.blobs(f"silver/{scratch_name(JobId(job['job_id']))}/")
        assert sum("/tiles/" in path for path in made) == job["result"]["tile_count"] == 2
        _check_are_cogs(family, [path for path in made if "/cogs/" in path])
    if handlers[-1] in REGISTRATIONS:
        await _check_catalogued(family, job["result"])


async def _check_catalogued(family: EarlierWorker, result: dict[str, Any]) -> None:
    """A job of its own registers under names that belong to no asset, and the files are where the item says."""
    assert result["stac_collection_id"] == "direct-bronze"
    item = await family.item(result["stac_collection_id"], result["stac_item_id"])
    path = result["mosaic_path"] or result["blob_path"]
    assert path.startswith("silver/direct/bronze/scene-")
    assert path in {asset["href"] for asset in item["assets"].values()}
    assert path in family.desk.blobs("silver/direct/")


def _check_are_cogs(family: EarlierWorker, paths: list[str]) -> None:
    assert paths
    for path in paths:
        with rasterio.open(family.desk.file(path)) as cog:
            assert (cog.count, cog.tags(ns="IMAGE_STRUCTURE")["LAYOUT"]) == (3, "COG")


LARGE_BYTES = 101 * 2**20  # above the 100 MB of the documents


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    ("name", "light", "heavy"),
    [
        ("conditional_routing", "process_light", "process_heavy"),
        ("raster_processing", "process_fa", "process_docker"),
    ],
)
async def test_the_size_of_the_file_decides_the_branch_and_its_queue(
    family: EarlierWorker, name: str, light: str, heavy: str, *, is_large: bool
) -> None:
    if is_large:
        os.truncate(family.desk.file("bronze/scene.tif"), LARGE_BYTES)  # zeros behind the image, which nothing reads
    body = {"workflow_id": f"family_{name}", "inputs": SCENE}
    job = await family.finish(JobId((await family.api.client.post("/api/v1/jobs", json=body)).json()["job_id"]))
    assert (job["status"], job["error_message"]) == ("completed", None)
    listed = (await family.api.get(f"/api/v1/jobs/{job['job_id']}/nodes"))["items"]
    nodes = {node["node_id"]: node for node in listed}
    taken, other = (heavy, light) if is_large else (light, heavy)
    assert (nodes[taken]["status"], nodes[other]["status"]) == ("completed", "skipped")
    assert nodes[taken]["queue"] == ("container-tasks" if is_large else "functionapp-tasks")


TOLERANCE_SECONDS = 1.0  # from the time at which an attempt is due to its dispatch, on a machine that is busy


@pytest.mark.parametrize("is_jittered", [True, False])
async def test_a_task_is_tried_as_often_and_as_soon_as_the_example_says(
    family: EarlierWorker, *, is_jittered: bool
) -> None:
    """Five attempts after the first, each up to one second after a failure, or exactly one without jitter."""
    if not is_jittered:
        await write_exact_retry(family)
    body = {"workflow_id": "family_retry", "inputs": {"source": "bronze/scene.tif"}}
    job_id = JobId((await family.api.client.post("/api/v1/jobs", json=body)).json()["job_id"])
    for attempt in range(6):
        task = await family.api.task(job_id, "process")
        assert task.task_id == f"{job_id}_process_{attempt}"
        report = {"task_id": task.task_id, "success": False, "error_message": "no luck", "worker_id": "worker-xyz"}
        answer = await family.api.client.post("/api/v1/callbacks/task-result", json=report)
        assert answer.json() == {"accepted": True, "task": "done"}
    await family.api.ended(job_id)
    assert (await family.api.get(f"/api/v1/jobs/{job_id}"))["status"] == "failed"
    waits = await waits_between_attempts(family, job_id)
    assert len(waits) == 5
    for promised, waited in waits:
        assert 0 <= promised <= 1 if is_jittered else promised == 1
        assert promised <= waited < promised + TOLERANCE_SECONDS


async def write_exact_retry(family: EarlierWorker) -> None:
    """Have the example wait for as long as it says, as its page advises."""
    exact = (DOCUMENTS / "retry.yaml").read_text().replace("delay_seconds: 1", "delay_seconds: 1, jitter: false")
    (family.api.home / "workflows" / "retry.yaml").write_text(exact)
    assert (await family.api.client.post("/api/v1/workflows/reload")).json()["problems"] == []


async def waits_between_attempts(family: EarlierWorker, job_id: JobId) -> list[tuple[float, float]]:
    """Return how long each retry was to wait, and how long it was from the failure to the next dispatch."""
    events = (await family.api.get(f"/api/v1/jobs/{job_id}/events"))["items"]
    retries = [event for event in events if event["event_type"] == "node_retry"]
    dispatched = [event for event in events if event["event_type"] == "node_dispatched"][1:]
    return [
        (retry["data"]["delay_seconds"], (moment(dispatch) - moment(retry)).total_seconds())
        for retry, dispatch in zip(retries, dispatched, strict=True)
    ]


def moment(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["created_at"])
