"""Collections of the catalogue as they are made."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from pystac import Collection, Extent, MediaType, SpatialExtent, TemporalExtent

from graticule.core.asset_names import title_of_id
from graticule.handlers.stac.inputs import CollectionText
from graticule.handlers.stac.items import DATA, MOSAIC, SCHEME, Document
from graticule.handlers.stac.tables import ASSETS as TABLE_ASSETS
from graticule.handlers.stac.writing import WantedCollection

LICENSE: Final = "other"
EVERYWHERE: Final = [-180.0, -90.0, 180.0, 90.0]
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


def wanted_collection(
    collection_id: str, text: CollectionText, platform_id: str | None, holds: Holding
) -> WantedCollection:
    """Give a collection as it is wanted: made like this, or with those texts that are given."""
    given = text.model_dump(include=set(CollectionText.model_fields), exclude_none=True)
    new = CollectionText.model_validate({"title": title_of_id(collection_id), **given})
    return WantedCollection(new_collection(collection_id, new, platform_id=platform_id, holds=holds), given)


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
