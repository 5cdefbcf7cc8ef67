"""`raster.extract_tiles`: the source cut into pieces first, for sources that are slow at random access."""

from graticule.handlers.answers import answering
from graticule.handlers.context import ProcessContext
from graticule.handlers.raster.tiles import TileParams
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult


class ExtractTiles(TileParams):
    """Which scheme; the pieces are what is made here."""


@register_handler("raster.extract_tiles", queue="container-tasks", timeout_seconds=86_400, params=ExtractTiles)
@answering
def extract_tiles(ctx: ProcessContext) -> HandlerResult:
    """Cut, one after the other, what each tile needs out of the source; after a crash it goes on where it was."""
    from graticule.handlers.raster.cutting import cut_pieces  # noqa: PLC0415 - GDAL is for the child process alone

    return HandlerResult.success(cut_pieces(ctx, ctx.params.scheme))
