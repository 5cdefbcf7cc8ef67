"""The filters of lists of assets, as both HTTP processes read them from the query of an address."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Query
from pydantic import AwareDatetime, Field, StringConstraints, TypeAdapter, ValidationError

from graticule.core.errors import InvalidInput
from graticule.core.exchange import Ordinal, Refs
from graticule.core.ids import AssetId, PlatformId
from graticule.core.models.fields import AssetKey, PlatformKey
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.http.paging import Cursors
from graticule.repositories.asset_views import Area, AssetFilter

_REFS: Final = TypeAdapter[dict[str, str | int]](Refs)
NUMBER: Final = r"-?[0-9]{1,3}(\.[0-9]{1,15})?"

RefsText = Annotated[
    str,
    Query(
        max_length=4096,
        description='A JSON object: assets whose refs contain it, as `{"dataset_id": "0038272"}`.',
        examples=['{"dataset_id": "0038272"}'],
    ),
]
Words = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00]*$"),
    Query(description="Words of the refs, or of title and description; the last one may be a beginning."),
]
BoxQuery = Annotated[
    str,
    StringConstraints(max_length=100, pattern=rf"^{NUMBER}(,{NUMBER}){{3}}$"),
    Query(
        description="`west,south,east,north` in degrees; west greater than east is across the antimeridian.",
        examples=["-10.5,35,30,60"],
    ),
]


async def asset_filter(
    *,
    platform: Annotated[PlatformKey | None, Query(description="Of this partner.", examples=["ddh"])] = None,
    refs: RefsText | None = None,
    data_type: DataType | None = None,
    clearance_state: ClearanceState | None = None,
    approval_state: ApprovalState | None = None,
    processing_state: ProcessingState | None = None,
    q: Words | None = None,
    bbox: BoxQuery | None = None,
    deleted: Annotated[bool, Query(description="Show those that were unpublished, too.")] = False,
) -> AssetFilter:
    """Read the filters of a list of assets."""
    return AssetFilter(
        platform_id=None if platform is None else PlatformId(platform),
        refs=None if refs is None else refs_of(refs),
        data_type=data_type,
        clearance_state=clearance_state,
        approval_state=approval_state,
        processing_state=processing_state,
        text=q,
        bbox=None if bbox is None else area_of(bbox),
        with_deleted=deleted,
    )


def refs_of(text: str) -> dict[str, str | int]:
    """Read the refs of a query; the message does not repeat what was sent."""
    try:
        return _REFS.validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise InvalidInput(
            f"`refs` is not an object of refs: {fault['msg']}.", hint='Write it as JSON: {"dataset_id": "0038272"}.'
        ) from None


def area_of(text: str) -> Area:
    """Read `west,south,east,north`."""
    west, south, east, north = map(float, text.split(","))
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise InvalidInput(
            "bbox is not a box on the earth.",
            hint="Longitudes are from -180 to 180, latitudes from -90 to 90, and the south is not above the north.",
        )
    return Area(west, south, east, north)


WantedAssets = Annotated[AssetFilter, Depends(asset_filter)]

# The cursors of the lists of assets, and of what belongs to one.
ASSETS: Final[Cursors[tuple[datetime, AssetId]]] = Cursors(tuple[AwareDatetime, AssetKey])
VERSIONS: Final[Cursors[int]] = Cursors(Ordinal)
REVISIONS: Final[Cursors[tuple[int, int]]] = Cursors(tuple[Ordinal, Ordinal])
EVENTS: Final[Cursors[int]] = Cursors(Annotated[int, Field(ge=0, lt=2**63)])
