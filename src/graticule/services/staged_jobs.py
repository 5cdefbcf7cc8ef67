"""Jobs as the staged API of earlier releases shows them: a job type, numbered stages, and a result for each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, Field, JsonValue

from graticule.core.ids import JobId, NodeId, WorkflowId
from graticule.core.models.engine import NodeType
from graticule.core.models.fields import JsonObject
from graticule.core.states import JobStatus, NodeStatus
from graticule.repositories.job_views import NodeListItem
from graticule.services.job_reading import JobDetail, JobReader, Progress, graph_order

LARGE_RASTER: Final = "process_large_raster"
# The last node of each stage; those between belong to the stage that follows.
LARGE_RASTER_STAGES: Final = ("scheme", "extract", "tiles", "register")
STATUSES: Final[Mapping[JobStatus, str]] = {
    JobStatus.PENDING: "queued",
    JobStatus.RUNNING: "processing",
    JobStatus.COMPLETED: "completed",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "cancelled",
}
_PASSED: Final = frozenset({NodeStatus.COMPLETED, NodeStatus.SKIPPED})
_MEBIBYTE: Final = 1024 * 1024


class StagedReceipt(BaseModel):
    """The job of a submission, and where its status is."""

    job_id: JobId
    workflow_id: WorkflowId
    job_type: WorkflowId
    status: str = Field(
        description="`queued` for a new job; for one that was there, also `processing`, `completed`, `failed` or"
        " `cancelled`."
    )
    created: bool = Field(description="False: an earlier submission of the same parameters has made the job.")
    queue: str = Field(description="The queue on which jobs can also be submitted by message.")
    message_id: str = Field(description="The id of the job: a submission by HTTP sends no message.")
    status_url: str
    created_at: datetime
    warnings: list[str] = Field(
        default_factory=list, description="One sentence for each queue of the workflow that no live worker serves now."
    )


class StagedJob(BaseModel):
    """How a job is, stage by stage."""

    job_id: JobId
    job_type: WorkflowId
    workflow_id: WorkflowId
    status: str = Field(description="`QUEUED`, `PROCESSING`, `COMPLETED`, `FAILED` or `CANCELLED`.")
    stage: int = Field(description="The stage under way, from 1; of a job that has completed, the last one.")
    total_stages: int
    parameters: JsonObject
    result_data: JsonObject = Field(description="`stage_1` and so on, of each stage that has ended.")
    error_details: str | None
    error: str | None
    result: JsonValue
    progress: Progress
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    duration_seconds: float | None = Field(description="From its creation to its end, or until now.")


@dataclass(frozen=True, slots=True)
class _Read:
    """A job with what its stages are made of."""

    job: JobDetail
    nodes: Mapping[str, NodeListItem]
    outputs: Mapping[str, Any]  # of completed nodes


class StagedJobs:
    """Reads jobs in stages."""

    def __init__(self, reader: JobReader, *, queue: str, serve_url: str | None) -> None:
        self._reader = reader
        self._serve_url = serve_url
        self.queue = queue

    async def job(self, job_id: JobId, now: datetime) -> StagedJob:
        """Return a job with its stages."""
        job = await self._reader.job(job_id)
        nodes: dict[str, NodeListItem] = {node.node_id: node for node in await self._reader.static_nodes(job_id)}
        ends = await self._stage_ends(job)
        passed = _count_passed(ends, nodes)
        values = dict(job) | {
            "job_type": job.workflow_id,
            "status": STATUSES[job.status].upper(),
            "stage": min(passed + 1, len(ends)),
            "total_stages": len(ends),
            "parameters": job.input_params,
            "result_data": await self._results(job, nodes, ends, passed),
            "error_details": job.error_message,
            "error": job.error_message,
            "duration_seconds": round(((job.ended_at or now) - job.created_at).total_seconds(), 3),
        }
        return StagedJob.model_validate(values)

    async def _stage_ends(self, job: JobDetail) -> Sequence[str]:
        """Return the last node of each stage; a workflow that has none is one stage, which its end ends."""
        if job.workflow_id == LARGE_RASTER:
            return LARGE_RASTER_STAGES
        definition: dict[str, Any] = (await self._reader.definition(job.job_id)).definition
        specs = definition["nodes"]
        order = graph_order(definition)
        named = [name for name in order if specs[name].get("stage")]
        return named or [name for name in order if specs[name]["type"] == NodeType.END][-1:]

    async def _results(
        self, job: JobDetail, nodes: Mapping[str, NodeListItem], ends: Sequence[str], passed: int
    ) -> JsonObject:
        names = ("scheme", "mosaic", "register") if ends is LARGE_RASTER_STAGES else ends
        completed = [name for name in names if name in nodes and nodes[name].status is NodeStatus.COMPLETED]
        outputs = {name: (await self._reader.node(job.job_id, NodeId(name))).output for name in completed}
        if ends is LARGE_RASTER_STAGES:
            return _large_raster(_Read(job, nodes, outputs), self._serve_url)
        return {f"stage_{place}": outputs.get(name) for place, name in enumerate(ends[:passed], start=1)}


def _count_passed(ends: Sequence[str], nodes: Mapping[str, NodeListItem]) -> int:
    """Count the stages that have ended, from the first one on."""
    passed = 0
    while passed < len(ends) and ends[passed] in nodes and nodes[ends[passed]].status in _PASSED:
        passed += 1
    return passed


def _large_raster(read: _Read, serve_url: str | None) -> JsonObject:
    """Return what each stage of a large raster came to, as far as it has ended."""
    found: JsonObject = {}
    if scheme := read.outputs.get("scheme"):
        found["stage_1"] = _scheme_result(scheme, read.outputs.get("mosaic"))
    if scheme and read.nodes["extract"].status in _PASSED:
        found["stage_2"] = _extraction_result(read.nodes["extract"], scheme)
    mosaic, registered = read.outputs.get("mosaic"), read.outputs.get("register")
    if mosaic:
        found["stage_3"] = _tiles_result(mosaic)
    if mosaic and registered:
        found["stage_4"] = _mosaic_result(mosaic, registered) | {"tile_server_url": _tiles_at(read.job, serve_url)}
    return found


def _scheme_result(scheme: Mapping[str, Any], mosaic: Mapping[str, Any] | None) -> JsonObject:
    path = scheme["scheme"]
    if mosaic is not None:  # it is promoted with the tiles
        *_, mosaic_file, scheme_file = mosaic["files"]
        path = mosaic["mosaic_path"].removesuffix(mosaic_file) + scheme_file
    return {
        "tiling_scheme": path,
        "total_tiles": scheme["tile_count"],
        "grid_dimensions": [scheme.get("columns"), scheme.get("rows")],
        "tile_size": scheme["tile_size"],
        "overlap": scheme["overlap"],
        "source_crs": scheme["source_crs"],
        "raster_type": scheme["raster_type"],
    }


def _extraction_result(node: NodeListItem, scheme: Mapping[str, Any]) -> JsonObject:
    """Tiles are cut straight from the source, unless `extract_first` asks for this stage."""
    begun = node.started_at or node.dispatched_at  # a short task may end before anyone is told that it runs
    if begun is None or node.ended_at is None:
        return {"tiles_extracted": 0, "extraction_time_seconds": 0.0, "skipped": True}
    seconds = round((node.ended_at - begun).total_seconds(), 3)
    return {"tiles_extracted": scheme["tile_count"], "extraction_time_seconds": seconds, "skipped": False}


def _tiles_result(mosaic: Mapping[str, Any]) -> JsonObject:
    size = mosaic["size_bytes"] / _MEBIBYTE
    return {
        "cogs_created": mosaic["tile_count"],
        "total_size_mb": round(size, 3),
        "average_cog_size_mb": round(size / mosaic["tile_count"], 3),
    }


def _mosaic_result(mosaic: Mapping[str, Any], registered: Mapping[str, Any]) -> JsonObject:
    collection_id, item_id = registered["stac_collection_id"], registered["stac_item_id"]
    return {
        "mosaic_blob": mosaic["mosaic_path"],
        "stac_blob": f"collections/{collection_id}/items/{item_id}",
        "stac_collection_id": collection_id,
        "stac_item_id": item_id,
        "total_cogs": mosaic["tile_count"],
        "statistics": [
            {"band": number, "name": band.get("name"), **(band.get("statistics") or {})}
            for number, band in enumerate(mosaic["bands"], start=1)
        ],
    }


def _tiles_at(job: JobDetail, serve_url: str | None) -> str | None:
    """Return where the tiles of an asset are served once it is approved; of a job of its own nothing ever is."""
    if job.asset_id is None or serve_url is None:
        return None
    return f"{serve_url}/tiles/{job.asset_id}/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}"
