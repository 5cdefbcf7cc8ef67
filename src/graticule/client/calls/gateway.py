"""The gateway (`/api/…`): what partners do, and what staff decide of it.

Staff are given the rows, and partners views of their own: a list has the one or the other.
"""

from collections.abc import Mapping
from typing import Any, Unpack
from uuid import UUID

from graticule.client.call import Call, change, either, get, with_key
from graticule.client.calls.assets import AssetFilters, asset_query
from graticule.client.models import OperatorReceipt, Page, PlatformReceipt
from graticule.core.asset_views import (
    LayerDescribed,
    OperatorStatus,
    PartnerAsset,
    PartnerEvent,
    PartnerRequest,
    PartnerRevision,
    PartnerVersion,
    ServedVersion,
    StaffAsset,
    WaitingVersion,
)
from graticule.core.exchange import (
    Approval,
    AssetChange,
    Change,
    ClearanceChange,
    PlatformStatus,
    PlatformSubmission,
    Rejection,
    Removal,
    Reprocessing,
    Retrial,
    Revocation,
    UrlModeChange,
)
from graticule.core.models import AssetRevision, AssetVersion, Event, Platform, PlatformRequest
from graticule.core.states import RequestStatus

ASSET = "/api/assets/{asset_id}"

Receipt = OperatorReceipt | PlatformReceipt
_RECEIPT = either(OperatorReceipt, PlatformReceipt)
Asset = PartnerAsset | StaffAsset
Version = PartnerVersion | AssetVersion
Revision = PartnerRevision | AssetRevision
Happening = PartnerEvent | Event
Request = PartnerRequest | PlatformRequest


def submit(submission: PlatformSubmission | Mapping[str, Any], *, idempotency_key: str | None = None) -> Call[Receipt]:
    """Send data, in the domain's words or as the partner's own flat form; with a key the call may be repeated."""
    return with_key(change("POST", _RECEIPT, "/api/platform/submit", submission), idempotency_key)


def get_status(key: str | UUID) -> Call[OperatorStatus | PlatformStatus]:
    """Tell how a request stands; of an asset, how its newest request does."""
    return get(either(OperatorStatus, PlatformStatus), "/api/platform/status/{key}", key=str(key))


def list_requests(
    *,
    platform_id: str | None = None,
    asset_id: str | None = None,
    status: RequestStatus | None = None,
    limit: int | None = None,
) -> Call[Page[Request]]:
    """List work orders, newest first."""
    query = {"platform_id": platform_id, "asset_id": asset_id, "status": status, "limit": limit}
    return get(Page[Request], "/api/platform/requests", query)


def approve(approval: Approval, *, asset_id: str | None = None, request_id: UUID | None = None) -> Call[AssetChange]:
    """Let a version be seen, at a clearance; the asset is named by itself or by a request."""
    return change("POST", AssetChange, "/api/platform/approve", _named(approval, asset_id, request_id))


def reject(rejection: Rejection, *, asset_id: str | None = None, request_id: UUID | None = None) -> Call[AssetChange]:
    """Refuse a version, with the reason."""
    return change("POST", AssetChange, "/api/platform/reject", _named(rejection, asset_id, request_id))


def revoke(revocation: Revocation, *, asset_id: str | None = None, request_id: UUID | None = None) -> Call[AssetChange]:
    """Take an approved version out of service, with the reason."""
    return change("POST", AssetChange, "/api/platform/revoke", _named(revocation, asset_id, request_id))


def unpublish(
    removal: Removal | None = None, *, asset_id: str | None = None, request_id: UUID | None = None
) -> Call[AssetChange]:
    """Remove an asset from all services; its rows stay."""
    body = _named(removal or Removal(), asset_id, request_id)
    return change("POST", AssetChange, "/api/platform/unpublish", body)


def reprocess(
    reprocessing: Reprocessing, *, asset_id: str | None = None, request_id: UUID | None = None
) -> Call[Receipt]:
    """Process a version again from the same source: a new revision."""
    return change("POST", _RECEIPT, "/api/platform/reprocess", _named(reprocessing, asset_id, request_id))


def retry(
    retrial: Retrial | None = None, *, asset_id: str | None = None, request_id: UUID | None = None
) -> Call[Receipt]:
    """Process a version again that failed: the same request, a new attempt."""
    return change("POST", _RECEIPT, "/api/platform/retry", _named(retrial or Retrial(), asset_id, request_id))


def list_platforms(*, inactive: bool = False) -> Call[Page[Platform]]:
    """List the partners by id; a partner finds itself alone."""
    return get(Page[Platform], "/api/platforms", {"inactive": inactive})


def get_platform(platform_id: str) -> Call[Platform]:
    """Give one partner: the fields that identify its datasets, and the one that carries the version."""
    return get(Platform, "/api/platforms/{platform_id}", platform_id=platform_id)


def list_assets(*, limit: int | None = None, **filters: Unpack[AssetFilters]) -> Call[Page[Asset]]:
    """List assets, newest first."""
    return get(Page[Asset], "/api/assets", asset_query(filters, limit))


def get_asset(asset_id: str) -> Call[Asset]:
    """Give one asset, also when it was unpublished."""
    return get(either(PartnerAsset, StaffAsset), ASSET, asset_id=asset_id)


def list_asset_versions(asset_id: str, *, limit: int | None = None) -> Call[Page[Version]]:
    """List the versions of an asset, newest first, the deleted ones too."""
    return get(Page[Version], f"{ASSET}/versions", {"limit": limit}, asset_id=asset_id)


def get_layer_metadata(asset_id: str, ordinal: int) -> Call[LayerDescribed]:
    """Give the description of a version; of features, their columns too."""
    return get(LayerDescribed, f"{ASSET}/versions/{{ordinal}}/metadata", asset_id=asset_id, ordinal=ordinal)


def list_asset_services(asset_id: str, *, limit: int | None = None) -> Call[Page[ServedVersion]]:
    """List the versions of an asset that are in service, newest first, with their addresses."""
    return get(Page[ServedVersion], f"{ASSET}/services", {"limit": limit}, asset_id=asset_id)


def list_reviews(*, limit: int | None = None) -> Call[Page[WaitingVersion]]:
    """List the versions that wait for a decision, the longest waiting first: for staff."""
    return get(Page[WaitingVersion], "/api/reviews", {"limit": limit})


def list_asset_revisions(
    asset_id: str, *, version_ordinal: int | None = None, limit: int | None = None
) -> Call[Page[Revision]]:
    """List what versions were before they were processed anew, newest first."""
    query = {"version_ordinal": version_ordinal, "limit": limit}
    return get(Page[Revision], f"{ASSET}/revisions", query, asset_id=asset_id)


def list_asset_history(asset_id: str, *, limit: int | None = None) -> Call[Page[Happening]]:
    """List what happened to an asset, in order."""
    return get(Page[Happening], f"{ASSET}/history", {"limit": limit}, asset_id=asset_id)


def change_clearance(asset_id: str, clearance: ClearanceChange) -> Call[AssetChange]:
    """Say who may see an asset."""
    return change("POST", AssetChange, f"{ASSET}/clearance", clearance, asset_id=asset_id)


def change_url_mode(asset_id: str, url_mode: UrlModeChange) -> Call[AssetChange]:
    """Say which versions the service addresses of an asset reach."""
    return change("PATCH", AssetChange, ASSET, url_mode, asset_id=asset_id)


def delete_version(asset_id: str, ordinal: int) -> Call[AssetChange]:
    """Delete a version; its rows stay, and its ordinal is never used again."""
    return change("DELETE", AssetChange, f"{ASSET}/versions/{{ordinal}}", asset_id=asset_id, ordinal=ordinal)


def _named(asked: Change, asset_id: str | None, request_id: UUID | None) -> dict[str, Any]:
    """Add to what is asked the name of the asset; the server wants exactly one."""
    names = {"asset_id": asset_id, "request_id": None if request_id is None else str(request_id)}
    given = {name: value for name, value in names.items() if value is not None}
    return asked.model_dump(mode="json", exclude_unset=True) | given
