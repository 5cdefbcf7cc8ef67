"""Jobs of earlier workflows, from their submission to their end, with a real worker in a process of its own."""

from pathlib import Path
from typing import Any

import pytest
import rasterio
from tests.compat.worker_process import worker_process
from tests.conftest import TestDatabase
from tests.integration.api.running import RunningApi
from tests.integration.handlers.raster.desk import Desk

from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole

DOCUMENTS = Path(__file__).with_name("documents")
NOTE = "silver/earlier/note.txt"
QUEUES = "functionapp-tasks,container-tasks"
SCENE = {"container_name": "bronze", "blob_name": "scene.tif"}


async def load(api: RunningApi, name: str, text: str) -> None:
    """Load a workflow as an operator does."""
    (api.home / "workflows" / f"{name}.yaml").write_text(text)
    answer = await api.client.post("/api/v1/workflows/reload")
    assert answer.status_code == 200
    assert [problem for problem in answer.json()["problems"] if problem["severity"] == "error"] == []


async def run(api: RunningApi, workflow_id: str, **inputs: Any) -> dict[str, Any]:
    """Submit a job in the earlier shape, and return it as it has ended, with the outputs of its nodes."""
    answer = await api.client.post("/api/v1/jobs", json={"workflow_id": workflow_id, "inputs": inputs})
    assert answer.status_code == 201, answer.text
    job_id = JobId(answer.json()["job_id"])
    await api.ended(job_id)
    nodes = (await api.get(f"/api/v1/jobs/{job_id}/nodes"))["items"]
    outputs = {node["node_id"]: await api.get(f"/api/v1/jobs/{job_id}/nodes/{node['node_id']}") for node in nodes}
    return {**await api.get(f"/api/v1/jobs/{job_id}"), "nodes": outputs}


@pytest.mark.parametrize("name", ["queue_routing", "raster_processing"])
async def test_raster_validate_and_raster_cog_docker_run(
    api: RunningApi, desk: Desk, database: TestDatabase, name: str
) -> None:
    desk.source("rgb", width=600, height=300)
    await load(api, name, (DOCUMENTS / f"{name}.yaml").read_text())
    with worker_process(api, database, queues=QUEUES):
        job = await run(api, f"family_{name}", **SCENE)
    assert (job["status"], job["error_message"]) == ("completed", None)
    nodes = job["nodes"]
    handlers = {node["handler"]: node for node in nodes.values() if node["status"] == "completed" and node["handler"]}
    assert set(handlers) == {"raster_validate", "raster_cog_docker"}
    validated, made = handlers["raster_validate"]["output"], handlers["raster_cog_docker"]["output"]
    assert (validated["source"], validated["blob_url"]) == ("bronze/scene.tif", "bronze/scene.tif")
    assert {node["worker_id"] is not None for node in handlers.values()} == {True}
    assert_is_cog(desk, made["staged_path"])


REGISTERED = """workflow_id: registered
inputs: {container_name: {type: string, required: true}, blob_name: {type: string, required: true}}
nodes:
  start: {type: start, next: validate}
  validate:
    handler: raster_validate
    params: {container_name: "{{ inputs.container_name }}", blob_name: "{{ inputs.blob_name }}"}
    next: process
  process:
    handler: raster_cog_docker
    params: {source_url: "{{ nodes.validate.output.blob_url }}"}
    next: register
  register:
    handler: raster.stac_register
    params: {source: "{{ nodes.validate.output }}", product: "{{ nodes.process.output }}"}
    next: end
  end: {type: end}
"""


async def test_a_cog_that_is_registered_is_where_its_output_says(
    api: RunningApi, desk: Desk, database: TestDatabase
) -> None:
    desk.source("rgb", width=600, height=300)
    await load(api, "registered", REGISTERED)
    with worker_process(api, database, queues=QUEUES):
        job = await run(api, "registered", **SCENE)
    assert (job["status"], job["error_message"]) == ("completed", None)
    made = job["nodes"]["process"]["output"]
    assert job["result"]["blob_path"] == made["blob_path"]
    assert_is_cog(desk, made["blob_path"])
    assert not desk.file(made["staged_path"]).exists()


def assert_is_cog(desk: Desk, path: str) -> None:
    with rasterio.open(desk.file(path)) as cog:
        assert (cog.count, cog.tags(ns="IMAGE_STRUCTURE")["LAYOUT"]) == (3, "COG")


EARLIER = f"""workflow_id: earlier
inputs: {{number: {{type: integer, required: true}}, text: {{type: string, required: true}}}}
nodes:
  start: {{type: start, next: report}}
  report:
    handler: earlier_report
    queue: functionapp-tasks
    params: {{number: "{{{{ inputs.number }}}}", text: "{{{{ inputs.text }}}}"}}
    next: count
  count: {{handler: earlier_count, queue: container-tasks, params: {{path: "{NOTE}"}}, next: end}}
  end: {{type: end}}
"""
FAILING = f"""workflow_id: failing
nodes:
  start: {{type: start, next: fail}}
  fail:
    handler: earlier_failure
    queue: functionapp-tasks
    params: {{path: "{NOTE}"}}
    retry: {{max_attempts: 0}}
    next: end
  end: {{type: end}}
"""


async def test_handlers_in_the_earlier_spelling_run(api: RunningApi, desk: Desk, database: TestDatabase) -> None:
    await load(api, "earlier", EARLIER)
    await load(api, "failing", FAILING)
    with worker_process(api, database, queues=QUEUES, handlers="tests.compat.earlier_handlers") as worker:
        job = await run(api, "earlier", number=41, text="grüße")
        failed = await run(api, "failing")
    assert (job["status"], job["error_message"]) == ("completed", None)
    assert job["result"] == {"characters": 5, "text": "grüße"}
    report = job["nodes"]["report"]
    ids = {"task_id": f"{job['job_id']}_report_0", "job_id": job["job_id"], "node_id": "report"}
    assert report["output"] == {"login": DatabaseRole.WORKER, "answer": 42, **ids}
    assert desk.file(NOTE).read_text() == "grüße"
    assert "a report is written" in worker.output
    assert failed["status"] == "failed"
    assert f"no CRS in {NOTE}" in failed["error_message"]
