"""Every form of submission names the queues that no worker serves to operators, and to nobody else."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.integration.gateway.front import FLAT, Front

from graticule.core.worker_command import missing_worker

JOB: Mapping[str, Any] = {"workflow_id": "echo_test", "inputs": {}}
DATA: Mapping[str, Any] = {**FLAT, "platform_id": "ddh"}
RASTER: Mapping[str, Any] = {"container_name": "bronze", "blob_name": "scene.tif"}
TASKS = [missing_worker("functionapp-tasks")]
DATA_TASKS = [missing_worker("container-tasks"), *TASKS]
FORMS: list[tuple[str, Mapping[str, Any], list[str]]] = [
    ("/api/gateway/submit", JOB, TASKS),
    ("/api/platform/submit", JOB, TASKS),
    ("/platform/submit", JOB, TASKS),
    ("/api/platform/submit", DATA, DATA_TASKS),
    ("/platform/submit", DATA, DATA_TASKS),
    ("/api/jobs/submit/echo_test", {}, TASKS),
    ("/api/jobs/submit/process_large_raster", RASTER, DATA_TASKS),
]


def serve(front: Front, *queues: str) -> None:
    front.execute(
        "INSERT INTO dagapp.dag_workers (worker_id, hostname, process_id, program_version, queues, concurrency,"
        " started_at, heartbeat_at) VALUES ('w', 'h', 1, '1', %s, 1, now(), now())",
        [*queues],
    )


@pytest.mark.parametrize(("path", "body", "warnings"), FORMS)
async def test_an_operator_is_warned_by_every_form_of_submission(
    front: Front, path: str, body: Mapping[str, Any], warnings: list[str]
) -> None:
    answer = await front.ask("operator", "POST", path, json=dict(body))
    assert answer.is_success, answer.text
    assert answer.json()["warnings"] == warnings


@pytest.mark.parametrize(("path", "body", "warnings"), FORMS)
async def test_nobody_is_warned_of_queues_that_are_served(
    front: Front, path: str, body: Mapping[str, Any], warnings: list[str]
) -> None:
    serve(front, "container-tasks", "functionapp-tasks")
    answer = await front.ask("operator", "POST", path, json=dict(body))
    assert answer.json()["warnings"] == [], warnings


async def test_each_job_of_a_batch_has_its_warnings(front: Front) -> None:
    report = await front.post("operator", "/api/gateway/submit/batch", {"items": [JOB, JOB]})
    assert [item["job"]["warnings"] for item in report["items"]] == [TASKS, TASKS]


@pytest.mark.parametrize("prefix", ["/api/platform", "/platform"])
async def test_what_is_processed_again_has_its_warnings(front: Front, prefix: str) -> None:
    receipt = await front.submitted()
    front.fail(receipt["asset_id"])
    body = {"asset_id": receipt["asset_id"]}
    assert (await front.post("operator", f"{prefix}/retry", body, 202))["warnings"] == DATA_TASKS
    front.process(receipt["asset_id"])
    again = await front.post("operator", f"{prefix}/reprocess", {**body, "reason": "a new release"}, 202)
    assert again["warnings"] == DATA_TASKS


async def test_a_partner_learns_nothing_of_our_queues(front: Front) -> None:
    for path in ("/api/platform/submit", "/platform/submit"):
        receipt = await front.post("partner", path, {**FLAT, "resource_id": path}, 202)
        assert "warnings" not in receipt
