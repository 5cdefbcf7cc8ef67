"""Outputs of the steps before the catalogue, as the raster handlers give them."""

from datetime import UTC, datetime
from typing import Any

from graticule.handlers.stac.items import Stored, Times

SHA = "ab" * 32
AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
TIMES = Times(AT, datetime(2026, 1, 2, tzinfo=UTC))
COG = "silver/direct/d/s/v1/r1/cogs/scene.tif"
MOSAIC = "silver/direct/d/s/v1/r1/mosaics/scene.json"
STORED = Stored(COG, 4321, SHA)
UTM = {"crs": "EPSG:32620", "transform": [10.0, 0.0, 500000.0, 0.0, -10.0, 2000000.0], "width": 400, "height": 300}
LONLAT = {"crs": "EPSG:4326", "transform": [0.01, 0.0, -62.0, 0.0, -0.01, 18.0], "width": 400, "height": 300}
ACROSS = {"crs": "EPSG:4326", "transform": [0.1, 0.0, 178.0, 0.0, -0.1, -15.0], "width": 40, "height": 30}


def band(name: str = "b1", **more: Any) -> dict[str, Any]:
    """Give a band as `create_cog` tells it."""
    statistics = {"count": 60000, "min": 1, "max": 200, "sum": 600000, "sum_of_squares": 7e6, "mean": 10.0}
    given = {"name": name, "data_type": "uint8", "color_interpretation": "gray", "nodata": 0, "unit": None}
    return {**given, "scale": 1.0, "offset": 0.0, "statistics": {**statistics, "stddev": 4.0823}, **more}


def cog(grid: dict[str, Any] | None = LONLAT, **more: Any) -> dict[str, Any]:
    """Give an output of `raster.create_cog`."""
    made = {"blob_path": COG, "files": ["cogs/scene.tif"], "size_bytes": 4321, "output_hash": SHA, "checksum": SHA}
    told = {"grid": grid, "bands": [band("red"), band("green"), band("blue")], "compression": "DEFLATE"}
    return {**made, "bbox": None, "tier": "analysis", "warnings": [], **told, **more}


def mosaic(**more: Any) -> dict[str, Any]:
    """Give an output of `raster.create_mosaicjson`."""
    files = ["cogs/scene_tile_0_0.tif", "mosaics/scene.json", "schemes/scene.geojson"]
    made = {"mosaic_path": MOSAIC, "blob_path": MOSAIC, "files": files, "tile_count": 1, "output_hash": "cd" * 32}
    return {**cog(), **made, "minzoom": 5, "maxzoom": 9, **more}


def source(**more: Any) -> dict[str, Any]:
    """Give an output of `raster.validate`."""
    facts = {"crs": "EPSG:32620", "width": 400, "tags": {"TIFFTAG_DATETIME": "2023:04:05 06:07:08"}}
    told = {"source": "bronze/in/scene.tif", "content_hash": "ef" * 32, "outcome": "ok", "findings": []}
    return {**told, "raster_type": "rgb", "facts": facts, **more}


def item_inputs(product: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Give the parameters of `raster.stac_register_item`."""
    version = {"asset_id": "a" * 32, "version_ordinal": 1, "version_label": "v1", "revision": 1, "platform_id": "ddh"}
    request = {"request_id": "r-1"}
    refs = {"dataset_id": "d-1", "Resource Id": 7, "empty": None}
    ids = {"stac_item_id": "scene-v1", "stac_collection_id": "ddh-d", "blob_prefix": "direct/d/s/v1/r1"}
    return {**ids, **version, **request, "platform_refs": refs, "source": source(), "product": product or cog(), **more}


def tile(column: int, row: int, **more: Any) -> dict[str, Any]:
    """Give an output of `raster.process_tile`, of a tile of 40 by 30 pixels of the whole."""
    name = f"scene_tile_{column}_{row}"
    west, north = -62 + column * 0.4, 18 - row * 0.3
    made = {"tile_id": name, "name": f"cogs/{name}.tif", "blob_path": f"silver/direct/d/s/v1/r1/cogs/{name}.tif"}
    place = {"bounds_4326": [west, north - 0.3, west + 0.4, north], "window": [column * 40, row * 30, 40, 30]}
    sums = {"count": 4, "min": 1, "max": 3, "sum": 8, "sum_of_squares": 18}
    return {**made, **place, "shape": [30, 40], "size_bytes": 99, "bands": [sums] * 3, "checksum": SHA, **more}


def tiles_inputs(tiles: list[Any], **more: Any) -> dict[str, Any]:
    """Give the parameters of `raster.stac_register_items`."""
    ids = {"stac_item_id": "scene-v1", "stac_collection_id": "scene-v1-tiles", "platform_id": "ddh"}
    named = [{"name": name, "data_type": "uint8", "nodata": 0} for name in ("red", "green", "blue")]
    return {**ids, "tiles": tiles, "grid": LONLAT, "bands": named, "source": source(), **more}
