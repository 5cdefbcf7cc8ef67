"""One source, one COG."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue
from rasterio.io import DatasetReader

from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import COGS, final_path, prefix_for, staged_path, stem_of
from graticule.handlers.raster import tiff_layout
from graticule.handlers.raster.cog.encoding import STORAGE_TIERS, Encoding
from graticule.handlers.raster.cog.profile import BLOCK_SIZE, CogProfile, block_size_for
from graticule.handlers.raster.cogs import CreateCog
from graticule.handlers.raster.grid import OutputGrid, output_grid
from graticule.handlers.raster.inspection import pixel_bytes
from graticule.handlers.raster.opening import gdal_environment, open_raster
from graticule.handlers.raster.options import CACHE_MB, OutputOptions, cpu_count
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.rendering import (
    Rendering,
    counted_sources,
    described_bands,
    encoding_for,
    merged_bands,
    output_options,
    profile_for,
    raster_type_for,
    readable_source,
    render,
    target_crs_of,
)
from graticule.handlers.raster.source import unchanged
from graticule.handlers.raster.statistics import BandStatistics
from graticule.handlers.raster.warp import lies_on, nodata_of
from graticule.telemetry import span

MOST_THREADS: Final = 8  # each has pixels of its own in memory
_READ_AT_ONCE: Final = 8  # blocks in a row that are read only to be counted


@dataclass(frozen=True, slots=True)
class Plan:
    """What is going to be made, and whether the source is that already."""

    rendering: Rendering
    profile: CogProfile
    nodata: float | None
    facts: dict[str, JsonValue]
    is_made: bool


@dataclass(frozen=True, slots=True)
class Made:
    """The file that was written."""

    size: int
    sha256: str
    bands: list[BandStatistics]


def made_cog(ctx: ProcessContext, params: CreateCog) -> JsonValue:
    """Write the COG to where the job stages its outputs, and tell all about it."""
    prefix = params.blob_prefix or prefix_for(params.source)
    name = f"{COGS}/{stem_of(params.source)}.tif"
    final, staged = final_path(ctx.storage, prefix, name), staged_path(ctx.storage, ctx.job_id, name)
    with (
        unchanged(ctx.storage, params.source, params.source_etag, params.prepared) as opened,
        gdal_environment(CACHE_MB),
    ):
        plan = _plan(opened, output_options(params))
        blob = params.prepared or ctx.storage.source(params.source).blob if plan.is_made else None
        made = _rendered(ctx, plan, staged) if blob is None else _copied(ctx, plan, blob, staged)
    grid = plan.rendering.grid
    return {
        "blob_path": final,
        "staged_path": staged,  # until a step registers it, or for good where none does
        "blob_prefix": prefix,
        "files": [name],
        "size_bytes": made.size,
        "output_hash": made.sha256,
        "checksum": made.sha256,
        "bbox": list(grid.bounds_4326()),
        "shape": [grid.height, grid.width],
        "grid": grid.to_json(),
        "bands": [*described_bands(plan.profile, made.bands)],
        "passed_through": blob is not None,
        **plan.facts,
    }


def _plan(opened: str, options: OutputOptions) -> Plan:
    with span("gdal.open"), open_raster(opened) as dataset:
        grid = output_grid(dataset, target_crs_of(options))
        encoding, warnings = encoding_for(dataset, options)
        rendering = Rendering(opened, grid, options)
        facts: dict[str, JsonValue] = {
            "tier": options.output_tier,
            "compression": encoding.compression,
            "storage_tier": STORAGE_TIERS[options.output_tier],
            "raster_type": raster_type_for(dataset, options).value,
            "warnings": [*warnings],
        }
        profile = profile_for(dataset, rendering, grid.box)
        return Plan(rendering, profile, nodata_of(dataset), facts, _is_made(dataset, grid, options, encoding))


def _is_made(dataset: DatasetReader, grid: OutputGrid, options: OutputOptions, encoding: Encoding) -> bool:
    """Tell whether the source is such a COG as it is."""
    if dataset.driver != "GTiff" or options.band_names or not lies_on(dataset, grid):
        return False
    compression = dataset.compression.name if dataset.compression else None
    block = block_size_for(pixel_bytes(dataset))
    is_alike = compression == encoding.compression and set(dataset.block_shapes) == {(block, block)}
    smallest = max(dataset.width, dataset.height) / max(dataset.overviews(1), default=1)
    return is_alike and smallest <= BLOCK_SIZE and tiff_layout.is_cog(dataset)


def _rendered(ctx: ProcessContext, plan: Plan, staged: str) -> Made:
    def on_progress(done: int, total: int) -> None:
        go_on(ctx)
        ctx.progress(done, total, "block rows")

    box = plan.rendering.grid.box
    with ctx.storage.writing(staged) as path:
        rendered = render(path, plan.rendering, box, box, threads=_threads(), on_progress=on_progress)
    return Made(rendered.cog.size, rendered.cog.sha256, rendered.bands)


def _copied(ctx: ProcessContext, plan: Plan, blob: str, staged: str) -> Made:
    """Copy a source that fits; its pixels are read once, to be counted."""
    bands = _counted(ctx, plan)
    digest, size = hashlib.sha256(), 0
    with ctx.storage.writing(staged) as path, path.open("wb") as copy:
        for piece in ctx.storage.stream(blob):
            go_on(ctx)
            digest.update(piece)
            size += copy.write(piece)
    return Made(size, digest.hexdigest(), bands)


def _counted(ctx: ProcessContext, plan: Plan) -> list[BandStatistics]:
    grid, threads = plan.rendering.grid, _threads()
    boxes = list(_boxes(grid, plan.profile.block_size))
    with (
        span("gdal.statistics", width=grid.width, height=grid.height),
        readable_source(plan.rendering.opened),
        counted_sources(
            plan.rendering, plan.profile, plan.nodata, box=grid.box, core=grid.box, threads=threads
        ) as sources,
        ThreadPoolExecutor(threads) as pool,
    ):
        for start in range(0, len(boxes), threads):
            go_on(ctx)
            list(pool.map(_read, sources, boxes[start : start + threads]))
            ctx.progress(start, len(boxes), "blocks counted")
        return merged_bands([source.bands() for source in sources])


def _read(source: Any, box: Box) -> None:
    source.read(box)  # and is counted; the pixels themselves are not needed


def _boxes(grid: OutputGrid, block: int) -> Iterator[Box]:
    wide = _READ_AT_ONCE * block
    for row in range(0, grid.height, block):
        for column in range(0, grid.width, wide):
            yield Box(column, row, min(wide, grid.width - column), min(block, grid.height - row))


def _threads() -> int:
    return min(cpu_count(), MOST_THREADS)
