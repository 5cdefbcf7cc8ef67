"""Where the features are, below the address of their asset, and the types in which they come."""

from typing import Final

from graticule.serve.features.layer import COLLECTION

GEOJSON: Final = "application/geo+json"
SCHEMA: Final = "application/schema+json"
TILE: Final = "application/vnd.mapbox-vector-tile"

THE_COLLECTION: Final = f"/collections/{COLLECTION}"
ITEMS: Final = f"{THE_COLLECTION}/items"
DOWNLOAD: Final = f"{THE_COLLECTION}/download.geojson"
TILESETS: Final = f"{THE_COLLECTION}/tiles"
