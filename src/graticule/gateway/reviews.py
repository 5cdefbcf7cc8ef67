"""`/api/reviews`: what waits for a decision. Staff only; the decisions themselves are at `/api/platform/…`."""

from datetime import datetime
from typing import Final

from fastapi import APIRouter
from pydantic import AwareDatetime

from graticule.core.asset_views import WaitingVersion
from graticule.core.exchange import Ordinal
from graticule.core.ids import AssetId
from graticule.core.models.fields import AssetKey
from graticule.gateway.services import Assets
from graticule.http.callers import CallerWhoInspects
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses

router = APIRouter(prefix="/api/reviews", tags=["reviews"], responses=problem_responses(401, 403, 422, 429, 503))

_WAITING: Final[Cursors[tuple[datetime, AssetId, int]]] = Cursors(tuple[AwareDatetime, AssetKey, Ordinal])


@router.get("")
async def list_waiting(
    reader: Assets, caller: CallerWhoInspects, *, limit: Limit = 50, cursor: Cursor = None
) -> Page[WaitingVersion]:
    """List the versions that were processed and wait for a decision, the longest waiting first."""
    found = await reader.waiting(_WAITING.read(cursor), limit + 1)
    return _WAITING.page(found, limit, lambda each: (each.waiting_since, AssetId(each.asset_id), each.version_ordinal))
