"""Assets as people read them: what partners are told of their own, and what staff see beside the rows themselves.

A partner's views name every field that they have: what is not named here (jobs, workflows, paths, tables, names of
staff) cannot reach a partner by mistake, whatever the rows will have one day.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from graticule.core.exchange import PlatformStatus
from graticule.core.ids import JobId, NodeId, WorkflowId
from graticule.core.models.engine import Event, EventType
from graticule.core.models.fields import AssetKey, JsonObject
from graticule.core.models.platform import (
    AssetRevision,
    AssetVersion,
    DataType,
    GeospatialAsset,
    LayerMetadata,
    PlatformRequest,
    Reviewable,
    UrlMode,
)
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.core.validation import ValidationReport

# What partners are told of, and which details of it. Of ours they hear nothing: why we processed something again, and
# which of our services failed to follow.
PARTNER_EVENTS: Final[Mapping[EventType, frozenset[str]]] = {
    EventType.ASSET_CREATED: frozenset(),
    EventType.ASSET_VERSION_ADDED: frozenset({"version_label", "revision"}),
    EventType.ASSET_VERSION_OVERWRITTEN: frozenset({"version_label", "revision"}),
    EventType.ASSET_VERSION_REPROCESSED: frozenset({"version_label", "revision"}),
    EventType.ASSET_VERSION_RETRIED: frozenset({"version_label", "revision"}),
    EventType.ASSET_VERSION_DELETED: frozenset({"version_label"}),
    EventType.ASSET_PROCESSING_STARTED: frozenset({"revision", "request_id"}),
    EventType.ASSET_PROCESSING_COMPLETED: frozenset({"revision", "request_id"}),
    EventType.ASSET_PROCESSING_FAILED: frozenset({"revision", "request_id", "reason"}),
    EventType.ASSET_APPROVED: frozenset({"revision", "clearance_state", "note"}),
    EventType.ASSET_REJECTED: frozenset({"revision", "reason", "note"}),
    EventType.ASSET_REVOKED: frozenset({"revision", "reason", "note"}),
    EventType.ASSET_CLEARANCE_CHANGED: frozenset({"clearance_state", "note"}),
    EventType.ASSET_URL_MODE_CHANGED: frozenset({"url_mode"}),
    EventType.ASSET_METADATA_CHANGED: frozenset(),
    EventType.ASSET_UNPUBLISHED: frozenset({"reason"}),
    EventType.ASSET_REVIVED: frozenset(),
    EventType.ASSET_EXPORT_COMPLETED: frozenset(),
    EventType.ASSET_REVERSAL_COMPLETED: frozenset(),
    EventType.ASSET_UNPUBLISH_COMPLETED: frozenset(),
}


class View(BaseModel):
    """Base of what is only read."""

    model_config = ConfigDict(frozen=True)


class VersionSummary(Reviewable, View):
    """A version in brief; nothing in it is internal."""

    version_ordinal: int
    version_label: str
    revision: int
    approved_revision: int | None = Field(description="The revision in service; null when none is.")
    processing_state: ProcessingState
    approval_state: ApprovalState
    bbox: list[float] | None = Field(description="West, south, east, north, in degrees.")
    created_at: datetime
    updated_at: datetime


class StaffAsset(GeospatialAsset):
    """An asset with its newest version, for staff."""

    newest_version: VersionSummary | None = Field(None, description="The newest one that is not deleted.")


class WaitingVersion(View):
    """A version that was processed and waits for a decision, with what a reviewer needs to begin."""

    asset_id: AssetKey
    platform_id: str
    platform_refs: JsonObject
    data_type: DataType
    clearance_state: ClearanceState
    latest_approved_version_ordinal: int | None
    asset_version: int = Field(description="The asset's `version`: send it as `expected_version` with the decision.")
    version_ordinal: int
    version_label: str
    revision: int
    approved_revision: int | None = Field(description="The revision in service; null when none is.")
    bbox: list[float] | None = Field(description="West, south, east, north, in degrees.")
    validation: Annotated[ValidationReport | None, BeforeValidator(ValidationReport.read)] = Field(
        description="What was found in the file that was sent."
    )
    content_hash: str | None = Field(description="SHA-256 of the file that was sent.")
    output_hash: str | None
    title: str | None = Field(description="Of its description, if it has one.")
    submitted_by: str | None = Field(description="Who sent it last, as far as that is known.")
    clearance_requested: ClearanceState | None = Field(description="What the submission proposed.")
    waiting_since: datetime = Field(description="When its processing completed.")


class ServedVersion(View):
    """A version that is in service, and where."""

    version_ordinal: int
    service_urls: dict[str, str] = Field(description="As in the status of a request.")


class OperatorStatus(PlatformStatus):
    """How a request stands, with what operators need to look further."""

    job_id: JobId | None
    workflow_id: WorkflowId | None
    job_count: int = Field(description="How many jobs have processed this version.")
    retry_count: int = Field(description="How often this request was retried.")
    current_nodes: list[NodeId] = Field(description="The nodes of the job that are under way.")


class PartnerAsset(View):
    """An asset, for the partner whose it is."""

    asset_id: AssetKey
    platform_id: str
    platform_refs: JsonObject
    data_type: DataType
    clearance_state: ClearanceState
    url_mode: UrlMode
    latest_approved_version_ordinal: int | None
    newest_version: VersionSummary | None = Field(description="The newest one that is not deleted.")
    deleted_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, asset: StaffAsset) -> Self:
        """Give what its partner sees of an asset."""
        return cls.model_validate(asset, from_attributes=True)


class PartnerVersion(View):
    """A version of an asset, for the partner whose it is."""

    asset_id: AssetKey
    version_ordinal: int
    version_label: str
    revision: int
    approved_revision: int | None = Field(description="The revision in service; null when none is.")
    processing_state: ProcessingState
    processing_started_at: datetime | None
    processing_completed_at: datetime | None
    approval_state: ApprovalState
    reviewed_at: datetime | None
    rejection_reason: str | None
    revoked_at: datetime | None
    error: str | None = Field(description="Why processing failed.")
    validation: ValidationReport | None = Field(description="What was found in the file that was sent.")
    content_hash: str | None = Field(description="SHA-256 of the file that was sent.")
    bbox: list[float] | None = Field(description="West, south, east, north, in degrees.")
    deleted_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, version: AssetVersion) -> Self:
        """Give what its partner sees of a version."""
        report = ValidationReport.read(version.validation)
        return cls.model_validate({**dict(version), "error": version.told_error, "validation": report})


class PartnerRevision(View):
    """What a version was before it was processed anew, for the partner whose it is."""

    asset_id: AssetKey
    version_ordinal: int
    revision: int
    content_hash: str | None = Field(description="SHA-256 of the file that was sent.")
    processing_state: ProcessingState | None = Field(description="Null where an older release logged it.")
    error: str | None = Field(description="Why processing failed.")
    validation: ValidationReport | None = Field(description="What was found in the file that was sent.")
    approval_state: ApprovalState
    reviewed_at: datetime | None
    rejection_reason: str | None
    clearance_state: ClearanceState
    created_at: datetime
    superseded_at: datetime

    @classmethod
    def of(cls, revision: AssetRevision) -> Self:
        """Give what its partner sees of a superseded revision."""
        report = ValidationReport.read(revision.validation)
        return cls.model_validate({**dict(revision), "error": revision.told_error, "validation": report})


class PartnerEvent(View):
    """What happened to an asset, for the partner whose it is: not who did it, nor by which job."""

    event: EventType
    version_ordinal: int | None
    details: JsonObject
    happened_at: datetime

    @classmethod
    def of(cls, event: Event) -> Self:
        """Give what the asset's partner is told of an event; the event must be one of `PARTNER_EVENTS`."""
        told = PARTNER_EVENTS[event.event_type]
        return cls(
            event=event.event_type,
            version_ordinal=event.version_ordinal,
            details={name: value for name, value in event.data.items() if name in told},
            happened_at=event.created_at,
        )


class PartnerRequest(View):
    """A work order, for the partner whose it is."""

    request_id: UUID
    asset_id: AssetKey
    version_ordinal: int
    revision: int
    status: RequestStatus
    retry_count: int
    error: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, request: PlatformRequest) -> Self:
        """Give what its partner sees of a work order."""
        return cls.model_validate({**dict(request), "error": request.last_error})


class LayerColumn(View):
    """A column of a table of features."""

    name: str
    field: str = Field(description="What it is called in the file that was sent.", examples=["Nutzungsart (2023)"])
    type: str = Field(description="Its type in PostgreSQL.", examples=["text"])


class LayerDescribed(LayerMetadata):
    """How an asset version is described, with what its table tells of itself."""

    columns: list[LayerColumn] | None = Field(None, description="Of features: what each has; only read.")
