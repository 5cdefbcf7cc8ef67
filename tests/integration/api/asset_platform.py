"""The platform's API with an engine that runs, and a worker that the test plays."""

from typing import Any

import httpx
from tests.integration.api.running import RunningApi
from tests.sources import put_source, put_source_of

WORKFLOW = """
workflow_id: {name}
name: {name}
version: 1
inputs:
  container_name: {{type: string, required: true}}
  blob_name: {{type: string, required: true}}
  blob_prefix: {{type: string, required: true}}
nodes:
  start: {{type: start, next: work}}
  work:
    handler: echo
    queue: functionapp-tasks
    params: {{prefix: "{{{{ inputs.blob_prefix }}}}"}}
    retry: {{max_attempts: 0}}
    next: end
  end: {{type: end}}
"""
SUBMISSION = {
    "platform_id": "ddh",
    "platform_refs": {"dataset_id": "0038272", "resource_id": "dem"},
    "version_label": "V1",
    "data_type": "raster",
    "container_name": "bronze",
    "file_name": "ddh/dem/europe.tif",
}


class Platform:
    """The platform's API, with an engine that runs and a worker that the test plays."""

    def __init__(self, api: RunningApi) -> None:
        self.api = api
        self.client = api.client

    async def submit(self, label: str = "V1", status: int = 202, **more: Any) -> dict[str, Any]:
        answer = await self.client.post("/api/v1/submit", json={**SUBMISSION, "version_label": label, **more})
        assert answer.status_code == status, answer.text
        return answer.json()  # type: ignore[no-any-return]

    async def processed(self, receipt: dict[str, Any], content: str = "a", **more: Any) -> None:
        task = await self.api.task(receipt["job_id"], "work")
        output = {"content_hash": content * 64, "blob_path": f"silver/{task.params['prefix']}/cog.tif", **more}
        put_source(self.api.home / "storage", output["blob_path"])
        await self.api.report(task.task_id, output=output)
        await self.api.ended(receipt["job_id"])

    async def deed(self, asset_id: str, name: str, status: int = 200, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(f"/api/v1/assets/{asset_id}/{name}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()  # type: ignore[no-any-return]

    async def version(self, asset_id: str, ordinal: int) -> dict[str, Any]:
        answer = await self.client.get(f"/api/v1/assets/{asset_id}/versions/{ordinal}")
        return answer.json()  # type: ignore[no-any-return]

    async def events(self, asset_id: str) -> list[str]:
        answer: httpx.Response = await self.client.get(f"/api/v1/assets/{asset_id}/history")
        return [event["event_type"].removeprefix("asset_") for event in answer.json()["items"]]


async def platform_of(api: RunningApi) -> Platform:
    """Let the application have workflows with one task each, in place of the shipped ones, and a partner's file."""
    put_source_of(api.home / "storage", SUBMISSION)
    for name in ("raster_ingest", "vector_ingest"):
        (api.home / "workflows" / f"{name}.yaml").write_text(WORKFLOW.format(name=name))
    assert (await api.client.post("/api/v1/workflows/reload")).status_code == 200
    return Platform(api)
