"""How much a request may ask for."""

from typing import Final

MOST_FEATURES: Final = 10_000  # of a page, and of a tile
FEATURES_BY_DEFAULT: Final = 10
MOST_BYTES: Final = 16 * 1024**2  # of a page, and of the rows of a tile; one feature may be larger, and is then alone
MAX_TILE_BYTES: Final = 2_000_000
MOST_READ_FOR_A_TILE: Final = 128 * 1024**2  # bytes of the table: what a tile has of a large shape is mostly small
LARGE: Final = 256 * 1024  # bytes: what is larger is written in a thread
MOST_OFFSET: Final = 10_000_000
MOST_IDS: Final = 1_000
MOST_SORTED: Final = 10  # columns
MOST_ZOOM: Final = 24

# Of a filter
MOST_TEXT: Final = 8_192  # characters
MOST_NODES: Final = 200
MOST_DEPTH: Final = 20
MOST_VERTICES: Final = 10_000


class FilterError(ValueError):
    """A filter that cannot be read, or asks for what is not allowed; the text is for the caller."""
