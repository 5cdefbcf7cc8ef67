"""`/api/v1/stats/…`: the questions that are asked of the platform as a whole, one call each. Operators only."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from graticule.api.services import Assets, PlatformNumbers
from graticule.core.asset_views import StaffAsset
from graticule.core.exchange import Ordinal
from graticule.core.ids import AssetId
from graticule.core.models.fields import AssetKey
from graticule.http.asset_filters import RefsText, refs_of
from graticule.http.callers import CallerWhoOperates
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.repositories.asset_views import AssetFilter
from graticule.repositories.operations import Durations
from graticule.repositories.platform_statistics import (
    CountedPlace,
    FailedVersion,
    Place,
    StuckVersion,
    TriedVersion,
    WorkflowLoad,
)

MINUTES_OF_A_YEAR: Final = 365 * 24 * 60

router = APIRouter(prefix="/api/v1/stats", tags=["statistics"], responses=problem_responses(401, 403, 422, 429, 503))

Minutes = Annotated[int, Query(ge=0, le=MINUTES_OF_A_YEAR, description="Processing for longer than this.")]
Days = Annotated[int, Query(ge=1, le=365, description="Of the last so many days.")]
AtLeast = Annotated[int, Query(ge=2, le=1_000_000, description="So many jobs, or more.")]

_PLACES: Cursors[Place] = Cursors(tuple[AwareDatetime, AssetKey, Ordinal])
_COUNTED: Cursors[CountedPlace] = Cursors(tuple[Ordinal, AssetKey, Ordinal])
_ASSETS: Cursors[tuple[datetime, AssetId]] = Cursors(tuple[AwareDatetime, AssetKey])


@router.get("/stuck")
async def stuck(
    numbers: PlatformNumbers, _: CallerWhoOperates, minutes: Minutes = 60, limit: Limit = 50, cursor: Cursor = None
) -> Page[StuckVersion]:
    """List the versions that have been processing for over an hour, or as long as is said; longest first."""
    found = await numbers.stuck(minutes, _PLACES.read(cursor), limit + 1)
    return _PLACES.page(found, limit, lambda each: (each.processing_started_at, each.asset_id, each.version_ordinal))


@router.get("/failed")
async def failed(
    numbers: PlatformNumbers, _: CallerWhoOperates, limit: Limit = 50, cursor: Cursor = None
) -> Page[FailedVersion]:
    """List the versions that failed and need attention, newest first."""
    found = await numbers.failed(_PLACES.read(cursor), limit + 1)
    return _PLACES.page(found, limit, lambda each: (each.failed_at, each.asset_id, each.version_ordinal))


@router.get("/durations")
async def durations(numbers: PlatformNumbers, _: CallerWhoOperates, days: Days = 7) -> Page[Durations]:
    """Give the median and the 95th percentile of the processing time, by workflow."""
    return Page(items=await numbers.durations(days))


@router.get("/attempts")
async def attempts(
    numbers: PlatformNumbers, _: CallerWhoOperates, at_least: AtLeast = 3, limit: Limit = 50, cursor: Cursor = None
) -> Page[TriedVersion]:
    """List the versions of assets that took many jobs, most first."""
    found = await numbers.tried(at_least, _COUNTED.read(cursor), limit + 1)
    return _COUNTED.page(found, limit, lambda each: (each.job_count, each.asset_id, each.version_ordinal))


@router.get("/load")
async def load(numbers: PlatformNumbers, _: CallerWhoOperates) -> Page[WorkflowLoad]:
    """Give the jobs of each workflow: under way now, and ended in the last 24 hours."""
    return Page(items=await numbers.load())


@router.get("/datasets")
async def datasets(
    reader: Assets, caller: CallerWhoOperates, refs: RefsText, limit: Limit = 50, cursor: Cursor = None
) -> Page[StaffAsset]:
    """List all assets of a dataset, whatever the resource and the partner, newest first."""
    found = await reader.assets(AssetFilter(refs=refs_of(refs)), _ASSETS.read(cursor), limit + 1, caller=caller)
    return _ASSETS.page(found, limit, lambda asset: (asset.created_at, asset.asset_id))
