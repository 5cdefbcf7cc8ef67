"""`/api/v1/assets/{asset_id}/versions/{ordinal}/metadata`: how a layer is described. Reviewers describe it."""

from typing import Annotated

from fastapi import APIRouter, Path

from graticule.api.services import Metadata
from graticule.core.asset_views import LayerDescribed
from graticule.core.ids import AssetId
from graticule.core.models import LayerMetadata
from graticule.core.models.fields import AssetKey
from graticule.http.callers import CallerWhoReads, CallerWhoReviews
from graticule.http.problems import problem_responses
from graticule.services.layer_metadata import LayerDescription

router = APIRouter(
    prefix="/api/v1/assets/{asset_id}/versions/{ordinal}/metadata",
    tags=["metadata"],
    responses=problem_responses(401, 403, 404, 422, 429, 503),
)

AssetPath = Annotated[AssetKey, Path(description="The asset.", examples=["0123456789abcdef0123456789abcdef"])]
OrdinalPath = Annotated[int, Path(ge=0, lt=2**31, description="Our number of the version.", examples=[0])]


@router.get("")
async def layer_metadata(
    asset_id: AssetPath, ordinal: OrdinalPath, service: Metadata, caller: CallerWhoReads
) -> LayerDescribed:
    """Give the description of a version: title, keywords, licence, times, bands, style; and of features the columns."""
    return await service.read(AssetId(asset_id), ordinal, caller)


@router.put("", responses=problem_responses(409, 413))
async def describe_layer(
    asset_id: AssetPath,
    ordinal: OrdinalPath,
    description: LayerDescription,
    service: Metadata,
    caller: CallerWhoReviews,
) -> LayerMetadata:
    """Describe a version anew; what is left out is not said any more."""
    return await service.write(AssetId(asset_id), ordinal, description, caller)
