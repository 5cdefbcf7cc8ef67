"""Collections of the catalogue: what they say of themselves, and what their items cover."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from pystac import Collection, Extent, MediaType, SpatialExtent, TemporalExtent

from graticule.handlers.stac.inputs import CollectionText
from graticule.handlers.stac.items import DATA, MOSAIC, SCHEME, Document
from graticule.handlers.stac.tables import ASSETS as TABLE_ASSETS
from graticule.repositories.catalogue import Coverage

LICENSE: Final = "other"
EVERYWHERE: Final = [-180.0, -90.0, 180.0, 90.0]
CLOSE: Final = 1e-6  # degrees: what rounding makes of one place
ANY_TIME: Final[list[list[datetime | None]]] = [[None, None]]
_RASTER_ASSETS: Final[dict[str, Document]] = {
    DATA: {"title": "Raster", "type": MediaType.COG.value, "roles": ["data"]},
    MOSAIC: {"title": "Mosaic of tiles", "type": MediaType.JSON.value, "roles": ["data"]},
    SCHEME: {"title": "Tile grid", "type": MediaType.GEOJSON.value, "roles": ["metadata"]},
}


class Holding(StrEnum):
    """What a collection is made for; it takes other items as well."""

    RASTERS = "rasters"
    TILES = "tiles"
    FEATURES = "features"


_ASSETS: Final[dict[Holding, dict[str, Document]]] = {
    Holding.RASTERS: _RASTER_ASSETS,
    Holding.TILES: {DATA: _RASTER_ASSETS[DATA]},
    Holding.FEATURES: TABLE_ASSETS,
}
_WORDS: Final = {
    Holding.RASTERS: ("Rasters", "raster"),
    Holding.TILES: ("Rasters", "raster"),
    Holding.FEATURES: ("Features", "vector"),
}


def new_collection(
    collection_id: str,
    text: CollectionText,
    *,
    platform_id: str | None = None,
    holds: Holding = Holding.RASTERS,
) -> Document:
    """Give a collection without items: until there are some, it is everywhere and at any time."""
    extent = Extent(SpatialExtent([EVERYWHERE]), TemporalExtent(ANY_TIME))
    plural, keyword = _WORDS[holds]
    collection = Collection(
        collection_id,
        text.description or f"{plural} of {text.title or collection_id}.",
        extent,
        title=text.title or collection_id,
        license=text.license or LICENSE,
        keywords=text.keywords or [word for word in (keyword, platform_id) if word],
    )
    document = collection.to_dict(include_self_link=False, transform_hrefs=False)
    # A new list for old items would make pgstac keep both: what an item may have is said here, and not changed later.
    return {**document, "item_assets": _ASSETS[holds]}


def described_anew(present: Document, text: CollectionText) -> Document:
    """Give a collection with those texts that are given; the rest, also what others have added, stays."""
    return {**present, **text.model_dump(include=set(CollectionText.model_fields), exclude_none=True)}


def covering(present: Document, coverage: Coverage | None) -> Document:
    """Give a collection with the extent and the summaries of its items."""
    if coverage is None:
        return present
    extent = {
        "spatial": {"bbox": _boxes(coverage)},
        "temporal": {"interval": [[_told(coverage.start), _told(coverage.end)]]},
    }
    summaries: dict[str, Any] = {**present.get("summaries", {}), "proj:code": coverage.projections}
    if not coverage.projections:
        del summaries["proj:code"]
    return {**present, "extent": extent, **({"summaries": summaries} if summaries else {})}


def _boxes(coverage: Coverage) -> list[list[float]]:
    """Give the box of everything, and across the antimeridian then the two parts of it.

    The first of a collection's boxes is the one that is searched by, and there west may not be east.
    """
    west, south, east, north = _rounded(coverage.box)
    begin, _, end, _ = _rounded(coverage.shifted_box)
    crosses = begin < 180 - CLOSE and end > 180 + CLOSE
    if not crosses or end - begin > east - west - CLOSE:
        return [[west, south, east, north]]
    return [[west, south, east, north], [begin, south, 180.0, north], [-180.0, south, round(end - 360, 9), north]]


def _rounded(box: Sequence[float]) -> list[float]:
    return [round(each, 9) for each in box]


def _told(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
