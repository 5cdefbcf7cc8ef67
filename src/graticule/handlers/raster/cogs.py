"""`raster.create_cog`: one raster becomes one COG."""

from graticule.handlers.answers import answering
from graticule.handlers.context import ProcessContext
from graticule.handlers.raster.options import MEMORY_LIMIT_MB, OutputOptions, SourceParams
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult


class CreateCog(SourceParams, OutputOptions):
    """Which source, and what is made of it."""


@register_handler(
    "raster.create_cog",
    queue="container-tasks",
    timeout_seconds=7200,
    params=CreateCog,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def create_cog(ctx: ProcessContext) -> HandlerResult:
    """Make one COG in the target projection; a source that is one already is copied as it is."""
    from graticule.handlers.raster.cog_making import made_cog  # noqa: PLC0415 - GDAL is for the child process alone

    return HandlerResult.success(made_cog(ctx, ctx.params))
