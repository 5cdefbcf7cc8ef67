"""How a vector tile says how many of how many features it shows."""

from typing import Final

SHOWN_HEADER: Final = "Graticule-Features-Shown"
MERGED_HEADER: Final = "Graticule-Features-Merged"
TOTAL_HEADER: Final = "Graticule-Features-Total"
COUNT_HEADERS: Final = (SHOWN_HEADER, MERGED_HEADER, TOTAL_HEADER)
COUNT: Final = "graticule:count"  # the attribute of a merged shape: how many features have their middle in it
