"""`raster.create_mosaicjson`: one document that says which tile shows which part of the earth."""

from typing import Any

from pydantic import BaseModel, Field

from graticule.handlers.answers import answering
from graticule.handlers.context import ProcessContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult


class CreateMosaic(BaseModel):
    """Which scheme, and what became of its tiles."""

    scheme: str = Field(min_length=1)
    tiles: list[dict[str, Any]] = Field(min_length=1, description="What `raster.process_tile` said of each tile.")
    overview_level: int = Field(2, ge=0, le=24, description="How many zoom levels it can be seen from above.")


@register_handler("raster.create_mosaicjson", queue="container-tasks", timeout_seconds=1800, params=CreateMosaic)
@answering
def create_mosaicjson(ctx: ProcessContext) -> HandlerResult:
    """Write a MosaicJSON over all tiles, and add up their statistics."""
    from graticule.handlers.raster.mosaic_making import made_mosaic  # noqa: PLC0415 - GDAL is for the child alone

    return HandlerResult.success(made_mosaic(ctx, ctx.params))
