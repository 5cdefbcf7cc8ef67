"""The staged API as earlier clients use it: one job for the same parameters, and a result for each of its stages."""

import hashlib
import json
from typing import Any

import morecantile
import pytest
from tests.compat.earlier_reports import EarlierWorker
from tests.conftest import TestDatabase
from tests.integration.api.conftest import running_client
from tests.integration.api.running import RunningApi

from graticule.config import Settings
from graticule.core.audience import Audience
from graticule.core.ids import JobId
from graticule.serve.app import create_serve

SUBMIT = "/api/jobs/submit/process_large_raster"
BODY = {"blob_name": "scene.tif", "container_name": "bronze", "tile_size": 512, "overlap": 0, "output_tier": "analysis"}
SERVICES = "http://tiles.example"
SUBMISSION = {
    "platform_id": "ddh",
    "platform_refs": {"dataset_id": "scenes", "resource_id": "17apr2024"},
    "version_label": "1",
    "data_type": "raster",
    "container_name": "bronze",
    "file_name": "ddh/scene.tif",
    "processing_options": {"pipeline": "large", "tile_size": 512, "overlap": 0},
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_SERVE_URL", SERVICES)
    monkeypatch.setenv("GRATICULE_DEFAULT_CONTAINER", "bronze")


async def submit(api: RunningApi, status: int = 201, **changes: Any) -> dict[str, Any]:
    answer = await api.client.post(SUBMIT, json={**BODY, **changes})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


async def test_the_same_parameters_are_the_same_job(api: RunningApi) -> None:
    first = await submit(api)
    assert len(first["job_id"]) == 64
    assert (first["status"], first["queue"]) == ("queued", "orchestrator-jobs")
    assert first["status_url"] == f"/api/jobs/status/{first['job_id']}"
    # A default that is written out changes nothing, and neither does an option that is null.
    again = await submit(api, status=200, jpeg_quality=85, raster_type="auto", target_crs=None)
    assert again["status"] == "processing"
    assert (again["job_id"], again["message_id"], again["created_at"]) == (
        *(first["job_id"], first["message_id"], first["created_at"]),
    )
    assert (await submit(api, status=200, container_name=None))["job_id"] == first["job_id"]
    named = await submit(api, band_names=["Red", "Green"])
    assert (await submit(api, status=200, band_names={"1": "Red", "2": "Green"}))["job_id"] == named["job_id"]
    other = await submit(api, overlap=64)
    assert len({job["job_id"] for job in (first, named, other)}) == 3


TRACED = {
    "blob_name": "17apr2024wv2.tif",
    "container_name": "bronze",
    "tile_size": None,
    "overlap": 512,
    "output_tier": "analysis",
}
VALIDATED = {**TRACED, "raster_type": "auto", "jpeg_quality": 85, "overview_level": 2}
BANDS = ["Red", "Green", "Blue"]


async def test_the_job_id_is_the_hash_of_what_the_status_document_calls_parameters(api: RunningApi) -> None:
    """The submission of the execution trace; a client that has the parameters can compute the id by itself."""
    answer = await api.client.post(SUBMIT, json={**TRACED, "band_names": BANDS})
    assert answer.status_code == 201, answer.text
    receipt = answer.json()
    parameters = (await api.get(receipt["status_url"]))["parameters"]
    assert {name: parameters[name] for name in VALIDATED} == VALIDATED
    assert parameters["band_names"] == {"1": "Red", "2": "Green", "3": "Blue"}
    assert receipt["job_id"] == hash_of(parameters)
    again = await api.client.post(SUBMIT, json={**VALIDATED, "band_names": BANDS})
    assert (again.status_code, again.json()["job_id"]) == (200, receipt["job_id"])


@pytest.mark.parametrize(
    "change",
    [
        *({"blob_name": "18apr2024wv2.tif"}, {"tile_size": 1024}, {"overlap": 0}, {"output_tier": "archive"}),
        *({"jpeg_quality": 86}, {"overview_level": 3}, {"raster_type": "rgb"}, {"band_names": BANDS[::-1]}),
    ],
    ids=lambda change: next(iter(change)),
)
async def test_another_parameter_is_another_job(api: RunningApi, change: dict[str, Any]) -> None:
    first, other = [await api.client.post(SUBMIT, json={**TRACED, **more}) for more in ({}, change)]
    assert (first.status_code, other.status_code) == (201, 201), other.text
    ids = {hash_of((await api.get(each.json()["status_url"]))["parameters"]) for each in (first, other)}
    assert ids == {first.json()["job_id"], other.json()["job_id"]}
    assert len(ids) == 2


def hash_of(parameters: dict[str, Any]) -> str:
    """Return the documented id: SHA-256 of the workflow's id and the parameters, as JSON with sorted keys."""
    canonical = json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"process_large_raster{canonical}".encode()).hexdigest()


@pytest.mark.parametrize("extract_first", [False, True])
async def test_a_large_raster_is_shown_stage_by_stage(
    api: RunningApi, worker: EarlierWorker, extract_first: bool
) -> None:
    worker.desk.source("rgb", width=600, height=300)
    names = ["Red", "Green", "Blue"]
    job_id = JobId((await submit(api, band_names=names, extract_first=extract_first))["job_id"])
    begun = await api.get(f"/api/jobs/status/{job_id}")
    assert (begun["status"], begun["stage"], begun["total_stages"], begun["result_data"]) == ("PROCESSING", 1, 4, {})
    await worker.finish(job_id)
    status = await api.get(f"/api/jobs/status/{job_id}")
    assert (status["job_id"], status["job_type"]) == (job_id, "process_large_raster")
    assert (status["status"], status["stage"], status["total_stages"]) == ("COMPLETED", 4, 4)
    assert (status["parameters"]["blob_name"], status["parameters"]["container_name"]) == ("scene.tif", "bronze")
    assert status["duration_seconds"] > 0
    assert status["created_at"] < status["updated_at"]
    assert status["error_details"] is None
    results = status["result_data"]
    assert [*results] == ["stage_1", "stage_2", "stage_3", "stage_4"]
    await check_scheme(worker, results["stage_1"])
    check_extraction(results["stage_2"], tiles=2 if extract_first else 0)
    check_tiles(worker, results["stage_3"])
    await check_mosaic(worker, results["stage_4"], names)


async def check_scheme(worker: EarlierWorker, result: dict[str, Any]) -> None:
    path = result.pop("tiling_scheme")
    assert path.endswith("/schemes/scene.geojson")
    assert len(json.loads(worker.desk.file(path).read_bytes())["features"]) == 2
    assert result == {
        "total_tiles": 2,
        "grid_dimensions": [2, 1],
        "tile_size": 512,
        "overlap": 0,
        "source_crs": "EPSG:32620",
        "raster_type": "rgb",
    }


def check_extraction(result: dict[str, Any], *, tiles: int) -> None:
    seconds = result.pop("extraction_time_seconds")
    assert seconds > 0 if tiles else seconds == 0
    assert result == {"tiles_extracted": tiles, "skipped": tiles == 0}


def check_tiles(worker: EarlierWorker, result: dict[str, Any]) -> None:
    sizes = [worker.desk.file(path).stat().st_size / 1024**2 for path in worker.desk.blobs() if path.endswith(".tif")]
    assert (result["cogs_created"], len(sizes)) == (2, 2)
    assert result["total_size_mb"] == pytest.approx(sum(sizes), abs=0.001)
    assert result["average_cog_size_mb"] == pytest.approx(sum(sizes) / 2, abs=0.001)


async def check_mosaic(worker: EarlierWorker, result: dict[str, Any], bands: list[str]) -> None:
    collection_id, item_id = result["stac_collection_id"], result["stac_item_id"]
    assert collection_id == "direct-bronze"
    assert result["stac_blob"] == f"collections/{collection_id}/items/{item_id}"
    item = await worker.item(collection_id, item_id)
    assert result["mosaic_blob"].endswith("/mosaics/scene.json")
    assert result["mosaic_blob"] in {asset["href"] for asset in item["assets"].values()}
    mosaic = json.loads(worker.desk.file(result["mosaic_blob"]).read_bytes())
    assert {path for paths in mosaic["tiles"].values() for path in paths} <= set(worker.desk.blobs("silver/direct/"))
    assert result["total_cogs"] == 2
    assert [(band["band"], band["name"]) for band in result["statistics"]] == [*enumerate(bands, start=1)]
    assert all(band["min"] < band["mean"] < band["max"] for band in result["statistics"])
    assert result["tile_server_url"] is None  # nothing serves what belongs to no asset


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # rasterio 1.4 with affine 3
async def test_the_tiles_of_an_asset_are_where_its_job_says(
    api: RunningApi, worker: EarlierWorker, database: TestDatabase
) -> None:
    worker.desk.source("rgb", "ddh/scene.tif", width=600, height=300)
    answer = await api.client.post("/api/v1/submit", json=SUBMISSION)
    assert answer.status_code == 202, answer.text
    receipt = answer.json()
    await worker.finish(JobId(receipt["job_id"]))
    status = await api.get(f"/api/jobs/status/{receipt['job_id']}")
    mosaic = status["result_data"]["stage_4"]
    address = mosaic["tile_server_url"]
    assert address.startswith(f"{SERVICES}/tiles/{receipt['asset_id']}/")
    decision = {"clearance_level": "ouo", "revision": 1}
    answer = await api.client.post(f"/api/v1/assets/{receipt['asset_id']}/approve", json=decision)
    assert answer.status_code == 200, answer.text
    settings = Settings(home=api.home)
    services = create_serve(settings, database.url(Audience.INTERNAL.role), Audience.INTERNAL)
    item = await worker.item(mosaic["stac_collection_id"], mosaic["stac_item_id"])
    named = [item["properties"].get(f"platform:{name}") for name in ("request_id", "version_id")]
    assert named == [receipt["request_id"], SUBMISSION["version_label"]]
    west, south, east, north = item["bbox"]
    tile = morecantile.tms.get("WebMercatorQuad").tile((west + east) / 2, (south + north) / 2, 12)
    async with running_client(services) as client:
        picture = await client.get(address.format(z=tile.z, x=tile.x, y=tile.y))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png"), picture.text


async def test_two_jobs_of_one_source_share_no_folder(api: RunningApi, worker: EarlierWorker) -> None:
    worker.desk.source("rgb", width=600, height=300)
    mosaics = []
    for overlap in (0, 64):
        job_id = JobId((await submit(api, overlap=overlap))["job_id"])
        await worker.finish(job_id)
        status = await api.get(f"/api/jobs/status/{job_id}")
        mosaics.append(status["result_data"]["stage_4"]["mosaic_blob"])
    assert len(set(mosaics)) == 2
    assert all(blob.startswith("silver/direct/") for blob in mosaics)


async def test_a_job_that_was_cancelled_runs_when_it_is_submitted_again(api: RunningApi, worker: EarlierWorker) -> None:
    worker.desk.source("rgb", width=600, height=300)
    job_id = JobId((await submit(api))["job_id"])
    answer = await api.client.post(f"/api/v1/jobs/{job_id}/cancel")
    assert answer.status_code == 200, answer.text
    assert (await submit(api, status=200))["status"] == "cancelled"
    again = await api.client.post(SUBMIT, json=BODY, params={"resubmit": "true"})
    assert (again.status_code, again.json()["job_id"], again.json()["status"]) == (200, job_id, "processing")
    await worker.finish(job_id)
    status = await api.get(f"/api/jobs/status/{job_id}")
    assert (status["status"], status["result_data"]["stage_4"]["total_cogs"]) == ("COMPLETED", 2)


DECLARED = """job_type: declared
inputs: {number: {type: integer, required: true}}
stages:
  - {stage_number: 1, stage_name: only, task_type: echo, params: {number: "{{ inputs.wrong }}"}}
"""


async def test_a_corrected_declaration_is_what_a_failed_job_runs(api: RunningApi, worker: EarlierWorker) -> None:
    async def load(text: str) -> None:
        (api.home / "workflows" / "declared.yaml").write_text(text)
        assert (await api.client.post("/api/v1/workflows/reload")).status_code == 200

    await load(DECLARED.replace("inputs.wrong", "inputs.number + []"))
    address, body = "/api/jobs/submit/declared", {"number": 41}
    first = (await api.client.post(address, json=body)).json()
    assert (await api.get(f"/api/jobs/status/{first['job_id']}"))["status"] == "FAILED"
    await load(DECLARED.replace("inputs.wrong", "inputs.number + 1"))
    left = (await api.client.post(address, json=body)).json()
    assert (left["job_id"], left["status"]) == (first["job_id"], "failed")
    again = await api.client.post(address, json=body, params={"resubmit": "true"})
    assert (again.status_code, again.json()["job_id"], again.json()["status"]) == (200, first["job_id"], "processing")
    job = await worker.finish(JobId(first["job_id"]))
    assert (job["status"], job["result"]) == ("completed", {"echoed_params": {"number": 42}})


async def test_a_job_that_failed_says_why(api: RunningApi) -> None:
    job_id = JobId((await submit(api))["job_id"])
    task = await api.task(job_id, "validate")
    body = {"task_id": task.task_id, "success": False, "error_message": "no CRS", "worker_id": "worker-xyz"}
    answer = await api.client.post("/api/v1/callbacks/task-result", json={**body, "retryable": False})
    assert answer.status_code == 200, answer.text
    await api.ended(job_id)
    status = await api.get(f"/api/jobs/status/{job_id}")
    assert (status["status"], status["stage"]) == ("FAILED", 1)
    assert "no CRS" in status["error_details"]
