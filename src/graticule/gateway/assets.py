"""`/api/assets`: datasets, their versions and what became of them. Partners see their own, in words of their own."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query

from graticule.core.asset_views import (
    LayerDescribed,
    PartnerAsset,
    PartnerEvent,
    PartnerRevision,
    PartnerVersion,
    ServedVersion,
    StaffAsset,
)
from graticule.core.exchange import AssetChange, ClearanceChange, Ordinal, UrlModeChange
from graticule.core.models import AssetRevision, AssetVersion, Event
from graticule.core.models.fields import AssetKey
from graticule.gateway.forwarding import Forward
from graticule.gateway.seen import change_for, for_staff
from graticule.gateway.services import Assets, Metadata, TheSettings
from graticule.http.asset_filters import ASSETS, EVENTS, REVISIONS, VERSIONS, WantedAssets
from graticule.http.callers import CallerWhoReads, CallerWhoRemoves, CallerWhoReviews
from graticule.http.paging import Cursor, Limit, Page
from graticule.http.problems import problem_responses
from graticule.services.service_addresses import ServiceAddresses

router = APIRouter(prefix="/api/assets", tags=["assets"], responses=problem_responses(401, 403, 422, 429, 503))

AssetPath = Annotated[AssetKey, Path(description="The asset.")]
OrdinalPath = Annotated[Ordinal, Path(description="The version, by our number.")]
Seen = Annotated[int | None, Query(ge=1, lt=2**31, description="The asset's `version` that the caller has seen.")]

_NO_SUCH_ASSET: Final = problem_responses(404)
_FORWARDED: Final = problem_responses(400, 404, 409, 413, 502)


@router.get("")
async def list_assets(
    wanted: WantedAssets, reader: Assets, caller: CallerWhoReads, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[StaffAsset] | Page[PartnerAsset]:
    """List assets, newest first. What is asked of versions, one version has all of it."""
    found = await reader.assets(wanted, ASSETS.read(cursor), limit + 1, caller=caller)
    page = ASSETS.page(found, limit, lambda asset: (asset.created_at, asset.asset_id))
    if caller.is_staff:
        return Page[StaffAsset](items=page.items, next=page.next)
    return Page[PartnerAsset](items=[PartnerAsset.of(asset) for asset in page.items], next=page.next)


@router.get("/{asset_id}", responses=_NO_SUCH_ASSET)
async def one_asset(asset_id: AssetPath, reader: Assets, caller: CallerWhoReads) -> StaffAsset | PartnerAsset:
    """Give one asset, also when it was unpublished."""
    asset = await reader.asset(asset_id, caller)
    return asset if caller.is_staff else PartnerAsset.of(asset)


@router.get("/{asset_id}/versions", responses=_NO_SUCH_ASSET)
async def list_versions(
    asset_id: AssetPath, reader: Assets, caller: CallerWhoReads, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[AssetVersion] | Page[PartnerVersion]:
    """List the versions of an asset, newest first, the deleted ones too."""
    found = await reader.versions(asset_id, caller, VERSIONS.read(cursor), limit + 1)
    page = VERSIONS.page(found, limit, lambda version: version.version_ordinal)
    if caller.is_staff:
        return Page[AssetVersion](items=[for_staff(version, caller) for version in page.items], next=page.next)
    return Page[PartnerVersion](items=[PartnerVersion.of(version) for version in page.items], next=page.next)


@router.get("/{asset_id}/versions/{version_ordinal}/metadata", responses=_NO_SUCH_ASSET)
async def layer_metadata(
    asset_id: AssetPath, version_ordinal: OrdinalPath, service: Metadata, caller: CallerWhoReads
) -> LayerDescribed:
    """Give the description of a version: title, keywords, licence, times, bands, style; and of features the columns."""
    return await service.read(asset_id, version_ordinal, caller)


@router.get("/{asset_id}/services", responses=_NO_SUCH_ASSET)
async def list_services(
    asset_id: AssetPath,
    reader: Assets,
    settings: TheSettings,
    caller: CallerWhoReads,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ServedVersion]:
    """List the versions of an asset that are in service, newest first, with their addresses."""
    addresses = ServiceAddresses.of(settings)
    found = await reader.in_service(asset_id, caller, addresses, VERSIONS.read(cursor), limit + 1)
    return VERSIONS.page(found, limit, lambda version: version.version_ordinal)


@router.get("/{asset_id}/revisions", responses=_NO_SUCH_ASSET)
async def list_revisions(
    asset_id: AssetPath,
    reader: Assets,
    caller: CallerWhoReads,
    *,
    version_ordinal: Annotated[Ordinal | None, Query(description="Of this version only.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AssetRevision] | Page[PartnerRevision]:
    """List what versions were before they were processed anew, newest first."""
    found = await reader.revisions(asset_id, caller, version_ordinal, REVISIONS.read(cursor), limit + 1)
    page = REVISIONS.page(found, limit, lambda each: (each.version_ordinal, each.revision))
    if caller.is_staff:
        return Page[AssetRevision](items=[for_staff(each, caller) for each in page.items], next=page.next)
    return Page[PartnerRevision](items=[PartnerRevision.of(each) for each in page.items], next=page.next)


@router.get("/{asset_id}/history", responses=_NO_SUCH_ASSET)
async def history(
    asset_id: AssetPath, reader: Assets, caller: CallerWhoReads, *, limit: Limit = 100, cursor: Cursor = None
) -> Page[Event] | Page[PartnerEvent]:
    """List what happened to an asset, in order."""
    found = await reader.history(asset_id, caller, EVENTS.read(cursor) or 0, limit + 1)
    page = EVENTS.page(found, limit, lambda event: event.event_id or 0)
    if caller.is_staff:
        return Page[Event](items=[for_staff(event, caller) for event in page.items], next=page.next)
    return Page[PartnerEvent](items=[PartnerEvent.of(event) for event in page.items], next=page.next)


@router.post("/{asset_id}/clearance", responses=_FORWARDED)
async def change_clearance(
    asset_id: AssetPath, change: ClearanceChange, forward: Forward, caller: CallerWhoReviews
) -> AssetChange:
    """Say who may see an asset; from public back to ouo the answer has a `warning`."""
    path = f"/api/v1/assets/{asset_id}/clearance"
    return change_for(await forward.send("POST", path, AssetChange, caller=caller, body=change), caller)


@router.patch("/{asset_id}", responses=_FORWARDED)
async def change_url_mode(
    asset_id: AssetPath, change: UrlModeChange, forward: Forward, caller: CallerWhoReviews
) -> AssetChange:
    """Say which versions the service addresses of an asset reach."""
    path = f"/api/v1/assets/{asset_id}"
    return change_for(await forward.send("PATCH", path, AssetChange, caller=caller, body=change), caller)


@router.delete("/{asset_id}/versions/{version_ordinal}", responses=_FORWARDED)
async def delete_version(
    asset_id: AssetPath,
    version_ordinal: OrdinalPath,
    forward: Forward,
    caller: CallerWhoRemoves,
    *,
    expected_version: Seen = None,
) -> AssetChange:
    """Delete a version; its rows stay, and its ordinal is never used again."""
    path = f"/api/v1/assets/{asset_id}/versions/{version_ordinal}"
    params = None if expected_version is None else {"expected_version": str(expected_version)}
    return change_for(await forward.send("DELETE", path, AssetChange, caller=caller, params=params), caller)
