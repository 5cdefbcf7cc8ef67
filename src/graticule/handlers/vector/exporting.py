"""`vector.export_geoparquet` and `vector.export_pmtiles`: the features of a source as files for the web.

Both read the source again, as `vector.load` does, so that they need no database; what they make is staged.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, JsonValue

from graticule.core.models.platform import TableName
from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import (
    GEOPARQUET,
    PMTILES,
    final_path,
    staged_path,
    stem_of,
    table_prefix_for,
)
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.described import DEFAULT_TARGET, Source
from graticule.telemetry import span

QUEUE: Final = "container-tasks"
TIMEOUT_SECONDS: Final = 7200
MEMORY_LIMIT_MB: Final = 2048  # the process that writes tiles may take as much again
HIGHEST_ZOOM: Final = 16
PIECE_BYTES: Final = 1024 * 1024

Write = Callable[[Path], dict[str, JsonValue]]


class Export(BaseModel):
    """Which source, the table that is made of it, and below what its exports are; without a prefix, after both."""

    source: Source
    table_name: TableName
    blob_prefix: str | None = None

    @property
    def prefix(self) -> str:
        """Below what the exports are, as the catalogue has it, too."""
        return self.blob_prefix or table_prefix_for(self.source.source, self.table_name)


class ExportGeoParquet(Export):
    """The same, with the projection of the coordinates."""

    target_crs: str = DEFAULT_TARGET


class ExportPmtiles(Export):
    """The same, with the highest zoom that has tiles; without one, it is chosen by the features."""

    pmtiles_max_zoom: int | None = Field(None, ge=0, le=HIGHEST_ZOOM)


@register_handler(
    "vector.export_geoparquet",
    queue=QUEUE,
    timeout_seconds=TIMEOUT_SECONDS,
    params=ExportGeoParquet,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def export_geoparquet(ctx: ProcessContext) -> HandlerResult:
    """Write the features as one GeoParquet file."""
    from graticule.handlers.vector.exports.geoparquet_writing import write_geoparquet  # noqa: PLC0415 - imports GDAL

    return _exported(ctx, GEOPARQUET, "parquet", lambda file: write_geoparquet(ctx, file))


@register_handler(
    "vector.export_pmtiles",
    queue=QUEUE,
    timeout_seconds=TIMEOUT_SECONDS,
    params=ExportPmtiles,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def export_pmtiles(ctx: ProcessContext) -> HandlerResult:
    """Write the features as one file of vector tiles."""
    from graticule.handlers.vector.exports.pmtiles_making import write_pmtiles  # noqa: PLC0415 - imports GDAL

    return _exported(ctx, PMTILES, "pmtiles", lambda file: write_pmtiles(ctx, file))


def _exported(ctx: ProcessContext, folder: str, ending: str, write: Write) -> HandlerResult:
    asked: Export = ctx.params
    name = f"{folder}/{stem_of(asked.source.source)}.{ending}"
    path = final_path(ctx.storage, asked.prefix, name)
    with ctx.storage.writing(staged_path(ctx.storage, ctx.job_id, name)) as file:
        with span("ogr.export", format=ending):
            told = write(file)
        checksum = _sha256(ctx, file)
        size = file.stat().st_size
    return HandlerResult.success({"name": name, "path": path, "size_bytes": size, "checksum": checksum, **told})


def _sha256(ctx: ProcessContext, file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(PIECE_BYTES):
            go_on(ctx)
            digest.update(piece)
    return digest.hexdigest()
