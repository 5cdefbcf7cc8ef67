"""`raster.generate_tiling_scheme`, `raster.process_tile` and `raster.process_tile_batch`: a raster in tiles."""

from typing import Any

from pydantic import BaseModel, Field, JsonValue, model_validator

from graticule.handlers.answers import answering
from graticule.handlers.compatibility import translate_tile
from graticule.handlers.context import ProcessContext
from graticule.handlers.raster.options import MEMORY_LIMIT_MB, OutputOptions, SourceParams
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult


class TilingScheme(SourceParams, OutputOptions):
    """Which source, what is made of it, and how it is cut."""

    tile_size: int | None = Field(None, description="A multiple of 512; chosen by bands and type when not given.")
    tile_size_mb: int | None = Field(
        None, ge=1, description="In place of tile_size: the size of one tile's pixels in MiB, at most."
    )
    overlap: int = Field(512, description="Pixels of the output that neighbours share.")


class TileParams(BaseModel):
    """Which scheme, and the folder of pieces that were cut out of the source, if they were."""

    scheme: str = Field(min_length=1)
    pieces: str | None = None


class OneTile(TileParams):
    """One tile of a scheme; `tile` may be an item of the scheme's `tile_list`."""

    tile_id: str

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, params: Any) -> Any:
        return translate_tile(params)


class TileBatch(TileParams):
    """Some tiles of a scheme."""

    tile_ids: list[str] = Field(min_length=1)


@register_handler("raster.generate_tiling_scheme", queue="container-tasks", timeout_seconds=900, params=TilingScheme)
@answering
def generate_tiling_scheme(ctx: ProcessContext) -> HandlerResult:
    """Cut the output's pixel grid into tiles, and write it down as GeoJSON."""
    from graticule.handlers.raster.tile_making import made_scheme  # noqa: PLC0415 - GDAL is for the child alone

    return HandlerResult.success(made_scheme(ctx, ctx.params))


@register_handler(
    "raster.process_tile",
    queue="container-tasks",
    timeout_seconds=7200,
    params=OneTile,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def process_tile(ctx: ProcessContext) -> HandlerResult:
    """Make the COG of one tile, straight from the source."""
    return HandlerResult.success(_made(ctx, [ctx.params.tile_id])[0])


@register_handler(
    "raster.process_tile_batch",
    queue="container-tasks",
    timeout_seconds=86_400,
    params=TileBatch,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def process_tile_batch(ctx: ProcessContext) -> HandlerResult:
    """Make the COGs of some tiles one after the other; after a crash it goes on with the first that is not done."""
    return HandlerResult.success(_made(ctx, ctx.params.tile_ids))


def _made(ctx: ProcessContext, tile_ids: list[str]) -> list[JsonValue]:
    from graticule.handlers.raster.tile_making import made_tiles  # noqa: PLC0415 - GDAL is for the child alone

    return made_tiles(ctx, ctx.params, tile_ids)
