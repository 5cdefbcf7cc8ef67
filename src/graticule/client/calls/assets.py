"""Submissions and assets at the orchestrator (`/api/v1/submit`, `/status`, `/assets`): for staff."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from graticule.client.call import Call, change, either, get, with_key
from graticule.client.models import Page
from graticule.core.asset_views import LayerDescribed, OperatorStatus, StaffAsset
from graticule.core.exchange import (
    Approval,
    AssetChange,
    ClearanceChange,
    PlatformStatus,
    PlatformSubmission,
    Rejection,
    Removal,
    Reprocessing,
    Retrial,
    Revocation,
    SubmissionReceipt,
    UrlModeChange,
)
from graticule.core.models import AssetRevision, AssetVersion, Event, LayerMetadata
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.services.job_reading import JobInBrief

ASSET = "/api/v1/assets/{asset_id}"


def submit_data(submission: PlatformSubmission, *, idempotency_key: str | None = None) -> Call[SubmissionReceipt]:
    """Send a partner's data; with a key the call may be repeated."""
    return with_key(change("POST", SubmissionReceipt, "/api/v1/submit", submission), idempotency_key)


def get_status(key: str) -> Call[OperatorStatus | PlatformStatus | JobInBrief]:
    """Tell how a request stands: by its own id, its asset's, or its job's; of a job without a request, how that is."""
    return get(either(either(OperatorStatus, PlatformStatus), JobInBrief), "/api/v1/status/{key}", key=key)


class AssetFilters(TypedDict, total=False):
    """Which assets a list shows; what is left out does not matter."""

    platform: str | None
    refs: Mapping[str, str | int] | None  # assets whose refs contain these
    data_type: DataType | None
    clearance_state: ClearanceState | None
    approval_state: ApprovalState | None  # of a version; the same one has all that is asked of versions
    processing_state: ProcessingState | None
    q: str | None  # words of the refs, the title or the description
    bbox: tuple[float, float, float, float] | None  # west, south, east, north
    deleted: bool  # those that were unpublished, too


def asset_query(filters: AssetFilters, limit: int | None) -> dict[str, Any]:
    """Write filters as the query of a list."""
    box = filters.get("bbox")
    return {**filters, "bbox": None if box is None else _box(box), "limit": limit}


def _box(box: tuple[float, float, float, float]) -> str:
    """Write numbers plainly, for `1e-05` is not understood."""
    return ",".join(f"{value:.10f}".rstrip("0").rstrip(".") for value in box)


def list_assets(*, limit: int | None = None, **filters: Unpack[AssetFilters]) -> Call[Page[StaffAsset]]:
    """List assets, newest first."""
    return get(Page[StaffAsset], "/api/v1/assets", asset_query(filters, limit))


def get_asset(asset_id: str) -> Call[StaffAsset]:
    """Give one asset, also when it was unpublished."""
    return get(StaffAsset, ASSET, asset_id=asset_id)


def list_asset_versions(asset_id: str, *, limit: int | None = None) -> Call[Page[AssetVersion]]:
    """List the versions of an asset, newest first, the deleted ones too."""
    return get(Page[AssetVersion], f"{ASSET}/versions", {"limit": limit}, asset_id=asset_id)


def get_asset_version(asset_id: str, ordinal: int) -> Call[AssetVersion]:
    """Give one version, also when it was deleted."""
    return get(AssetVersion, f"{ASSET}/versions/{{ordinal}}", asset_id=asset_id, ordinal=ordinal)


def list_asset_revisions(
    asset_id: str, *, version_ordinal: int | None = None, limit: int | None = None
) -> Call[Page[AssetRevision]]:
    """List what versions were before they were processed anew, newest first."""
    query = {"version_ordinal": version_ordinal, "limit": limit}
    return get(Page[AssetRevision], f"{ASSET}/revisions", query, asset_id=asset_id)


def list_asset_history(asset_id: str, *, limit: int | None = None) -> Call[Page[Event]]:
    """List what happened to an asset, in order, and who did it."""
    return get(Page[Event], f"{ASSET}/history", {"limit": limit}, asset_id=asset_id)


def get_layer_metadata(asset_id: str, ordinal: int) -> Call[LayerDescribed]:
    """Give how a version is described: title, keywords, licence, times, bands, style; and of features the columns."""
    return get(LayerDescribed, f"{ASSET}/versions/{{ordinal}}/metadata", asset_id=asset_id, ordinal=ordinal)


def describe_layer(asset_id: str, ordinal: int, description: Mapping[str, Any]) -> Call[LayerMetadata]:
    """Describe a version anew; what is left out is not said any more."""
    route = f"{ASSET}/versions/{{ordinal}}/metadata"
    return change("PUT", LayerMetadata, route, description, asset_id=asset_id, ordinal=ordinal)


def approve(asset_id: str, approval: Approval) -> Call[AssetChange]:
    """Let a version be seen, at a clearance."""
    return change("POST", AssetChange, f"{ASSET}/approve", approval, asset_id=asset_id)


def reject(asset_id: str, rejection: Rejection) -> Call[AssetChange]:
    """Refuse a version, with the reason."""
    return change("POST", AssetChange, f"{ASSET}/reject", rejection, asset_id=asset_id)


def revoke(asset_id: str, revocation: Revocation) -> Call[AssetChange]:
    """Take an approved version out of service, with the reason."""
    return change("POST", AssetChange, f"{ASSET}/revoke", revocation, asset_id=asset_id)


def change_clearance(asset_id: str, clearance: ClearanceChange) -> Call[AssetChange]:
    """Say who may see an asset."""
    return change("POST", AssetChange, f"{ASSET}/clearance", clearance, asset_id=asset_id)


def change_url_mode(asset_id: str, url_mode: UrlModeChange) -> Call[AssetChange]:
    """Say which versions the service addresses of an asset reach."""
    return change("PATCH", AssetChange, ASSET, url_mode, asset_id=asset_id)


def delete_version(asset_id: str, ordinal: int, *, expected_version: int | None = None) -> Call[AssetChange]:
    """Delete a version; its rows stay, and its ordinal is never used again."""
    call = change("DELETE", AssetChange, f"{ASSET}/versions/{{ordinal}}", asset_id=asset_id, ordinal=ordinal)
    return replace(call, query={"expected_version": expected_version})


def unpublish(asset_id: str, removal: Removal | None = None) -> Call[AssetChange]:
    """Remove an asset from all services; its rows stay."""
    return change("POST", AssetChange, f"{ASSET}/unpublish", removal or Removal(), asset_id=asset_id)


def reprocess(asset_id: str, reprocessing: Reprocessing) -> Call[SubmissionReceipt]:
    """Process a version again from the same source: a new revision."""
    return change("POST", SubmissionReceipt, f"{ASSET}/reprocess", reprocessing, asset_id=asset_id)


def retry(asset_id: str, retrial: Retrial | None = None) -> Call[SubmissionReceipt]:
    """Process a version again that failed: the same request, a new attempt."""
    return change("POST", SubmissionReceipt, f"{ASSET}/retry", retrial or Retrial(), asset_id=asset_id)
