"""The staged API as earlier clients use it: one job for the same parameters, and a result for each of its stages."""

from typing import Any

import pytest
from tests.compat.earlier_reports import EarlierWorker
from tests.integration.api.running import RunningApi

from graticule.core.ids import JobId

SUBMIT = "/api/jobs/submit/process_large_raster"
BODY = {"blob_name": "scene.tif", "container_name": "bronze", "tile_size": 512, "overlap": 0, "output_tier": "analysis"}


async def submit(api: RunningApi, status: int = 201, **changes: Any) -> dict[str, Any]:
    answer = await api.client.post(SUBMIT, json={**BODY, **changes})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


async def test_the_same_parameters_are_the_same_job(api: RunningApi) -> None:
    first = await submit(api)
    assert len(first["job_id"]) == 64
    assert (first["status"], first["queue"]) == ("processing", "orchestrator-jobs")
    assert first["status_url"] == f"/api/jobs/status/{first['job_id']}"
    again = await submit(api, status=200, jpeg_quality=85)  # a default that is written out changes nothing
    assert (again["job_id"], again["message_id"], again["created_at"]) == (
        *(first["job_id"], first["message_id"], first["created_at"]),
    )
    other = await submit(api, overlap=64)
    assert other["job_id"] != first["job_id"]


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
    assert (status["job_type"], status["status"], status["stage"]) == ("process_large_raster", "COMPLETED", 4)
    assert (status["parameters"]["blob_name"], status["parameters"]["container_name"]) == ("scene.tif", "bronze")
    assert status["duration_seconds"] > 0
    assert status["error_details"] is None
    results = status["result_data"]
    assert [*results] == ["stage_1", "stage_2", "stage_3", "stage_4"]
    assert (results["stage_1"]["total_tiles"], results["stage_1"]["grid_dimensions"]) == (2, [2, 1])
    assert results["stage_1"]["tiling_scheme"].endswith("/schemes/scene.geojson")
    assert results["stage_2"]["tiles_extracted"] == (2 if extract_first else 0)
    assert results["stage_3"]["cogs_created"] == 2
    assert results["stage_3"]["total_size_mb"] == pytest.approx(2 * results["stage_3"]["average_cog_size_mb"], abs=0.01)
    assert results["stage_4"]["mosaic_blob"].endswith("/mosaics/scene.json")
    assert [band["name"] for band in results["stage_4"]["statistics"]] == names
    assert results["stage_4"]["tile_server_url"] is None  # nothing serves what belongs to no asset


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
