"""`/api/v1/assets`: what people decide of assets and versions, and all that is known of them. Staff only."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from graticule.api.services import Assets, Reviews
from graticule.api.submissions import AssetPath
from graticule.core.asset_views import StaffAsset
from graticule.core.exchange import (
    Approval,
    AssetChange,
    Change,
    ClearanceChange,
    Rejection,
    Removal,
    Revocation,
    UrlModeChange,
)
from graticule.core.models import AssetRevision, AssetVersion, Event
from graticule.http.asset_filters import ASSETS, EVENTS, REVISIONS, VERSIONS, WantedAssets
from graticule.http.callers import CallerWhoInspects, CallerWhoRemoves, CallerWhoReviews
from graticule.http.paging import Cursor, Limit, Page
from graticule.http.problems import problem_responses

router = APIRouter(prefix="/api/v1/assets", tags=["assets"], responses=problem_responses(401, 403, 404, 422, 429, 503))

_REFUSED = problem_responses(409)
OrdinalPath = Annotated[int, Path(ge=0, lt=2**31, description="The version's ordinal.")]
OfVersion = Annotated[int | None, Query(ge=0, lt=2**31, description="Only those of this version.")]
Seen = Annotated[int | None, Query(ge=1, lt=2**31, description="The asset's `version` that the caller has seen.")]


@router.get("")
async def list_assets(
    wanted: WantedAssets, assets: Assets, caller: CallerWhoInspects, limit: Limit = 50, cursor: Cursor = None
) -> Page[StaffAsset]:
    """List assets, newest first."""
    found = await assets.assets(wanted, ASSETS.read(cursor), limit + 1, caller=caller)
    return ASSETS.page(found, limit, lambda asset: (asset.created_at, asset.asset_id))


@router.get("/{asset_id}")
async def one_asset(asset_id: AssetPath, assets: Assets, caller: CallerWhoInspects) -> StaffAsset:
    """Give one asset, also when it was unpublished."""
    return await assets.asset(asset_id, caller)


@router.get("/{asset_id}/versions")
async def list_versions(
    asset_id: AssetPath, assets: Assets, caller: CallerWhoInspects, limit: Limit = 100, cursor: Cursor = None
) -> Page[AssetVersion]:
    """List the versions of an asset, newest first, the deleted ones too."""
    found = await assets.versions(asset_id, caller, VERSIONS.read(cursor), limit + 1)
    return VERSIONS.page(found, limit, lambda version: version.version_ordinal)


@router.get("/{asset_id}/versions/{ordinal}")
async def one_version(
    asset_id: AssetPath, ordinal: OrdinalPath, assets: Assets, caller: CallerWhoInspects
) -> AssetVersion:
    """Give one version, also when it was deleted."""
    return await assets.version(asset_id, ordinal, caller)


@router.get("/{asset_id}/revisions")
async def list_revisions(
    asset_id: AssetPath,
    assets: Assets,
    caller: CallerWhoInspects,
    version_ordinal: OfVersion = None,
    *,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[AssetRevision]:
    """List what versions were before, newest first."""
    found = await assets.revisions(asset_id, caller, version_ordinal, REVISIONS.read(cursor), limit + 1)
    return REVISIONS.page(found, limit, lambda each: (each.version_ordinal, each.revision))


@router.get("/{asset_id}/history")
async def history(
    asset_id: AssetPath, assets: Assets, caller: CallerWhoInspects, limit: Limit = 100, cursor: Cursor = None
) -> Page[Event]:
    """List what happened to an asset, in order, with who did it."""
    found = await assets.history(asset_id, caller, EVENTS.read(cursor) or 0, limit + 1)
    return EVENTS.page(found, limit, lambda event: event.event_id or 0)


@router.post("/{asset_id}/approve", responses=_REFUSED)
async def approve(asset_id: AssetPath, asked: Approval, service: Reviews, caller: CallerWhoReviews) -> AssetChange:
    """Open access to a version at a clearance; on an approved one, only the clearance changes."""
    return await service.approve(asset_id, asked, caller)


@router.post("/{asset_id}/reject", responses=_REFUSED)
async def reject(asset_id: AssetPath, asked: Rejection, service: Reviews, caller: CallerWhoReviews) -> AssetChange:
    """Refuse a version that awaits a decision."""
    return await service.reject(asset_id, asked, caller)


@router.post("/{asset_id}/revoke", responses=_REFUSED)
async def revoke(asset_id: AssetPath, asked: Revocation, service: Reviews, caller: CallerWhoReviews) -> AssetChange:
    """Take an approved version out of service."""
    return await service.revoke(asset_id, asked, caller)


@router.post("/{asset_id}/clearance", responses=_REFUSED)
async def change_clearance(
    asset_id: AssetPath, asked: ClearanceChange, service: Reviews, caller: CallerWhoReviews
) -> AssetChange:
    """Say who may see an asset; what was public before is answered with a warning."""
    return await service.change_clearance(asset_id, asked, caller)


@router.patch("/{asset_id}", responses=_REFUSED)
async def change_url_mode(
    asset_id: AssetPath, asked: UrlModeChange, service: Reviews, caller: CallerWhoReviews
) -> AssetChange:
    """Say which versions the service addresses of an asset reach."""
    return await service.change_url_mode(asset_id, asked, caller)


@router.delete("/{asset_id}/versions/{ordinal}", responses=_REFUSED)
async def delete_version(
    asset_id: AssetPath,
    ordinal: OrdinalPath,
    service: Reviews,
    caller: CallerWhoRemoves,
    expected_version: Seen = None,
) -> AssetChange:
    """Mark a version as deleted, which resolves it."""
    return await service.delete_version(asset_id, ordinal, Change(expected_version=expected_version), caller)


@router.post("/{asset_id}/unpublish", responses=_REFUSED)
async def unpublish(
    asset_id: AssetPath, service: Reviews, caller: CallerWhoRemoves, asked: Removal | None = None
) -> AssetChange:
    """Remove an asset from all services; a new submission revives it."""
    return await service.unpublish(asset_id, asked or Removal(), caller)
