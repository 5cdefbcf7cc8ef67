"""The platform's tables: partners, assets, versions, requests, clients, layer metadata."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, Field, model_validator

from graticule.core.audience import Audience
from graticule.core.ids import ClientId
from graticule.core.models.fields import (
    APPEND,
    CHANGE,
    FULL,
    READ,
    AssetKey,
    CreatedAt,
    ErrorText,
    JobKey,
    JsonObject,
    Label,
    Name,
    Path,
    PlatformKey,
    Priority,
    Sha256,
    Short,
    Timestamp,
    WorkflowKey,
    granted,
)
from graticule.core.sources import MAX_PATTERN_LENGTH, MAX_PATTERNS, admits, default_patterns
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.core.table import Check, DatabaseRole, ForeignKey, Index, Row, Table

AssetPrefix = Annotated[str, Field(max_length=32, pattern=r"^[0-9a-f]{8,32}$")]
TableName = Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]
SourcePattern = Annotated[str, Field(max_length=MAX_PATTERN_LENGTH)]


class DataType(StrEnum):
    """What kind of data an asset is."""

    RASTER = "raster"
    VECTOR = "vector"


class UrlMode(StrEnum):
    """Which versions of an asset its service addresses reach."""

    LATEST_ONLY = "latest_only"
    ALL_VERSIONS = "all_versions"

    @classmethod
    def _missing_(cls, value: object) -> "UrlMode | None":
        """Accept any case and hyphens, as in `latest-only`."""
        name = value.upper().replace("-", "_") if isinstance(value, str) else ""
        return cls.__members__.get(name)


class ClientRole(StrEnum):
    """What a client may do."""

    SUBMITTER = "submitter"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


class Platform(Row):
    """A partner system. A new partner is a row, never a code change."""

    table: ClassVar = Table(
        name="platforms",
        primary_key=("platform_id",),
        checks=(
            Check("platform_id_form", "platform_id ~ '^[a-z][a-z0-9_]*$'"),
            Check("has_identity", "cardinality(required_refs) > 0"),
            Check(
                "source_containers_form",
                # Written as PostgreSQL dumps it: what is nested otherwise looks changed after a restore.
                f"cardinality(source_containers) >= 1 AND cardinality(source_containers) <= {MAX_PATTERNS}"
                r" AND array_to_string(source_containers, E'\n', '') || E'\n'"
                r" ~ '^([A-Za-z0-9$][A-Za-z0-9_.-]{0,62}(/([^/\n]+/)+)?\n)+$'"
                r" AND array_to_string(source_containers, E'\n', '') !~ '/[.][.]?/'",
            ),
        ),
        seeds=(
            {
                "platform_id": "ddh",
                "display_name": "Data Distribution Hub",
                "required_refs": ["dataset_id", "resource_id"],
                "version_ref": "version_id",
            },
            {
                "platform_id": "arcgis",
                "display_name": "ArcGIS",
                "required_refs": ["item_id", "layer_index"],
                "version_ref": "version",
            },
            {
                "platform_id": "geonode",
                "display_name": "GeoNode",
                "required_refs": ["uuid"],
                "version_ref": "version",
            },
        ),
        grants=granted(orchestrator=CHANGE, worker=READ),  # a lease says where the sources of its task may lie
    )

    platform_id: PlatformKey
    display_name: Label
    description: str | None = None
    required_refs: list[Short] = Field(description="The fields that identify a dataset of this partner.")
    optional_refs: list[Short] = Field(default_factory=list, description="Kept, but not part of the identity.")
    version_ref: Short = Field(description="The partner's field that carries the version label.")
    source_containers: list[SourcePattern] | None = Field(
        None,
        description="Where its files may lie: `container` or `container/prefix/`; null is `bronze/<platform_id>/`.",
    )
    is_active: bool = True
    four_eyes: bool = Field(
        False,
        description="Nobody approves what they submitted, and two reviewers approve what the public is to see.",
    )
    created_at: CreatedAt
    updated_at: CreatedAt

    @model_validator(mode="before")
    @classmethod
    def _fill_default_sources(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("source_containers") is not None or "platform_id" not in data:
            return data
        return {**data, "source_containers": default_patterns(data["platform_id"])}

    def admits(self, path: str) -> bool:
        """Whether the partner may name the file at `container/blob/path`."""
        return admits(self.source_containers or default_patterns(self.platform_id), path)


class GeospatialAsset(Row):
    """One dataset of one partner: the aggregate root of its versions."""

    table: ClassVar = Table(
        name="geospatial_assets",
        primary_key=("asset_id",),
        foreign_keys=(ForeignKey(("platform_id",), "platforms", ("platform_id",)),),
        checks=(
            Check(
                "public_has_time",
                "clearance_state <> 'public' OR (made_public_at IS NOT NULL AND made_public_by IS NOT NULL)",
            ),
            Check(
                "cleared_has_time",
                "clearance_state = 'uncleared' OR (cleared_at IS NOT NULL AND cleared_by IS NOT NULL)",
            ),
            Check("deleted_has_actor", "(deleted_at IS NULL) = (deleted_by IS NULL)"),
            Check("short_id_is_a_beginning", "short_id IS NULL OR starts_with(asset_id, short_id)"),
        ),
        indexes=(
            Index(("short_id",), unique=True, comment="No two assets share the names of outputs."),
            Index(
                ("(to_tsvector('simple'::regconfig, platform_refs))",),
                method="gin",
                name="geospatial_assets_text",
                comment="Assets by words of their refs.",
            ),
            Index(
                ("platform_refs jsonb_path_ops",),
                method="gin",
                comment="All assets of a dataset: platform_refs @> …",
            ),
            Index(("platform_id", "created_at DESC", "asset_id DESC")),
            Index(("created_at DESC", "asset_id DESC"), where="deleted_at IS NULL"),
            Index(("clearance_state", "created_at DESC", "asset_id DESC"), where="deleted_at IS NULL"),
            Index(("data_type", "created_at DESC", "asset_id DESC"), where="deleted_at IS NULL"),
            Index(
                ("created_at DESC", "asset_id DESC"),
                name="geospatial_assets_newest",
                comment="Lists that show the deleted ones, too.",
            ),
        ),
        grants=granted(orchestrator=CHANGE, worker=READ),  # whose sources a task may read
    )

    asset_id: AssetKey
    short_id: AssetPrefix | None = Field(None, description="The beginning of the id that names of outputs carry.")
    platform_id: PlatformKey
    platform_refs: JsonObject
    data_type: DataType
    clearance_state: ClearanceState = ClearanceState.UNCLEARED
    cleared_at: Timestamp | None = Field(None, description="When it was cleared first; never changed.")
    cleared_by: Name | None = None
    made_public_at: Timestamp | None = Field(None, description="When it became public first; never changed.")
    made_public_by: Name | None = None
    clearance_changed_at: Timestamp | None = Field(None, description="When its clearance was changed last.")
    clearance_changed_by: Name | None = None
    url_mode: UrlMode = UrlMode.LATEST_ONLY
    latest_approved_version_ordinal: int | None = None
    deleted_at: Timestamp | None = None
    deleted_by: Name | None = None
    version: int = Field(1, description="Raised by every change; a writer that read an older one is refused.")
    created_at: CreatedAt
    updated_at: CreatedAt


class Reviewable(BaseModel):
    """Base of what people review. What failed to be processed is `failed` whenever it is read: nobody can review it.

    The database keeps `pending_review` there: releases before this one know no other word.
    """

    @model_validator(mode="before")
    @classmethod
    def _read_failure(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        is_undecided = values.get("approval_state", ApprovalState.PENDING_REVIEW) == ApprovalState.PENDING_REVIEW
        has_failed = values.get("processing_state") == ProcessingState.FAILED
        return {**values, "approval_state": ApprovalState.FAILED} if is_undecided and has_failed else values

    def stored(self, column: str) -> Any:
        """Return the value that the database keeps in a column."""
        value = getattr(self, column)
        return ApprovalState.PENDING_REVIEW if value is ApprovalState.FAILED else value


class AssetVersion(Reviewable, Row):
    """A partner's "here is new data"."""

    table: ClassVar = Table(
        name="asset_versions",
        primary_key=("asset_id", "version_ordinal"),
        foreign_keys=(
            ForeignKey(("asset_id",), "geospatial_assets", ("asset_id",)),
            ForeignKey(("current_job_id",), "dag_jobs", ("job_id",), on_delete="SET NULL"),
        ),
        checks=(
            Check("ordinal_from_zero", "version_ordinal >= 0"),
            Check("revision_from_one", "revision >= 1"),
            Check(
                "approved_has_reviewer",
                "approval_state <> 'approved' OR (reviewer IS NOT NULL AND reviewed_at IS NOT NULL)",
            ),
            Check("failed_is_derived", "approval_state::text <> 'failed'"),
            Check("approved_has_revision", "approval_state <> 'approved' OR approved_revision IS NOT NULL"),
            Check("approved_was_made", "approved_revision <= revision"),
            Check("endorsed_has_reviewer", "(endorsed_revision IS NULL) = (endorsed_by IS NULL)"),
            Check("seconded_by_another", "seconded_by <> approved_by"),
            Check("rejected_has_reason", "approval_state <> 'rejected' OR rejection_reason IS NOT NULL"),
            Check("revoked_is_rejected", "revoked_at IS NULL OR approval_state = 'rejected'"),
            Check("bbox_has_corners", "bbox IS NULL OR (cardinality(bbox) = 4 AND bbox[2] <= bbox[4])"),
            Check("deleted_has_actor", "(deleted_at IS NULL) = (deleted_by IS NULL)"),
        ),
        indexes=(
            Index(
                ("asset_id",),
                unique=True,
                where="(approval_state = 'rejected' OR approval_state = 'pending_review'"
                " AND processing_state <> 'failed') AND deleted_at IS NULL AND revoked_at IS NULL"
                " AND approved_revision IS NULL",
                name="asset_versions_one_unresolved",
                comment="At most one version of an asset awaits its first approval. One that was in service before may"
                " stand beside it: it was revoked, or a new revision of it turned out to be another content. So may"
                " those that failed to be processed: there is nothing to approve.",
            ),
            Index(
                ("asset_id", "version_label"),
                unique=True,
                where="deleted_at IS NULL",
                name="asset_versions_one_live_label",
            ),
            Index(("processing_state", "created_at DESC"), where="deleted_at IS NULL"),
            Index(("approval_state", "created_at DESC"), where="deleted_at IS NULL"),
            Index(("current_job_id",), where="current_job_id IS NOT NULL"),
            Index(("stac_item_id",), where="stac_item_id IS NOT NULL", comment="Items that the catalogue may show."),
            Index(("stac_collection_id",), where="stac_collection_id IS NOT NULL", comment="Likewise collections."),
            Index(("job_count DESC", "asset_id"), where="job_count > 1 AND deleted_at IS NULL"),
            Index(
                ("asset_id",),
                where="exported_revision <> approved_revision",
                name="asset_versions_outdated_copies",
                comment="What the public sees in another revision than the one in service: few, and not for long.",
            ),
            Index(
                ("(coalesce(processing_completed_at, updated_at)) DESC", "asset_id DESC", "version_ordinal DESC"),
                where="processing_state = 'failed' AND deleted_at IS NULL",
                name="asset_versions_failed",
                comment="What needs attention, newest first.",
            ),
            Index(
                ("(coalesce(processing_completed_at, updated_at))", "asset_id", "version_ordinal"),
                where="approval_state = 'pending_review' AND processing_state = 'completed' AND deleted_at IS NULL",
                name="asset_versions_waiting",
                comment="What waits for a decision, the longest first.",
            ),
            Index(
                (
                    (
                        "(box(point(CASE WHEN bbox[1] > bbox[3] THEN -180 ELSE bbox[1] END, bbox[2]),"
                        " point(CASE WHEN bbox[1] > bbox[3] THEN 180 ELSE bbox[3] END, bbox[4])))"
                    ),
                ),
                method="gist",
                where="bbox IS NOT NULL AND deleted_at IS NULL",
                name="asset_versions_bbox",
                comment="Versions by where they lie; one across the antimeridian counts as all around the earth.",
            ),
        ),
        grants=granted(orchestrator=CHANGE),
    )

    asset_id: AssetKey
    version_ordinal: int
    version_label: Label = Field(description="The partner's own; never parsed, never ordered by.")
    approval_state: ApprovalState = ApprovalState.PENDING_REVIEW
    reviewer: Name | None = None
    reviewed_at: Timestamp | None = None
    rejection_reason: ErrorText | None = None
    revoked_at: Timestamp | None = Field(None, description="When an approved version was taken out of service.")
    approved_revision: int | None = Field(None, description="The revision in service; null when none is.")
    approved_by: Name | None = Field(
        None, description="Who approved the revision in service; `reviewer` is who decided on the newest one."
    )
    seconded_by: Name | None = Field(
        None, description="The other reviewer who approved the revision in service for the public, where two must."
    )
    first_approved_at: Timestamp | None = Field(None, description="When it came into service first; never cleared.")
    endorsed_revision: int | None = Field(
        None, description="The revision that the first of two reviewers approved for the public."
    )
    endorsed_by: Name | None = None
    endorsed_at: Timestamp | None = None
    processing_state: ProcessingState = ProcessingState.QUEUED
    processing_started_at: Timestamp | None = None
    processing_completed_at: Timestamp | None = None
    estimated_completion_at: Timestamp | None = None
    last_error: ErrorText | None = None
    told_error: ErrorText | None = Field(None, description="Why it failed, as far as its partner is told.")
    validation: JsonObject | None = Field(None, description="What was found in the source: a `ValidationReport`.")
    node_summary: JsonObject | None = None
    current_job_id: JobKey | None = None
    job_count: int = Field(0, description="How many jobs have processed it; exports and reversals do not count.")
    workflow_id: WorkflowKey | None = None
    workflow_version: Short | None = None
    last_request_id: UUID | None = None
    priority: Priority = 0
    content_hash: Sha256 | None = Field(None, description="SHA-256 of the source.")
    output_hash: Sha256 | None = None
    revision: int = Field(1, description="How often we processed this content.")
    blob_path: Path | None = None
    table_name: TableName | None = None
    stac_item_id: Label | None = None
    stac_collection_id: Label | None = None
    item_hash: Sha256 | None = Field(None, description="SHA-256 of the item as it was when the job ended.")
    bbox: list[float] | None = Field(None, description="West, south, east, north, in degrees.")
    external_blob_path: Path | None = None
    external_item_hash: Sha256 | None = Field(None, description="The same of the item of the copy for the public.")
    export_run_id: Name | None = None
    exported_revision: int | None = Field(None, description="The revision that was copied for the public.")
    first_exported_at: Timestamp | None = Field(None, description="When the public could see it first; never cleared.")
    deleted_at: Timestamp | None = None
    deleted_by: Name | None = None
    created_at: CreatedAt
    updated_at: CreatedAt


class AssetRevision(Reviewable, Row):
    """What a superseded revision of a version was. Only ever added to."""

    table: ClassVar = Table(
        name="asset_revisions",
        primary_key=("asset_id", "version_ordinal", "revision"),
        foreign_keys=(ForeignKey(("asset_id", "version_ordinal"), "asset_versions", ("asset_id", "version_ordinal")),),
        indexes=(
            Index(
                ("(outputs ->> 'stac_item_id')",),
                where="outputs ? 'stac_item_id'",
                name="asset_revisions_stac_item",
                comment="What the catalogue may show of it, while a newer revision awaits its approval.",
            ),
        ),
        checks=(Check("failed_is_derived", "approval_state::text <> 'failed'"),),
        grants=granted(orchestrator=APPEND),
    )

    asset_id: AssetKey
    version_ordinal: int
    revision: int
    job_id: JobKey | None = None
    content_hash: Sha256 | None = None
    output_hash: Sha256 | None = None
    outputs: JsonObject = Field(default_factory=dict)
    approval_state: ApprovalState
    clearance_state: ClearanceState
    reviewer: Name | None = None
    reviewed_at: Timestamp | None = None
    rejection_reason: ErrorText | None = None
    revoked_at: Timestamp | None = None
    processing_state: ProcessingState | None = Field(None, description="Null where an older release logged it.")
    processing_started_at: Timestamp | None = None
    processing_completed_at: Timestamp | None = None
    last_error: ErrorText | None = None
    told_error: ErrorText | None = Field(None, description="Why it failed, as far as its partner is told.")
    validation: JsonObject | None = Field(None, description="What was found in the source: a `ValidationReport`.")
    created_at: Timestamp
    superseded_at: CreatedAt


class PlatformRequest(Row):
    """A partner's work order. It exists before any job does, and outlives its asset."""

    table: ClassVar = Table(
        name="platform_requests",
        primary_key=("request_id",),
        checks=(Check("failed_has_reason", "status <> 'failed' OR last_error IS NOT NULL"),),
        indexes=(
            Index(("platform_id", "idempotency_key"), unique=True, where="idempotency_key IS NOT NULL"),
            Index(("asset_id", "created_at DESC")),
            Index(("platform_id", "created_at DESC", "request_id DESC"), comment="A partner's own requests."),
            Index(("created_at DESC", "request_id DESC"), comment="The requests of all partners."),
            Index(("status", "created_at DESC"), where="status IN ('accepted', 'processing')"),
            Index(("job_id",), where="job_id IS NOT NULL"),
        ),
        grants=granted(orchestrator=CHANGE),
    )

    request_id: UUID
    platform_id: PlatformKey
    asset_id: AssetKey
    version_ordinal: int
    revision: int = 1
    request_body: JsonObject = Field(description="What was asked, in the domain's words.")
    status: RequestStatus = RequestStatus.ACCEPTED
    job_id: JobKey | None = None
    retry_count: int = 0
    last_error: ErrorText | None = None
    submitted_by: Name | None = None
    idempotency_key: Short | None = None
    created_at: CreatedAt
    updated_at: CreatedAt


class ApiClient(Row):
    """Who may call. Only a hash of the key is kept."""

    table: ClassVar = Table(
        name="api_clients",
        primary_key=("client_id",),
        foreign_keys=(ForeignKey(("platform_id",), "platforms", ("platform_id",)),),
        unique=(("key_hash",),),
        checks=(
            Check("has_role", "cardinality(roles) > 0"),
            Check("submitter_has_platform", "NOT ('submitter' = ANY (roles)) OR platform_id IS NOT NULL"),
        ),
        grants={**granted(orchestrator=FULL), DatabaseRole.SERVE_INTERNAL: READ},  # previews are for reviewers
    )

    client_id: Annotated[ClientId, Field(max_length=64)]
    display_name: Label
    key_hash: Sha256 = Field(repr=False)
    platform_id: PlatformKey | None = Field(None, description="The partner that this client speaks for.")
    roles: list[ClientRole]
    is_active: bool = True
    last_used_at: Timestamp | None = None
    created_at: CreatedAt
    updated_at: CreatedAt


class LayerMetadata(Row):
    """How an asset version is described: title, licence, style and the like."""

    table: ClassVar = Table(
        name="layer_metadata",
        primary_key=("asset_id", "version_ordinal"),
        foreign_keys=(ForeignKey(("asset_id", "version_ordinal"), "asset_versions", ("asset_id", "version_ordinal")),),
        indexes=(
            Index(
                ("(to_tsvector('simple'::regconfig, coalesce(title, '') || ' ' || coalesce(description, '')))",),
                method="gin",
                name="layer_metadata_text",
                comment="Versions by words of their descriptions.",
            ),
        ),
        checks=(
            Check(
                "temporal_order",
                "temporal_start IS NULL OR temporal_end IS NULL OR temporal_start <= temporal_end",
            ),
        ),
        grants=granted(orchestrator=CHANGE),
    )

    asset_id: AssetKey
    version_ordinal: int
    title: Label | None = None
    description: str | None = None
    keywords: list[Short] = Field(default_factory=list)
    attribution: Label | None = None
    licence: Short | None = None
    temporal_start: Timestamp | None = None
    temporal_end: Timestamp | None = None
    bands: list[JsonObject] = Field(default_factory=list)
    style: JsonObject | None = None
    version: int = 1
    updated_by: Name | None = None
    created_at: CreatedAt
    updated_at: CreatedAt


class LayerCatalog(Row):
    """The published projection of layer metadata: what the catalogue shows."""

    table: ClassVar = Table(
        name="layer_catalog",
        primary_key=("asset_id", "version_ordinal"),
        foreign_keys=(ForeignKey(("asset_id", "version_ordinal"), "asset_versions", ("asset_id", "version_ordinal")),),
        indexes=(Index(("is_external",), where="is_external"),),
        grants=granted(orchestrator=FULL),
    )

    asset_id: AssetKey
    version_ordinal: int
    entry: JsonObject
    is_external: bool = False
    published_at: CreatedAt
    published_by: Name | None = None


class OutputCheck(Row):
    """What `graticule verify` found last in the outputs of a version in service, for each audience."""

    table: ClassVar = Table(
        name="output_checks",
        primary_key=("asset_id", "version_ordinal", "audience"),
        foreign_keys=(ForeignKey(("asset_id", "version_ordinal"), "asset_versions", ("asset_id", "version_ordinal")),),
        checks=(Check("faults_are_a_list", "jsonb_typeof(faults) = 'array'"),),
        indexes=(
            Index(("checked_at",), comment="The longest ago."),
            Index(
                ("asset_id", "version_ordinal", "audience"),
                where="faults <> '[]'",
                name="output_checks_damaged",
                comment="Damaged outputs: few, or none.",
            ),
        ),
        grants=granted(orchestrator=FULL),
    )

    asset_id: AssetKey
    version_ordinal: int
    audience: Audience
    revision: int = Field(description="The revision that was in service then.")
    checked_at: Timestamp
    hashed_at: Timestamp | None = Field(None, description="When the contents of this revision were last hashed.")
    files_mark: Sha256 | None = Field(None, description="SHA-256 of the paths and etags of files found to be intact.")
    faults: list[JsonObject] = Field(default_factory=list, description="Each with its code, place and message.")
