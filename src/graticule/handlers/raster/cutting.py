"""Pieces of a source.

A piece has the size and the place of the whole source, and holds only the blocks that its tile needs; the others take
no room in the file. So a tile that is made from its piece equals the one that is made from the source in every pixel,
whatever the resampling.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import rasterio
from pydantic import JsonValue
from rasterio.enums import MaskFlags
from rasterio.io import DatasetReader, DatasetWriter
from rasterio.windows import Window

from graticule.core.errors import InvalidInput
from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import scratch_path
from graticule.handlers.raster.cog.profile import block_size_for
from graticule.handlers.raster.grid import OutputGrid
from graticule.handlers.raster.inspection import pixel_bytes
from graticule.handlers.raster.nodata import MAX_EXACT_INTEGER, Number, exact_nodata
from graticule.handlers.raster.opening import gdal_environment, open_raster
from graticule.handlers.raster.options import CACHE_MB
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.rendering import readable_source
from graticule.handlers.raster.schemes import Scheme
from graticule.handlers.raster.source import unchanged
from graticule.handlers.raster.warp import Way, way_back
from graticule.telemetry import span

BLOCK: Final = 512
LATTICE: Final = 32  # pixels of the output between two positions that are looked up in the source
MARGIN: Final = 16  # source pixels around, for resampling that blends
BLOCKS_AT_ONCE: Final = 8


def cut_pieces(ctx: ProcessContext, scheme_path: str) -> JsonValue:
    """Cut a piece for each tile, but for those that an earlier attempt has cut."""
    scheme = Scheme.from_geojson(ctx.storage.get(scheme_path))
    folder = scratch_path(ctx.storage, ctx.job_id, "tiles")
    paths = [f"{folder}/{tile.tile_id}.tif" for tile in scheme.tiles]
    saved = ctx.checkpoint.load()
    done = 0 if saved is None else int(str(saved.data["done"]))
    with (
        span("gdal.cut", pieces=len(paths) - done),
        unchanged(ctx.storage, scheme.source, scheme.source_etag, scheme.prepared) as opened,
        gdal_environment(CACHE_MB),
        readable_source(opened),
        open_raster(opened) as dataset,
    ):
        for place in range(done, len(paths)):
            with ctx.storage.writing(paths[place]) as path:
                _cut(ctx, dataset, path, source_window(dataset, scheme.grid, scheme.tiles[place].box))
            ctx.checkpoint.save(f"tile {place + 1}", {"done": place + 1}, artifacts=paths[: place + 1])
            ctx.progress(place + 1, len(paths), scheme.tiles[place].tile_id)
    return {"pieces": folder, "tile_count": len(paths)}


def source_window(dataset: DatasetReader, grid: OutputGrid, box: Box) -> Window | None:
    """Give the blocks of the source that a box of the output is made of; None when it lies beside the source.

    Between two positions that are looked up, the way bends by less than the step from the one to the other.
    """
    columns, rows = (_steps(*side) for side in ((box.column, box.width), (box.row, box.height)))
    places = Way(grid, way_back(dataset, grid), dataset.transform).exact(*np.meshgrid(columns, rows))
    with np.errstate(invalid="ignore"):
        known = np.isfinite(places[0]) & np.isfinite(places[1])
    if not known.any():
        return None
    spans = [
        _span(of_axis, known, extent) for of_axis, extent in zip(places, (dataset.width, dataset.height), strict=True)
    ]
    (left, right), (top, bottom) = spans
    return Window(left, top, right - left, bottom - top) if left < right and top < bottom else None


def _steps(start: int, length: int) -> Any:
    return np.append(np.arange(start, start + length, LATTICE), start + length).astype(np.float64)


def _span(places: Any, known: Any, extent: int) -> tuple[int, int]:
    """Give the first pixel and the one after the last, at the borders of blocks."""
    margin = MARGIN + max(_largest(np.abs(np.diff(places, axis=axis))) for axis in (0, 1))
    first, last = places[known].min() - margin, places[known].max() + margin
    start, stop = (int(np.clip(value, 0, extent)) for value in (np.floor(first), np.ceil(last)))
    return start // BLOCK * BLOCK, min(-(-stop // BLOCK) * BLOCK, extent)


def _largest(steps: Any) -> float:
    finite = steps[np.isfinite(steps)]
    return float(finite.max()) if finite.size else 0.0


def _cut(ctx: ProcessContext, dataset: DatasetReader, path: Path, window: Window | None) -> None:
    has_mask = dataset.mask_flag_enums[0] == [MaskFlags.per_dataset]
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), _piece(dataset, path) as piece:
        for part in _parts(window, block_size_for(pixel_bytes(dataset))):
            go_on(ctx)
            piece.write(dataset.read(window=part), window=part)
            if has_mask:
                piece.write_mask(dataset.read_masks(1, window=part), window=part)


@contextmanager
def _piece(dataset: DatasetReader, path: Path) -> Iterator[DatasetWriter]:
    block = block_size_for(pixel_bytes(dataset))
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=dataset.width,
        height=dataset.height,
        count=dataset.count,
        dtype=dataset.dtypes[0],
        crs=dataset.crs,
        transform=dataset.transform,
        nodata=_writable_nodata(dataset),
        tiled=True,
        blockxsize=block,
        blockysize=block,
        interleave="pixel",
        sparse_ok=True,
        bigtiff="IF_SAFER",
    ) as piece:
        _describe(dataset, piece)
        yield piece


def _writable_nodata(dataset: DatasetReader) -> Number | None:
    """Return the nodata value, which rasterio writes as a double."""
    nodata = exact_nodata(dataset)
    if isinstance(nodata, int) and abs(nodata) > MAX_EXACT_INTEGER:
        raise InvalidInput(
            f"The nodata value {nodata} cannot be kept when the source is cut first.",
            hint="Leave extract_first at false.",
        )
    return nodata


def _describe(dataset: DatasetReader, piece: DatasetWriter) -> None:
    """Take over all that a profile asks of a source."""
    piece.colorinterp = dataset.colorinterp
    piece.scales, piece.offsets = dataset.scales, dataset.offsets
    piece.units = [unit or "" for unit in dataset.units]
    piece.update_tags(**dataset.tags())
    for band in dataset.indexes:
        piece.update_tags(band, **dataset.tags(band))
        if description := dataset.descriptions[band - 1]:
            piece.set_band_description(band, description)
    if dataset.colorinterp[0].name == "palette":
        piece.write_colormap(1, dataset.colormap(1))


def _parts(window: Window | None, block: int) -> Iterator[Window]:
    if window is None:
        return
    wide = BLOCKS_AT_ONCE * block
    for row in range(window.row_off, window.row_off + window.height, block):
        for column in range(window.col_off, window.col_off + window.width, wide):
            width = min(wide, window.col_off + window.width - column)
            yield Window(column, row, width, min(block, window.row_off + window.height - row))
