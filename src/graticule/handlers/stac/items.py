"""Items of the catalogue: one of a whole output, or one of each of its tiles."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

from pystac import Asset, Item, Link, MediaType
from pystac.extensions.file import FileExtension
from pystac.extensions.projection import ProjectionExtension
from pystac.extensions.raster import RasterExtension

from graticule.core.asset_names import title_of_id
from graticule.handlers.stac.bands import core_bands, described, raster_bands, with_valid_percent
from graticule.handlers.stac.footprint import Footprint, footprint
from graticule.handlers.stac.inputs import Band, Grid, ItemInputs, Product, Source, TileMade, TilesInputs, Version

PROCESSING: Final = "https://stac-extensions.github.io/processing/v1.2.0/schema.json"
DATA: Final = "data"
MOSAIC: Final = "mosaic"
SCHEME: Final = "scheme"
TILES_OF: Final = "graticule:tiles_of"  # by which an item's tiles are found
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SHA256_CODE: Final = "1220"  # a multihash begins with the function, and the number of bytes
_SOFTWARE: Final = ("graticule", "rasterio")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """A blob as it is in the storage."""

    path: str
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Times:
    """When the picture was taken, or else catalogued first; and when the item was written."""

    at: datetime
    updated: datetime


def tile_item_id(item_id: str, tile_id: str) -> str:
    """Name the item of a tile."""
    return f"{item_id}-{tile_id}"


def output_item(given: ItemInputs, stored: Stored, times: Times, stored_scheme: Stored | None = None) -> Document:
    """Return the item of an output, which is a single file or a mosaic of many.

    `stored_scheme` is the tile grid of a mosaic, where its checksum is known.
    """
    product = given.product
    item = _item(given.stac_item_id, given.stac_collection_id, product.grid, product.bbox, times)
    item.common_metadata.title = given.title or title_of_id(given.stac_item_id)
    item.properties |= {**_processing(given.source, product), **given.properties()}
    asset = _mosaic_asset(stored) if product.is_mosaic else _data_asset(stored)
    item.add_asset(MOSAIC if product.is_mosaic else DATA, asset)
    describe_file(asset, stored)
    grid = product.grid
    _describe_bands(asset, with_valid_percent(product.bands, grid.width * grid.height) if grid else product.bands)
    if scheme := product.scheme_path:
        scheme_asset = Asset(scheme, "Tile grid", media_type=MediaType.GEOJSON, roles=["metadata"])
        item.add_asset(SCHEME, scheme_asset)
        if stored_scheme is not None:
            describe_file(scheme_asset, stored_scheme)
    _link_service(item, given)
    return document_of(item)


def tile_items(given: TilesInputs, times: Times) -> Iterator[Document]:
    """Give the items of tiles, in the order of their ids."""
    common = {**_processing(given.source, None), **given.properties(), TILES_OF: given.stac_item_id}
    for tile in sorted(given.tiles, key=lambda tile: tile.tile_id):
        yield _tile_item(given, tile, times, common)


def _tile_item(given: TilesInputs, tile: TileMade, times: Times, common: Document) -> Document:
    item_id = tile_item_id(given.stac_item_id, tile.tile_id)
    grid = _tile_grid(given.grid, tile)
    item = _item(item_id, given.stac_collection_id, grid, tile.bounds_4326, times)
    if grid is None:
        ProjectionExtension.ext(item, add_if_missing=True).shape = list(tile.shape[-2:])
    item.properties |= common
    stored = Stored(tile.blob_path, tile.size_bytes, tile.checksum)
    asset = _data_asset(stored)
    item.add_asset(DATA, asset)
    describe_file(asset, stored)
    _describe_bands(asset, described(given.bands, tile.bands))
    return document_of(item)


def _tile_grid(whole: Grid | None, tile: TileMade) -> Grid | None:
    return whole.part(*tile.window) if whole is not None and tile.window is not None else None


def _item(item_id: str, collection_id: str, grid: Grid | None, bbox: list[float] | None, times: Times) -> Item:
    item = new_item(item_id, collection_id, footprint(grid, bbox), times)
    if grid is not None:
        _describe_grid(item, grid)
    return item


def new_item(item_id: str, collection_id: str, place: Footprint, times: Times) -> Item:
    """Give an item that says where and when, and nothing else yet."""
    item = Item(item_id, place.geometry, place.bbox, times.at, properties={})
    item.common_metadata.updated = times.updated
    item.collection_id = collection_id
    # The standard asks for the link; the STAC service replaces it by one to itself.
    item.add_link(Link("collection", f"/stac/collections/{collection_id}", media_type=MediaType.JSON))
    return item


def _describe_grid(item: Item, grid: Grid) -> None:
    projection = ProjectionExtension.ext(item, add_if_missing=True)
    has_code = ":" in grid.crs and len(grid.crs) < 40
    if has_code:
        projection.code = grid.crs
    else:
        projection.wkt2 = grid.crs
    projection.shape = [grid.height, grid.width]
    projection.transform = grid.transform[:6]
    projection.bbox = grid.bounds()
    if grid.crs != "EPSG:4326":
        projection.geometry = {"type": "Polygon", "coordinates": [[list(corner) for corner in grid.corners()]]}


def _data_asset(stored: Stored) -> Asset:
    return Asset(stored.path, media_type=MediaType.COG, roles=["data"])


def _mosaic_asset(stored: Stored) -> Asset:
    return Asset(stored.path, media_type=MediaType.JSON, roles=["data"])


def describe_file(asset: Asset, stored: Stored) -> None:
    """Tell the size and the checksum of an asset that belongs to an item."""
    file = FileExtension.ext(asset, add_if_missing=True)
    file.size = stored.size
    if (digest := multihash(stored.sha256)) is not None:
        file.checksum = digest


def multihash(sha256: str | None) -> str | None:
    """Give a SHA-256 as a multihash; one that is a multihash already stays as it is."""
    bare = (sha256 or "").lower().removeprefix("sha256:")
    if len(bare) == len(_SHA256_CODE) + 64:
        bare = bare.removeprefix(_SHA256_CODE)
    return f"{_SHA256_CODE}{bare}" if _SHA256.fullmatch(bare) else None


def _describe_bands(asset: Asset, bands: list[Band]) -> None:
    if bands:
        asset.extra_fields["bands"] = core_bands(bands)
        RasterExtension.ext(asset, add_if_missing=True).bands = raster_bands(bands)


def _processing(source: Source, product: Product | None) -> Document:
    software = {name: version(name) for name in _SOFTWARE}
    return {"processing:lineage": _lineage(source, product), "processing:software": software}


def _lineage(source: Source, product: Product | None) -> str:
    """Tell in a sentence what was made of what. An address loses its query, which may hold a signature."""
    told = [f"Made from {source.source.partition('?')[0]}" if source.source else "Made from a raster"]
    if source.content_hash:
        told.append(f"(SHA-256 {source.content_hash})")
    grid = product.grid if product else None
    if grid is not None and source.crs and source.crs != grid.crs:
        told.append(f"by a warp from {named_crs(source.crs)} to {named_crs(grid.crs)}")
    if product and product.compression:
        told.append(f"as cloud-optimized GeoTIFF with {product.compression} compression")
    return " ".join(told) + "."


def named_crs(crs: str) -> str:
    """Name a projection in a sentence."""
    return crs if len(crs) < 40 else "its own projection"


def _link_service(item: Item, given: Version) -> None:
    if given.tilejson_url is not None:
        item.add_link(Link("tilejson", given.tilejson_url, media_type=MediaType.JSON, title="Tiles"))


def document_of(item: Item) -> Document:
    """Give an item as it is written down; all of ours tell how they were made."""
    item.stac_extensions = sorted({*item.stac_extensions, PROCESSING})
    return item.to_dict(include_self_link=False, transform_hrefs=False)
