"""Schemes and tiles."""

from collections.abc import Sequence
from math import isqrt
from typing import Any, Final

import numpy as np
from pydantic import JsonValue
from rasterio.io import DatasetReader

from graticule.core.errors import InvalidInput
from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import (
    COGS,
    SCHEMES,
    checked_prefix,
    final_path,
    prefix_for,
    staged_path,
    stem_of,
)
from graticule.handlers.raster.opening import gdal_environment, open_raster
from graticule.handlers.raster.options import CACHE_MB, cpu_count
from graticule.handlers.raster.rendering import Rendering, output_options, render, sums_of
from graticule.handlers.raster.schemes import Scheme, scheme_of
from graticule.handlers.raster.source import unchanged
from graticule.handlers.raster.tiles import TileParams, TilingScheme
from graticule.handlers.raster.tiling import BLOCK, LARGEST_TILE, SMALLEST_TILE, Tile, batches_of
from graticule.storage.paths import scratch_name

# Tiles are made beside each other by as many processes as there are processors; a second thread keeps a processor
# busy that has no tile of its own any more.
MOST_THREADS: Final = 2
MAX_LISTED_TILES: Final = 10_000  # one by one; the batches name all of them


def made_scheme(ctx: ProcessContext, params: TilingScheme) -> JsonValue:
    """Stage the scheme, and tell what tasks follow from it."""
    # Two jobs of one source, with other options, must not put their tiles in one folder.
    own_prefix = f"{prefix_for(params.source)}-{scratch_name(ctx.job_id)}"
    prefix, stem = checked_prefix(params.blob_prefix or own_prefix), stem_of(params.source)
    with (
        unchanged(ctx.storage, params.source, params.source_etag, params.prepared) as opened,
        gdal_environment(CACHE_MB),
        open_raster(opened) as dataset,
    ):
        scheme = scheme_of(
            dataset,
            output_options(params),
            source=params.source,
            source_etag=params.source_etag,
            prepared=params.prepared,
            blob_prefix=prefix,
            stem=stem,
            tile_size=params.tile_size or _size_within(dataset, params.tile_size_mb),
            overlap=params.overlap,
        )
    staged = staged_path(ctx.storage, ctx.job_id, f"{SCHEMES}/{stem}.geojson")
    ctx.storage.put(staged, scheme.to_geojson())
    named = scheme.tiles if len(scheme.tiles) <= MAX_LISTED_TILES else []
    return {
        "scheme": staged,
        "blob_prefix": prefix,
        "tile_count": len(scheme.tiles),
        "columns": max(tile.column for tile in scheme.tiles) + 1,
        "rows": max(tile.row for tile in scheme.tiles) + 1,
        "batches": [[*batch] for batch in batches_of([tile.tile_id for tile in scheme.tiles])],
        "tile_list": [{"tile_id": tile.tile_id, "scheme": staged} for tile in named],
        "tile_size": scheme.tile_size,
        "overlap": scheme.overlap,
        "grid": scheme.grid.to_json(),
        "bbox": list(scheme.grid.bounds_4326()),
        **scheme.facts,
    }


def _size_within(dataset: DatasetReader, size_mb: int | None) -> int | None:
    """Return the largest side of a tile whose pixels have at most so many MiB."""
    if size_mb is None:
        return None
    pixel = dataset.count * np.dtype(dataset.dtypes[0]).itemsize
    side = isqrt(size_mb * 1024 * 1024 // pixel) // BLOCK * BLOCK
    return min(max(side, SMALLEST_TILE), LARGEST_TILE)


def made_tiles(ctx: ProcessContext, params: TileParams, tile_ids: Sequence[str]) -> list[JsonValue]:
    """Make tiles, but for those that an earlier attempt has finished."""
    scheme = Scheme.from_geojson(ctx.storage.get(params.scheme))
    tiles = _found(scheme, tile_ids)
    results = _finished(ctx, tile_ids)
    with gdal_environment(CACHE_MB):
        for place in range(len(results), len(tiles)):
            results.append(_made_tile(ctx, scheme, params.pieces, tiles, place))
            staged = [_staged(ctx, tile) for tile in tiles[: place + 1]]
            ctx.checkpoint.save(f"tile {place + 1}", {"tiles": results}, artifacts=staged)
    return results


def _found(scheme: Scheme, tile_ids: Sequence[str]) -> list[Tile]:
    known = {tile.tile_id: tile for tile in scheme.tiles}
    if unknown := [tile_id for tile_id in tile_ids if tile_id not in known]:
        raise InvalidInput(f"The scheme has no tile {unknown[0]!r}.")
    return [known[tile_id] for tile_id in tile_ids]


def _finished(ctx: ProcessContext, tile_ids: Sequence[str]) -> list[JsonValue]:
    saved = ctx.checkpoint.load()
    results: Any = [] if saved is None else saved.data["tiles"]
    is_of_these = [result["tile_id"] for result in results] == list(tile_ids[: len(results)])
    return list(results) if is_of_these else []


def _made_tile(ctx: ProcessContext, scheme: Scheme, pieces: str | None, tiles: Sequence[Tile], place: int) -> JsonValue:
    tile = tiles[place]

    def on_progress(done: int, total: int) -> None:
        go_on(ctx)
        ctx.progress(round(place + done / total, 3), len(tiles), tile.tile_id)

    go_on(ctx)
    source = scheme.source if pieces is None else f"{pieces}/{tile.tile_id}.tif"
    etag = scheme.source_etag if pieces is None else None
    prepared = scheme.prepared if pieces is None else None
    with unchanged(ctx.storage, source, etag, prepared) as opened, ctx.storage.writing(_staged(ctx, tile)) as path:
        rendering = Rendering(opened, scheme.grid, scheme.options)
        threads = min(cpu_count(), MOST_THREADS)
        rendered = render(path, rendering, tile.box, tile.core, threads=threads, on_progress=on_progress)
    return {
        "tile_id": tile.tile_id,
        "name": _name(tile),
        "blob_path": final_path(ctx.storage, scheme.blob_prefix, _name(tile)),
        "bounds_4326": [*scheme.bounds_of(tile)],
        "window": [tile.box.column, tile.box.row, tile.box.width, tile.box.height],
        "shape": [tile.box.height, tile.box.width],
        "size_bytes": rendered.cog.size,
        "bands": sums_of(rendered.bands),
        "checksum": rendered.cog.sha256,
    }


def _name(tile: Tile) -> str:
    return f"{COGS}/{tile.tile_id}.tif"


def _staged(ctx: ProcessContext, tile: Tile) -> str:
    return staged_path(ctx.storage, ctx.job_id, _name(tile))
