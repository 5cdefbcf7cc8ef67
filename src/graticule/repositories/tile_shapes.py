"""Shapes of vector tiles in SQL: the same for tiles that are made live and for those that are prepared."""

from typing import Final

from graticule.repositories.queries import load_queries

LAYER: Final = "features"
TILE_RESOLUTION: Final = 8192  # MapLibre's own
TILE_PIXELS: Final = 512  # across a tile, as MapLibre draws it
TILE_BUFFER: Final = TILE_RESOLUTION // 16  # how far beyond its edges a tile goes, so that lines join
QUERIES: Final = load_queries("tile_shapes.sql")


def tile_geometry(shape: str, envelope: str) -> str:
    """Return the SQL of a shape in the coordinates of a tile; NULL where the shape is not in it."""
    width = f"(ST_XMax({envelope}) - ST_XMin({envelope}))"
    widened = f"ST_Buffer({shape}, 1.5 * {width} / {TILE_RESOLUTION}, 'quad_segs=1')"
    return QUERIES["drawn"].format(
        in_tile=_in_tile(shape, envelope),
        widened=_in_tile(widened, envelope),
        shape=shape,
        envelope=envelope,
        width=width,
        pixel=TILE_RESOLUTION // TILE_PIXELS,
        pixels=TILE_PIXELS,
        resolution=TILE_RESOLUTION,
        buffer=TILE_BUFFER,
    )


def _in_tile(shape: str, envelope: str) -> str:
    return QUERIES["in_tile"].format(shape=shape, envelope=envelope, resolution=TILE_RESOLUTION, buffer=TILE_BUFFER)
