"""What callers and the platform say to each other: requests and answers, in the domain's words.

The orchestrator, the gateway and the client library share these. What only staff may see has models of its own.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
    computed_field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from graticule.core.ids import JobId
from graticule.core.models.fields import AssetKey, Label, PlatformKey, Priority, Sha256, Url
from graticule.core.models.platform import AssetVersion, DataType, GeospatialAsset, UrlMode
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.core.validation import ValidationReport

MOST_REFS: Final = 20
ACCESS_LEVEL: Final = "access_level"
CLEARANCE_LEVELS: Final = (ClearanceState.OUO, ClearanceState.PUBLIC)


def _read_clearance_level(value: object) -> ClearanceState:
    """Read a level in any case, as `OUO`; a `Literal` of the enum would show its Python names to callers."""
    if not isinstance(value, str) or value.lower() not in CLEARANCE_LEVELS:
        raise PydanticCustomError("clearance_level", "Input should be 'ouo' or 'public'")
    return ClearanceState(value.lower())


RefName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]
RefText = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]
RefNumber = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Refs = Annotated[dict[RefName, RefText | RefNumber], Field(min_length=1, max_length=MOST_REFS)]
VersionLabel = Annotated[Label, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")]
Container = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9$][A-Za-z0-9_.-]*$", max_length=63)]
FileName = Annotated[str, StringConstraints(min_length=1, max_length=900, pattern=r"^[^\x00-\x1f\\]+$")]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=r"^[^\x00]*$"),
    Field(examples=["Clouds cover a third of it."]),
]
Note = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=r"^[^\x00]*$"),
    Field(description="What the reviewer adds; the partner reads it.", examples=["Please mask the clouds."]),
]
Ordinal = Annotated[int, Field(ge=0, lt=2**31, examples=[1])]
Revision = Annotated[int, Field(strict=True, ge=1, lt=2**31, examples=[2])]
ReviewerName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")
]
Reviewer = Annotated[
    ReviewerName | None,
    Field(
        description="The caller is the reviewer. Another name that is sent here is kept in the history beside it.",
        examples=["user@example.com"],
    ),
]
JobName = Annotated[JobId, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$")]
ClearanceLevel = Annotated[
    ClearanceState,
    BeforeValidator(_read_clearance_level),
    WithJsonSchema({"type": "string", "enum": [level.value for level in CLEARANCE_LEVELS]}),
    Field(examples=["ouo"]),
]


class Asked(BaseModel):
    """Base of what a caller sends: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class WithClearanceLevel(Asked):
    """Base of what names a clearance level, which earlier callers send as `access_level`."""

    @model_validator(mode="before")
    @classmethod
    def _read_access_level(cls, body: Any) -> Any:
        return rename_access_level(body) if isinstance(body, Mapping) else body


def rename_access_level(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body with its `access_level` as `clearance_level`; raise `ValueError` where the two differ."""
    if ACCESS_LEVEL not in body:
        return body
    level, other = body[ACCESS_LEVEL], body.get("clearance_level")
    if other is not None and str(other).lower() != str(level).lower():
        raise ValueError("access_level is another name of clearance_level, and the two differ: send one of them")
    return {**{name: value for name, value in body.items() if name != ACCESS_LEVEL}, "clearance_level": level}


class PlatformSubmission(WithClearanceLevel):
    """New data of a partner: where it is, and which dataset and version it belongs to."""

    platform_id: PlatformKey = Field(examples=["ddh"])
    platform_refs: Refs = Field(
        description="The partner's identifiers: all required ones, any of the optional ones.",
        examples=[{"dataset_id": "0038272", "resource_id": "shapefile"}],
    )
    version_label: VersionLabel = Field(description="The partner's own; never parsed.", examples=["2026-03"])
    data_type: DataType
    container_name: Container = Field(description="The container of the file.", examples=["bronze"])
    file_name: FileName = Field(description="The path of the file in its container.", examples=["ddh/dem/europe.tif"])
    processing_options: dict[str, JsonValue] = Field(
        default_factory=dict, description="Inputs of the workflow, and `pipeline`, which chooses among workflows."
    )
    overwrite: bool = Field(False, description="The label exists: make a new revision of that version.")
    clearance_level: ClearanceLevel | None = Field(
        None, description="What the partner proposes to the reviewer; `access_level` is another name of it."
    )
    callback_url: Url | None = Field(None, description="Is told when processing ends.")
    priority: Priority = Field(
        0, description="0 is normal, 10 most urgent; lowered to the highest that the caller may ask for."
    )

    @model_validator(mode="after")
    def _file_stays_in_its_container(self) -> Self:
        parts = self.file_name.split("/")
        if any(part in {"", ".", ".."} for part in parts):
            raise ValueError("file_name must be a path below its container, without empty parts, '.' or '..'")
        return self


class SubmissionReceipt(BaseModel):
    """What a submission came to, for staff."""

    request_id: UUID
    asset_id: AssetKey
    version_ordinal: int
    revision: int
    status: RequestStatus = RequestStatus.ACCEPTED
    job_id: JobId | None = None
    priority: Priority = Field(0, description="As asked for, but no higher than the caller may ask for.")
    warnings: list[str] = Field(
        default_factory=list, description="One sentence for each queue of the job that no live worker serves now."
    )


class Change(Asked):
    """Base of what is asked of an asset or of one of its versions."""

    expected_version: int | None = Field(
        None,
        strict=True,
        ge=1,
        lt=2**31,
        description="The asset's `version` that the caller has seen; another one refuses the change (409).",
        examples=[3],
    )


class ReviewedChange(Change):
    """Base of what people decide of an asset; a dry run says what would become of it, and changes nothing."""

    dry_run: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Say what would change, or why it would be refused, and change nothing."
    )


class VersionChange(Change):
    """Base of what is asked of one version; without an ordinal it is the one that the deed suits."""

    version_ordinal: Annotated[Ordinal, Field(strict=True)] | None = None


class Decision(VersionChange, ReviewedChange):
    """Base of a reviewer's decision: it names the revision that the reviewer looked at.

    With several versions it names the version, too. One that names only the asset counts while that has had a single
    version with a single revision.
    """

    revision: Revision | None = Field(
        None,
        description="The revision that the reviewer looked at; another one there refuses the decision (409).",
    )
    output_hash: Sha256 | None = Field(None, description="Names the revision by the hash of its outputs.")
    request_id: UUID | None = Field(None, description="A request, which stands for its own version and revision.")
    job_id: JobName | None = Field(
        None, description="The job that processed the revision; it stands for the same as its request."
    )
    reviewer: Reviewer = None

    @model_validator(mode="after")
    def _names_request_or_job(self) -> Self:
        if self.request_id is not None and self.job_id is not None:
            raise ValueError("name a request by request_id or by job_id, and by one of them only")
        return self


class Approval(Decision, WithClearanceLevel):
    """Let a version be seen, at a clearance."""

    clearance_level: ClearanceLevel = Field(description="Who may see it; `access_level` is another name of it.")
    note: Note | None = None


class Rejection(Decision):
    """Refuse a version, with the reason."""

    reason: Reason
    note: Note | None = None


class Revocation(Decision):
    """Take an approved version out of service, with the reason."""

    reason: Reason
    note: Note | None = None


class Reprocessing(VersionChange):
    """Process a version again from the same source, for a reason of ours."""

    reason: Reason
    reviewer: Reviewer = None


class Retrial(VersionChange):
    """Process a version again that failed."""


class ClearanceChange(Decision, WithClearanceLevel):
    """Say who may see an asset; what is named is the revision in service of its latest approved version."""

    clearance_level: ClearanceLevel = Field(description="Who may see it; `access_level` is another name of it.")
    note: Note | None = None


class UrlModeChange(ReviewedChange):
    """Say which versions the service addresses of an asset reach."""

    url_mode: UrlMode = Field(
        description="The values are also accepted with hyphens, as `latest-only`.", examples=["all_versions"]
    )


class Removal(ReviewedChange):
    """Remove an asset from all services; its rows stay."""

    reason: Reason | None = None
    reviewer: Reviewer = None


class AssetChange(BaseModel):
    """How an asset and the version at hand stand after a change, for staff."""

    asset: GeospatialAsset
    version: AssetVersion | None = None
    changed: bool = Field(True, description="False when it was so already; nothing was done then.")
    dry_run: bool = Field(False, description="True when nothing was changed, and this is what would be.")
    effects: list[str] = Field(
        default_factory=list,
        description="What becomes of the services: which versions enter or leave them, or change.",
        examples=[["Version 0 (2026-03) leaves the public services."]],
    )
    warning: str | None = None
    job_id: JobId | None = Field(None, description="The job that carries the change out in the services.")


class DecisionState(StrEnum):
    """What a reviewer decided."""

    APPROVED = "approved"
    REJECTED = "rejected"
    REVOKED = "revoked"


class ReviewOutcome(BaseModel):
    """What a reviewer decided on a revision."""

    state: DecisionState
    by: str | None = Field(None, description="Who decided; only staff see it.")
    at: datetime | None = Field(None, description="Null where an older release did not keep it.")
    reason: str | None = None
    note: str | None = Field(None, description="What the reviewer added.")


class CopyState(StrEnum):
    """How the copy of a revision for the public stands."""

    NONE = "none"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class PublicCopy(BaseModel):
    """The copy of a revision for the public."""

    state: CopyState = CopyState.NONE
    error: str | None = None
    at: datetime | None = Field(None, description="When it came to stand so.")


class SupersedingRequest(BaseModel):
    """The request whose revision took the place of another."""

    request_id: UUID
    revision: int


class VersionInBrief(BaseModel):
    """Which version, in the partner's word and in ours."""

    ordinal: int
    label: str
    revision: int


class PlatformStatus(BaseModel):
    """How a request stands, in the words of a partner: nothing internal.

    It is about the revision that the request made, also after a newer one has taken its place.
    """

    request_id: UUID
    asset_id: AssetKey
    data_type: DataType
    status: RequestStatus
    state_reason: str | None = Field(None, description="Why it stands so: a failure, a decision, a newer revision.")
    next_step: str | None = Field(None, description="What to do after a failure or a rejection.")
    progress: float = Field(ge=0, le=100, description="Percent.")
    eta: datetime | None = Field(None, description="When processing will probably end; null when it has, or unknown.")
    version: VersionInBrief
    superseded_by: SupersedingRequest | None = Field(
        None,
        description="The request whose revision took the place of this one: the one in service, or else the next one."
        " Null while this revision is the approved one.",
    )
    processing_state: ProcessingState
    approval_state: ApprovalState
    decision: ReviewOutcome | None = Field(None, description="The reviewer's decision on this revision.")
    clearance_state: ClearanceState
    clearance_requested: ClearanceState | None = Field(None, description="What the submission proposed.")
    export: PublicCopy = Field(description="The copy of this revision for the public.")
    in_service: VersionInBrief | None = Field(None, description="What `service_urls` reach.")
    service_urls: dict[str, str] = Field(default_factory=dict, description="Where it is served now.")
    accepted_at: datetime
    processing_started_at: datetime | None = None
    processing_completed_at: datetime | None = Field(None, description="When processing ended, well or not.")
    reviewed_at: datetime | None = None
    cleared_at: datetime | None = Field(None, description="When the asset was cleared first.")
    made_public_at: datetime | None = Field(None, description="When the asset became public first.")
    exported_at: datetime | None = Field(
        None, description="When the copy for the public was complete, whatever became of it."
    )
    superseded_at: datetime | None = None
    withdrawn_at: datetime | None = Field(None, description="When its approval was revoked.")
    removed_at: datetime | None = Field(None, description="When the version, or its asset, left all services.")
    error: str | None = None
    validation: ValidationReport | None = Field(None, description="What was found in the file that was sent.")

    @computed_field(description="The revision that the request made, as in `version`.")  # type: ignore[prop-decorator]
    @property
    def revision(self) -> int:
        """The revision that the request made."""
        return self.version.revision
