"""`/api/v1/platforms`: the registry of partners. A partner sees itself there; admins change it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from graticule.api.services import Platforms
from graticule.core.ids import PlatformId
from graticule.core.models import Platform
from graticule.core.models.fields import PlatformKey
from graticule.http.callers import CallerWhoAdministers, CallerWhoReads
from graticule.http.paging import Page
from graticule.http.problems import problem_responses
from graticule.services.platforms import NewPlatform, PlatformChange

router = APIRouter(prefix="/api/v1/platforms", tags=["platforms"], responses=problem_responses(401, 403, 422, 429, 503))

PlatformPath = Annotated[PlatformKey, Path(description="The platform.", examples=["ddh"])]
WithInactive = Annotated[bool, Query(description="List those that take no submissions, too.")]

_ADDED = {200: {"model": Platform, "description": "The very same was there already."}, **problem_responses(409, 413)}


@router.get("")
async def list_platforms(service: Platforms, caller: CallerWhoReads, inactive: WithInactive = False) -> Page[Platform]:
    """List the partner systems by id."""
    return Page(items=await service.platforms(caller, with_inactive=inactive))


@router.get("/{platform_id}", responses=problem_responses(404))
async def one_platform(platform_id: PlatformPath, service: Platforms, caller: CallerWhoReads) -> Platform:
    """Give one partner system: which fields identify its datasets, and which one is the version."""
    return await service.platform(PlatformId(platform_id), caller)


@router.post("", status_code=201, responses=_ADDED)
async def add_platform(
    new: NewPlatform, service: Platforms, caller: CallerWhoAdministers, response: Response
) -> Platform:
    """Add a partner system; 200 when the very same is there already."""
    added = await service.add(new, caller)
    response.status_code = 201 if added.created else 200
    response.headers["Location"] = f"{router.prefix}/{added.platform.platform_id}"
    return added.platform


@router.patch("/{platform_id}", responses=problem_responses(404, 409, 413))
async def change_platform(
    platform_id: PlatformPath, change: PlatformChange, service: Platforms, caller: CallerWhoAdministers
) -> Platform:
    """Change a partner system; what identifies its datasets only while it has none (`platform_in_use`)."""
    return await service.change(PlatformId(platform_id), change, caller)
