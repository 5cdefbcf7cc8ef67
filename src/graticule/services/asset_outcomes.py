"""What a job that works on an asset version means for that version: rows of the job's own transaction."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from graticule.core.models.engine import EventType, JobPurpose
from graticule.core.models.fields import Label, Name, Path, Sha256
from graticule.core.models.platform import TableName
from graticule.core.states import JobStatus, NodeStatus, ProcessingState, ResultStatus
from graticule.core.validation import ValidationReport
from graticule.dag.deciding.step import UNDER_WAY
from graticule.dag.state import NodeState, Reported
from graticule.services.decided_jobs import DecidedJob, Row

PROCESSING: Final[Mapping[JobStatus, ProcessingState]] = {
    JobStatus.PENDING: ProcessingState.QUEUED,
    JobStatus.RUNNING: ProcessingState.PROCESSING,
    JobStatus.COMPLETED: ProcessingState.COMPLETED,
    JobStatus.FAILED: ProcessingState.FAILED,
    JobStatus.CANCELLED: ProcessingState.FAILED,
}
EXPORT_EVENTS: Final[Mapping[JobPurpose, tuple[EventType, EventType]]] = {
    JobPurpose.EXPORT: (EventType.ASSET_EXPORT_COMPLETED, EventType.ASSET_EXPORT_FAILED),
    JobPurpose.REVERSAL: (EventType.ASSET_REVERSAL_COMPLETED, EventType.ASSET_REVERSAL_FAILED),
    JobPurpose.UNPUBLISH: (EventType.ASSET_UNPUBLISH_COMPLETED, EventType.ASSET_UNPUBLISH_FAILED),
}
LONGEST_ERROR: Final = 2000
CANCELLED: Final = "Processing was cancelled."
OURS: Final = "Processing failed for a reason of ours; the operators see it, and can let it go on."


class VersionOutputs(BaseModel):
    """What a workflow's result may say of the version that it made; the rest of the result is its own business."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    content_hash: Sha256 | None = None
    output_hash: Sha256 | None = None
    blob_path: Path | None = None
    table_name: TableName | None = None
    stac_item_id: Label | None = None
    stac_collection_id: Label | None = None
    bbox: list[Annotated[float, Field(allow_inf_nan=False)]] | None = Field(None, min_length=4, max_length=4)

    @field_validator("bbox")
    @classmethod
    def _is_a_box(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and value[1] > value[3]:
            raise ValueError("its south is above its north; it is west, south, east, north")
        return value


class ExternalOutputs(BaseModel):
    """What the result of an export says of the copies that it made."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    external_blob_path: Path | None = None
    export_run_id: Name | None = None


def processed_versions(job: DecidedJob) -> Iterator[Row]:
    """Give how the version stands with a job that processes it and has moved."""
    if job.work is None or job.work.purpose is not JobPurpose.PROCESS or not job.moves_job:
        return
    state, error, outputs = _outcome(job)
    yield job.fenced(
        asset_id=job.work.asset_id,
        version_ordinal=job.work.version_ordinal,
        processing_state=state,
        error_message=error,
        told_error=error and _told(job),
        validation=_validation(job),
        node_summary=_node_summary(job),
        **outputs.model_dump(),
    )


def exports(job: DecidedJob) -> Iterator[Row]:
    """Give what the external copies are after a job that made or removed them."""
    if job.work is None or job.work.purpose is JobPurpose.PROCESS or _export_error(job) or not job.ends:
        return
    made = job.work.purpose is JobPurpose.EXPORT
    outputs = ExternalOutputs.model_validate(_fields(job.decision.result)) if made else ExternalOutputs()
    of_all = job.work.purpose is JobPurpose.UNPUBLISH
    yield job.fenced(
        asset_id=job.work.asset_id,
        version_ordinal=None if of_all else job.work.version_ordinal,
        external_blob_path=outputs.external_blob_path,
        export_run_id=(outputs.export_run_id or job.job_id) if made else None,
        exported_revision=job.state.input_params.get("revision") if made else None,
    )


def export_events(job: DecidedJob) -> Iterator[Row]:
    """Tell of the end of a job that made or removed external copies."""
    if job.work is None or job.work.purpose is JobPurpose.PROCESS or not job.ends:
        return
    done, failed = EXPORT_EVENTS[job.work.purpose]
    error = _export_error(job)
    yield job.fenced(
        event_type=failed if error else done,
        asset_id=job.work.asset_id,
        version_ordinal=job.work.version_ordinal,
        data={
            name: value
            for name, value in (("revision", job.state.input_params.get("revision")), ("error", error))
            if value is not None
        },
    )


def _export_error(job: DecidedJob) -> str | None:
    if job.decision.job_status is not JobStatus.COMPLETED:
        return _error(job)
    return _fault(ExternalOutputs, job.decision.result)


def _outcome(job: DecidedJob) -> tuple[ProcessingState, str | None, VersionOutputs]:
    status = job.decision.job_status
    state = PROCESSING[status]
    if status is not JobStatus.COMPLETED:
        return state, _error(job) if state is ProcessingState.FAILED else None, VersionOutputs()
    if fault := _fault(VersionOutputs, job.decision.result):
        return ProcessingState.FAILED, fault, VersionOutputs()
    return state, None, VersionOutputs.model_validate(_fields(job.decision.result))


def _fault(model: type[BaseModel], result: JsonValue) -> str | None:
    """Tell why a result cannot be kept; what it says there is not repeated."""
    try:
        model.model_validate(_fields(result))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return f"The workflow ended with a result that cannot be kept: {wrong}."[:LONGEST_ERROR]
    return None


def _error(job: DecidedJob) -> str:
    """Tell why, in the handler's own words."""
    if job.decision.job_status is JobStatus.CANCELLED:
        return CANCELLED
    failed = [node for node in _decided(job) if node.status is NodeStatus.FAILED and node.error_message]
    causes = [node.error_message for node in sorted(failed, key=lambda node: node.parent_node_id is None)]
    return (next(iter(causes), None) or job.decision.error_message or "Processing failed.")[:LONGEST_ERROR]


def _told(job: DecidedJob) -> str:
    """Give what a partner is told: what a handler said of the data on purpose, for good. The rest is ours."""
    if job.decision.job_status is JobStatus.CANCELLED:
        return CANCELLED
    reported = {each.task_id for each in _refusals(job)}
    failed = [node for node in _decided(job) if node.status is NodeStatus.FAILED and node.task_id in reported]
    said = [node.error_message for node in failed if node.error_message]
    return said[0][:LONGEST_ERROR] if said else OURS


def _refusals(job: DecidedJob) -> list[Reported]:
    """Give the results in which a handler said on purpose that no other attempt could succeed."""
    return [each for each in job.results if each.status is ResultStatus.FAILED and not each.retryable]


def _validation(job: DecidedJob) -> JsonValue:
    """Give the report of what was found in the source: a refusal's, or that of the workflow's result."""
    refusals = [each.output for each in _refusals(job) if isinstance(each.output, dict)]
    given = [_fields(job.decision.result).get("validation"), *(output.get("report") for output in refusals)]
    reports = [report for report in map(ValidationReport.read, given) if report is not None]
    return reports[-1].model_dump(mode="json") if reports else None


def _decided(job: DecidedJob) -> list[NodeState]:
    return [*job.decision.created, *(change.node for change in job.decision.changes)]


def _fields(result: JsonValue) -> Mapping[str, Any]:
    return result if isinstance(result, dict) else {}


def _node_summary(job: DecidedJob) -> Row:
    """Count the nodes of the workflow as they are after the decision."""
    nodes: dict[str, NodeState] = {**job.state.nodes, **{node.node_id: node for node in _decided(job)}}
    own = [nodes[node_id] for node_id in job.graph.nodes]
    failed = [node.node_id for node in own if node.status is NodeStatus.FAILED]
    current = [node.node_id for node in own if node.status in UNDER_WAY]
    return {
        "total": len(own),
        "completed": sum(node.status in {NodeStatus.COMPLETED, NodeStatus.SKIPPED} for node in own),
        "failed": len(failed),
        "current_node": next(iter([*failed, *current]), None),
    }
