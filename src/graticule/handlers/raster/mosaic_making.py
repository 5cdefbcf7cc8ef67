"""Many tiles, one mosaic."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final

import morecantile
from cogeo_mosaic.mosaic import MosaicJSON
from pydantic import JsonValue

from graticule.core.errors import InvalidInput
from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.described_files import hash_of_tiles
from graticule.handlers.outputs.staging import MOSAICS, SCHEMES, final_path, staged_path
from graticule.handlers.raster.grid import OutputGrid
from graticule.handlers.raster.mosaics import CreateMosaic
from graticule.handlers.raster.rendering import merged_bands
from graticule.handlers.raster.schemes import Scheme
from graticule.handlers.raster.statistics import BandStatistics
from graticule.telemetry import span

MOST_SQUARES: Final = 100_000  # of a mosaic: each is an entry of its document
VERSION: Final = "0.0.3"
_WEB: Final = morecantile.tms.get("WebMercatorQuad")
_EARTH_RADIUS: Final = 6378137.0  # of the sphere on which web maps are drawn
_NORTHERNMOST: Final = 85.0511287798066

TileResult = dict[str, Any]


def made_mosaic(ctx: ProcessContext, params: CreateMosaic) -> JsonValue:
    """Stage the mosaic, and tell all about it and its tiles."""
    scheme_text = ctx.storage.get(params.scheme)
    scheme = Scheme.from_geojson(scheme_text)
    tiles = _complete(scheme, params.tiles)
    bbox = list(scheme.grid.bounds_4326())
    maxzoom = zoom_of(scheme.grid)
    minzoom = shown_from(bbox, max(0, maxzoom - params.overview_level))
    with span("mosaic.build", tiles=len(tiles)):
        mosaic = _mosaic(ctx, scheme, tiles, (minzoom, maxzoom), bbox)
    text = mosaic.model_dump_json(exclude_none=True).encode()
    name = f"{MOSAICS}/{scheme.stem}.json"
    ctx.storage.put(staged_path(ctx.storage, ctx.job_id, name), text)
    path = final_path(ctx.storage, scheme.blob_prefix, name)
    return {
        "mosaic_path": path,
        "blob_path": path,
        "blob_prefix": scheme.blob_prefix,
        "files": [*(tile["name"] for tile in tiles), name, f"{SCHEMES}/{scheme.stem}.geojson"],
        "tile_count": len(tiles),
        "tile_size": scheme.tile_size,
        "overlap": scheme.overlap,
        "size_bytes": sum(tile["size_bytes"] for tile in tiles),
        "output_hash": hash_of_tiles(tile["checksum"] for tile in tiles),
        "checksum": hashlib.sha256(text).hexdigest(),
        "scheme_checksum": hashlib.sha256(scheme_text).hexdigest(),
        "bbox": [*bbox],
        "shape": [scheme.grid.height, scheme.grid.width],
        "grid": scheme.grid.to_json(),
        "minzoom": minzoom,
        "maxzoom": maxzoom,
        **{name: value for name, value in scheme.facts.items() if name != "bands"},
        "bands": _bands(scheme, tiles),
    }


def zoom_of(grid: OutputGrid) -> int:
    """Give the zoom level of web maps whose pixels are as large as the grid's, by the length of its diagonal."""
    west, south, east, north = grid.bounds_4326()
    across = math.radians(east - west if east >= west else east - west + 360) * _EARTH_RADIUS
    down = _northing(north) - _northing(south)
    return int(_WEB.zoom_for_res(math.hypot(across, down) / math.hypot(grid.width, grid.height)))


def shown_from(bbox: Sequence[float], zoom: int) -> int:
    """Give this zoom level, or the next above it at which a mosaic does not have too many squares."""
    return next((level for level in range(zoom, 0, -1) if square_count(bbox, level) <= MOST_SQUARES), 0)


def square_count(bbox: Sequence[float], zoom: int) -> int:
    """Give how many squares of a web map's grid bounds in EPSG:4326 reach into."""
    west, south, east, north = bbox
    first, last = _WEB.tile(west, north, zoom, truncate=True), _WEB.tile(east, south, zoom, truncate=True)
    across = last.x - first.x + 1 + (2**zoom if west > east else 0)
    return across * (last.y - first.y + 1)


def _northing(latitude: float) -> float:
    shown = math.radians(max(-_NORTHERNMOST, min(latitude, _NORTHERNMOST)))
    return _EARTH_RADIUS * math.asinh(math.tan(shown))


def _complete(scheme: Scheme, tiles: Sequence[TileResult]) -> list[TileResult]:
    """Give one result for each tile of the scheme, in its order."""
    made = {tile["tile_id"]: tile for tile in tiles}
    if missing := [tile.tile_id for tile in scheme.tiles if tile.tile_id not in made]:
        raise InvalidInput(f"Of {len(scheme.tiles)} tiles {len(missing)} are missing, such as {missing[0]!r}.")
    return [made[tile.tile_id] for tile in scheme.tiles]


def _mosaic(
    ctx: ProcessContext, scheme: Scheme, tiles: Sequence[TileResult], zooms: tuple[int, int], bbox: Sequence[float]
) -> MosaicJSON:
    west, south, east, north = bbox
    if west > east:  # its readers know no bounds across the antimeridian
        west, east = -180.0, 180.0
    return MosaicJSON(
        mosaicjson=VERSION,
        name=scheme.stem,
        minzoom=zooms[0],
        maxzoom=zooms[1],
        quadkey_zoom=zooms[0],
        bounds=(west, south, east, north),
        tiles=_quadkeys(ctx, tiles, zooms[0]),
        asset_type="COG",
        data_type=_bands(scheme, tiles)[0]["data_type"],
    )


def _quadkeys(ctx: ProcessContext, tiles: Sequence[TileResult], zoom: int) -> dict[str, list[str]]:
    """Name for each square of the web map's grid the tiles that lie in it; across the antimeridian on both sides."""
    found: dict[str, list[str]] = {}
    for place, tile in enumerate(tiles):
        go_on(ctx)
        west, south, east, north = tile["bounds_4326"]
        for square in _WEB.tiles(west, south, east, north, zooms=[zoom]):
            paths = found.setdefault(_WEB.quadkey(square), [])
            if tile["blob_path"] not in paths:  # at zoom 0 both sides are one square
                paths.append(tile["blob_path"])
        ctx.progress(place + 1, len(tiles), "tiles")
    return found


def _bands(scheme: Scheme, tiles: Sequence[TileResult]) -> list[Any]:
    counted = merged_bands([[BandStatistics.from_json(band) for band in tile["bands"]] for tile in tiles])
    named: Any = scheme.facts["bands"]
    return [{**name, "statistics": count.to_json()} for name, count in zip(named, counted, strict=True)]
