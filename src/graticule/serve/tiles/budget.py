"""How many pixels a request may have: the fewer, the more is made of each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from graticule.serve.tiles.dependencies import interval_count
from graticule.serve.tiles.limits import (
    MOST_BYTES,
    MOST_COMPARISONS,
    MOST_PIXELS,
    MOST_STATISTICS_PIXELS,
    MOST_STATISTICS_SAMPLES,
    MOST_WARPED_SAMPLES,
)

# Parameters each of which takes about as long as all that is done without them.
_WORKS: Final = ("expression", "algorithm", "color_formula", "colormap", "reproject")


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be read at once."""

    pixels: int = MOST_PIXELS
    samples: int = MOST_BYTES

    def most_pixels(self, bands: int, bytes_each: int) -> int:
        """Give how many pixels of some bands may be read; each sample has a byte of a mask, too."""
        return max(1, min(self.pixels, self.samples // bands, MOST_BYTES // (bands * (bytes_each + 1))))

    def of_statistics(self, shapes: int = 1) -> Self:
        """Give the budget of each of some shapes when statistics are made of them."""
        pixels, samples = min(self.pixels, MOST_STATISTICS_PIXELS), min(self.samples, MOST_STATISTICS_SAMPLES)
        return replace(self, pixels=pixels // shapes, samples=samples // shapes)


def budget_of(parameters: Mapping[str, str]) -> Budget:
    """Give the budget of a request with these parameters."""
    pixels = MOST_PIXELS // (1 + sum(name in parameters for name in _WORKS))
    intervals = interval_count(parameters["colormap"]) if "colormap" in parameters else 0
    return Budget(
        pixels=min(pixels, MOST_COMPARISONS // intervals) if intervals else pixels,
        samples=MOST_WARPED_SAMPLES if "reproject" in parameters else MOST_BYTES,
    )
