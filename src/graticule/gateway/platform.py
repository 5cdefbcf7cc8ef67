"""`/api/platform/…`: what partners do (send data, ask how it stands), and what staff decide of it."""

from datetime import datetime
from typing import Annotated, Any, Final, Self
from uuid import UUID

from fastapi import APIRouter, Body, Header, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, BaseModel, Field, GetJsonSchemaHandler, JsonValue, RootModel, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from graticule.config import HttpAddress, Settings
from graticule.core.asset_views import OperatorStatus, PartnerRequest
from graticule.core.errors import InvalidInput
from graticule.core.exchange import (
    Approval,
    Asked,
    AssetChange,
    Change,
    Decision,
    JobName,
    PlatformStatus,
    PlatformSubmission,
    Rejection,
    Removal,
    Reprocessing,
    Retrial,
    Revocation,
    SubmissionReceipt,
    VersionChange,
)
from graticule.core.ids import AssetId, JobId, PlatformId
from graticule.core.models import Platform, PlatformRequest
from graticule.core.models.fields import AssetKey, PlatformKey, Priority, Short
from graticule.core.partner_fields import LABEL, REFS, translate
from graticule.core.permissions import Caller, Deed
from graticule.core.states import RequestStatus
from graticule.gateway.earlier_forms import PREFIX as EARLIER_PREFIX
from graticule.gateway.earlier_forms import QueuedJob, convert_priority, is_job, read_job
from graticule.gateway.forwarding import PRINTABLE, Forward
from graticule.gateway.platforms import Inactive, PlatformPath
from graticule.gateway.seen import change_for, for_staff
from graticule.gateway.services import Assets, Platforms, TheSettings
from graticule.gateway.submissions import JOBS
from graticule.http.callers import (
    CallerWhoOperates,
    CallerWhoReads,
    CallerWhoRemoves,
    CallerWhoReviews,
    CallerWhoSubmits,
)
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.repositories.asset_views import RequestFilter
from graticule.services.asset_reading import AssetReader, Target
from graticule.services.jobs import JobReceipt
from graticule.services.service_addresses import ServiceAddresses

PREFIX: Final = "/api/platform"

router = APIRouter(tags=["platform"], responses=problem_responses(401, 403, 404, 422, 429, 503))

IdempotencyKey = Annotated[
    Short | None,
    Header(
        min_length=1,
        pattern=PRINTABLE,
        description="A second submission with the same key gives the receipt of the first.",
    ),
]
StatusKey = Annotated[str, Path(max_length=64, description="A request, or an asset; operators may name a job, too.")]

_FORWARDED: Final = problem_responses(400, 409, 413, 502)
_REQUESTS: Final[Cursors[tuple[datetime, UUID]]] = Cursors(tuple[AwareDatetime, UUID])
_EXAMPLES: Final[dict[str, Any]] = {
    "domain": {
        "summary": "In the domain's words",
        "value": {
            "platform_id": "ddh",
            "platform_refs": {"dataset_id": "0038272", "resource_id": "shapefile"},
            "version_label": "2026-03",
            "data_type": "vector",
            "container_name": "bronze",
            "file_name": "ddh/roads/europe.zip",
        },
    },
    "flat": {
        "summary": "In the partner's own words, as its row of the registry names them",
        "value": {
            "dataset_id": "0038272",
            "resource_id": "shapefile",
            "version_id": "2026-03",
            "data_type": "vector",
            "container_name": "bronze",
            "file_name": "ddh/roads/europe.zip",
        },
    },
}


class SubmissionForm(RootModel[dict[str, JsonValue]]):
    """A submission in the domain's words or in the partner's own; the registry says what the latter are."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        domain = handler.resolve_ref_schema(handler(PlatformSubmission.__pydantic_core_schema__))
        own = {name: schema for name, schema in domain["properties"].items() if name not in {REFS, LABEL}}
        required = [name for name in domain["required"] if name != "platform_id"]
        return {
            "title": cls.__name__,
            "description": cls.__doc__,
            "anyOf": [
                {**domain, "title": "In the domain's words", "required": required},
                {
                    "title": "In the partner's own words",
                    "description": "Each of the partner's refs, and its field of the version, stand beside the rest.",
                    "type": "object",
                    "properties": own,
                    "required": [name for name in required if name in own],
                    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                },
            ],
        }


class PlatformList(Page[Platform]):
    """The partners, as earlier callers expect them."""

    platforms: list[Platform] = Field(description="The same as `items`.")


class PlatformReceipt(BaseModel):
    """What a submission came to."""

    request_id: UUID
    asset_id: AssetKey
    version_ordinal: int
    revision: int
    status: RequestStatus = RequestStatus.ACCEPTED
    priority: Priority = Field(0, description="As asked for, but no higher than the caller may ask for.")
    monitor_url: str = Field(description="Tells how the request stands.")


class OperatorReceipt(PlatformReceipt):
    """What a submission came to, for operators."""

    job_id: JobId | None
    warnings: list[str] = Field(
        default_factory=list, description="One sentence for each queue of the job that no live worker serves now."
    )


class Named(Asked):
    """Base of what names an asset: by itself, or by a request for it."""

    asset_id: AssetKey | None = None
    request_id: UUID | None = Field(None, description="Names the request's asset and version.")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.asset_id is None) == (self.request_id is None):
            raise ValueError("name the asset by asset_id or by request_id, and by one of them only")
        return self


class NamedByStaff(Asked):
    """Base of what names an asset: by itself, by a request for it, or by the job that processed it."""

    asset_id: AssetKey | None = None
    request_id: UUID | None = Field(None, description="Names the request's asset and version.")
    job_id: JobName | None = Field(None, description="Names the asset and version that the job processed.")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        _require_one_name(self.asset_id, self.request_id, self.job_id)
        return self


class NamedDecision(Decision):
    """Base of a decision that names its asset: by itself, by a request for it, or by the job that processed it."""

    asset_id: AssetKey | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        _require_one_name(self.asset_id, self.request_id, self.job_id)
        return self


class NamedApproval(NamedDecision, Approval):
    """Let a version be seen, at a clearance."""


class NamedRejection(NamedDecision, Rejection):
    """Refuse a version, with the reason."""


class NamedRevocation(NamedDecision, Revocation):
    """Take an approved version out of service, with the reason."""


class NamedRemoval(NamedByStaff, Removal):
    """Remove an asset from all services; its rows stay."""


class NamedReprocessing(NamedByStaff, Reprocessing):
    """Process a version again from the same source, for a reason of ours."""


class NamedRetrial(Named, Retrial):
    """Process a version again that failed."""


@router.post("/submit", status_code=202, response_model=OperatorReceipt | PlatformReceipt, responses=_FORWARDED)
async def submit(
    form: Annotated[SubmissionForm, Body(openapi_examples=_EXAMPLES)],
    *,
    request: Request,
    platforms: Platforms,
    forward: Forward,
    settings: TheSettings,
    caller: CallerWhoSubmits,
    idempotency_key: IdempotencyKey = None,
) -> OperatorReceipt | PlatformReceipt | JSONResponse:
    """Send data. A partner's platform is its own and need not be named; staff name the one for which they act.

    Operators may also send a job by its `workflow_id`, as earlier callers do.
    """
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    if is_job(form.root) and caller.may(Deed.OPERATE):
        job = await forward.send("POST", JOBS, JobReceipt, caller=caller, body=read_job(form.root), headers=headers)
        return JSONResponse(QueuedJob.of(job).model_dump(mode="json"), 202)
    is_earlier = request.url.path.startswith(EARLIER_PREFIX)
    body = convert_priority(form.root) if is_earlier else form.root
    platform = await platforms.platform(_platform_named(body, caller), caller)
    submission = PlatformSubmission.model_validate(translate(platform, body))
    await platforms.check_source(platform, submission, idempotency_key)
    receipt = await forward.send(
        "POST", "/api/v1/submit", SubmissionReceipt, caller=caller, body=submission, headers=headers
    )
    return _receipt_for(receipt, caller, settings)


@router.get("/status/{key}")
async def status(
    key: StatusKey, reader: Assets, settings: TheSettings, caller: CallerWhoReads
) -> OperatorStatus | PlatformStatus:
    """Tell how a request stands; of an asset, how its newest request does."""
    return await reader.status(key, caller, ServiceAddresses.of(settings))


@router.get("/requests")
async def list_requests(
    reader: Assets,
    caller: CallerWhoReads,
    *,
    platform_id: Annotated[PlatformKey | None, Query(description="Of this partner.", examples=["ddh"])] = None,
    asset_id: Annotated[AssetKey | None, Query(description="For this asset.")] = None,
    status: RequestStatus | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[PlatformRequest] | Page[PartnerRequest]:
    """List work orders, newest first."""
    wanted = RequestFilter(None if platform_id is None else PlatformId(platform_id), asset_id, status)
    found = await reader.requests(caller, wanted, _REQUESTS.read(cursor), limit + 1)
    page = _REQUESTS.page(found, limit, lambda request: (request.created_at, request.request_id))
    if caller.is_staff:
        return Page[PlatformRequest](items=[for_staff(request, caller) for request in page.items], next=page.next)
    return Page[PartnerRequest](items=[PartnerRequest.of(request) for request in page.items], next=page.next)


@router.get("/platforms")
async def list_platforms(platforms: Platforms, caller: CallerWhoReads, inactive: Inactive = False) -> PlatformList:
    """List the partners, as `/api/platforms` does."""
    found = await platforms.platforms(caller, with_inactive=inactive)
    return PlatformList(items=found, platforms=found)


@router.get("/platforms/{platform_id}")
async def one_platform(platform_id: PlatformPath, platforms: Platforms, caller: CallerWhoReads) -> Platform:
    """Give one partner, as `/api/platforms/{platform_id}` does."""
    return await platforms.platform(PlatformId(platform_id), caller)


@router.post("/approve", responses=_FORWARDED)
async def approve(asked: NamedApproval, reader: Assets, forward: Forward, caller: CallerWhoReviews) -> AssetChange:
    """Approve a version that was processed; of one that is approved already, only the clearance changes."""
    target = await _target(asked, reader, caller)
    return await _changed("approve", target, _body(Approval, asked, target), forward, caller)


@router.post("/reject", responses=_FORWARDED)
async def reject(asked: NamedRejection, reader: Assets, forward: Forward, caller: CallerWhoReviews) -> AssetChange:
    """Reject a version, with the reason; the partner may overwrite it."""
    target = await _target(asked, reader, caller)
    return await _changed("reject", target, _body(Rejection, asked, target), forward, caller)


@router.post("/revoke", responses=_FORWARDED)
async def revoke(asked: NamedRevocation, reader: Assets, forward: Forward, caller: CallerWhoReviews) -> AssetChange:
    """Take an approved version out of service, with the reason."""
    target = await _target(asked, reader, caller)
    return await _changed("revoke", target, _body(Revocation, asked, target), forward, caller)


@router.post("/unpublish", responses=_FORWARDED)
async def unpublish(asked: NamedRemoval, reader: Assets, forward: Forward, caller: CallerWhoRemoves) -> AssetChange:
    """Remove an asset from all services."""
    target = await _target(asked, reader, caller)
    return await _changed("unpublish", target, _body(Removal, asked, target), forward, caller)


@router.post("/reprocess", status_code=202, responses=_FORWARDED)
async def reprocess(
    asked: NamedReprocessing, reader: Assets, forward: Forward, settings: TheSettings, caller: CallerWhoOperates
) -> OperatorReceipt | PlatformReceipt:
    """Process a version again from the same source: a new revision."""
    target = await _target(asked, reader, caller)
    return await _begun(
        "reprocess", target, _body(Reprocessing, asked, target), forward=forward, caller=caller, settings=settings
    )


@router.post("/retry", status_code=202, responses=_FORWARDED)
async def retry(
    asked: NamedRetrial, reader: Assets, forward: Forward, settings: TheSettings, caller: CallerWhoSubmits
) -> OperatorReceipt | PlatformReceipt:
    """Process a version again that failed: the same request, a new attempt."""
    target = await _target(asked, reader, caller)
    return await _begun(
        "retry", target, _body(Retrial, asked, target), forward=forward, caller=caller, settings=settings
    )


def _require_one_name(*names: object) -> None:
    if names.count(None) != len(names) - 1:
        raise ValueError("name the asset by asset_id, request_id or job_id, and by one of them only")


def _platform_named(form: dict[str, JsonValue], caller: Caller) -> PlatformId:
    """Give the platform that a submission names, or the caller's own."""
    named = form.get("platform_id", None if caller.is_staff else caller.platform_id)
    if named is None:
        raise InvalidInput("`platform_id` is missing.", hint="Name the partner for whom you submit.")
    if not isinstance(named, str) or len(named) > 50 or not named.isprintable():
        raise InvalidInput("`platform_id` is not the id of a platform.", hint="`GET /api/platforms` lists them.")
    return PlatformId(named)


async def _target(asked: Named | NamedByStaff | NamedDecision, reader: AssetReader, caller: Caller) -> Target:
    """Find what a change is asked for; what is not the caller's is not there."""
    asset_id = None if asked.asset_id is None else AssetId(asked.asset_id)
    job_id = None if isinstance(asked, Named) else asked.job_id
    return await reader.target(asset_id, asked.request_id, caller, job_id=job_id)


def _body(model: type[Change], asked: Named | NamedByStaff | NamedDecision, target: Target) -> Change:
    """Return the body for the orchestrator; a request names its own version, and so does a job."""
    given = {name: getattr(asked, name) for name in asked.model_fields_set if name in model.model_fields}
    if target.version_ordinal is not None and issubclass(model, VersionChange):
        if given.get("version_ordinal") not in {None, target.version_ordinal}:
            raise InvalidInput(
                f"The request is for version {target.version_ordinal}, and `version_ordinal` says otherwise.",
                hint="Leave one of them out.",
            )
        given["version_ordinal"] = target.version_ordinal
    return model(**given)


async def _changed(deed: str, target: Target, body: Change, forward: Forward, caller: Caller) -> AssetChange:
    path = f"/api/v1/assets/{target.asset_id}/{deed}"
    return change_for(await forward.send("POST", path, AssetChange, caller=caller, body=body), caller)


async def _begun(
    deed: str, target: Target, body: Change, *, forward: Forward, caller: Caller, settings: Settings
) -> OperatorReceipt | PlatformReceipt:
    path = f"/api/v1/assets/{target.asset_id}/{deed}"
    receipt = await forward.send("POST", path, SubmissionReceipt, caller=caller, body=body)
    return _receipt_for(receipt, caller, settings)


def _receipt_for(receipt: SubmissionReceipt, caller: Caller, settings: Settings) -> OperatorReceipt | PlatformReceipt:
    """Give a receipt without what the caller may not know."""
    monitor_url = f"{_shown(settings.public_url) or ''}{PREFIX}/status/{receipt.request_id}"
    told = {**receipt.model_dump(), "monitor_url": monitor_url}
    return (OperatorReceipt if caller.may(Deed.OPERATE) else PlatformReceipt).model_validate(told)


def _shown(address: HttpAddress | None) -> str | None:
    """Give an address as partners may see it: without a login."""
    return None if address is None else str(address).rstrip("/")
