"""`/api/platforms`: the registry of partners, as far as the caller may know of them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from graticule.core.ids import PlatformId
from graticule.core.models import Platform
from graticule.core.models.fields import PlatformKey
from graticule.gateway.services import Platforms
from graticule.http.callers import CallerWhoReads
from graticule.http.paging import Page
from graticule.http.problems import problem_responses

router = APIRouter(prefix="/api/platforms", tags=["platforms"], responses=problem_responses(401, 403, 422, 429, 503))

Inactive = Annotated[bool, Query(description="Show those that take no new submissions, too.")]
PlatformPath = Annotated[PlatformKey, Path(description="The partner.", examples=["ddh"])]


@router.get("")
async def list_platforms(
    platforms: Platforms,
    caller: CallerWhoReads,
    inactive: Inactive = False,
) -> Page[Platform]:
    """List the partners by id; a partner finds itself alone."""
    return Page(items=await platforms.platforms(caller, with_inactive=inactive))


@router.get("/{platform_id}", responses=problem_responses(404))
async def one_platform(
    platform_id: PlatformPath,
    platforms: Platforms,
    caller: CallerWhoReads,
) -> Platform:
    """Give one partner: the fields that identify its datasets, and the one that carries the version."""
    return await platforms.platform(PlatformId(platform_id), caller)
