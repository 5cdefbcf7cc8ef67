"""Statistics of bands, exact and mergeable: those of tiles add up to those of the whole."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from graticule.handlers.raster.pixels import Box, Pixels, PixelSource

Number = int | float
# Sums of squares of so many 16-bit samples are whole numbers that a double holds exactly.
SAMPLES_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BandStatistics:
    """Of the valid samples of a band. Of whole numbers up to 16 bits all are exact, of others to rounding."""

    count: int = 0
    minimum: Number | None = None
    maximum: Number | None = None
    sum: Number = 0
    sum_of_squares: Number = 0
    deviations: float = 0.0  # from the mean, squared and summed; of sums that are not exact, these cannot be found

    @property
    def squared_deviations(self) -> float:
        """The squares of the deviations from the mean, summed."""
        if not self.count or not self.is_exact:
            return self.deviations
        return (self.count * self.sum_of_squares - self.sum * self.sum) / self.count

    @property
    def is_exact(self) -> bool:
        """Whether the sums are whole numbers, from which everything else follows."""
        return isinstance(self.sum, int) and isinstance(self.sum_of_squares, int)

    @property
    def mean(self) -> float | None:
        """The mean of the samples."""
        return self.sum / self.count if self.count else None

    @property
    def stddev(self) -> float | None:
        """The standard deviation of the samples as a whole."""
        return math.sqrt(self.squared_deviations / self.count) if self.count else None

    def to_json(self) -> dict[str, Any]:
        """Give them as a JSON object; null is what no number can tell."""
        return {
            "count": self.count,
            "min": self.minimum,
            "max": self.maximum,
            "sum": _told(self.sum),
            "sum_of_squares": _told(self.sum_of_squares),
            "squared_deviations": _told(self.squared_deviations),
            "mean": _told(self.mean),
            "stddev": _told(self.stddev),
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "BandStatistics":
        """Read what `to_json` gave."""
        sums = (given["sum"], given["sum_of_squares"], given["squared_deviations"])
        return cls(given["count"], given["min"], given["max"], *(math.nan if each is None else each for each in sums))


def _told(value: Number | None) -> Number | None:
    """Give a number as JSON can hold it: 64 bits, and finite."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, float) or abs(value) < 2**63 else float(value)


def merged(parts: Iterable[BandStatistics]) -> BandStatistics:
    """Give the statistics of all parts together; their order does not matter."""
    known = [part for part in parts if part.count]
    if not known:
        return BandStatistics()
    count, total = sum(part.count for part in known), _added([part.sum for part in known])
    mean = total / count
    return BandStatistics(
        count,
        min(part.minimum for part in known if part.minimum is not None),
        max(part.maximum for part in known if part.maximum is not None),
        total,
        _added([part.sum_of_squares for part in known]),
        0.0 if all(part.is_exact for part in known) else float(_added([_deviations(part, mean) for part in known])),
    )


def _deviations(part: BandStatistics, mean: float) -> float:
    """Give the squared deviations of a part from another mean than its own."""
    return part.squared_deviations + part.count * (part.sum / part.count - mean) ** 2


def _added(numbers: Sequence[Number]) -> Number:
    if all(isinstance(each, int) for each in numbers):
        return sum(numbers)
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # infinities of both signs, or more than any number
        return math.nan


def statistics_of(samples: NDArray[Any]) -> BandStatistics:
    """Count a band's valid samples."""
    flat = samples.reshape(-1)
    parts = (flat[start : start + SAMPLES_AT_ONCE] for start in range(0, flat.size, SAMPLES_AT_ONCE))
    return merged(_of_part(part) for part in parts if part.size)


def _of_part(part: NDArray[Any]) -> BandStatistics:
    with np.errstate(over="ignore", invalid="ignore"):  # what no number can tell is told as null
        return _of_whole_numbers(part) if part.dtype.kind in "iu" and part.dtype.itemsize <= 2 else _of_others(part)


def _of_whole_numbers(part: NDArray[Any]) -> BandStatistics:
    wide = part.astype(np.float64)
    total, squares, count = int(wide.sum()), int(np.dot(wide, wide)), part.size
    return BandStatistics(count, int(part.min()), int(part.max()), total, squares)


def _of_others(part: NDArray[Any]) -> BandStatistics:
    wide, number = part.astype(np.float64), int if part.dtype.kind in "iu" else float
    total = _whole_sum(part) if number is int else float(wide.sum())
    squares = float(np.dot(wide, wide))
    wide -= total / part.size
    return BandStatistics(part.size, number(part.min()), number(part.max()), total, squares, float(np.dot(wide, wide)))


def _whole_sum(part: NDArray[Any]) -> int:
    """Add up integers of any size: of 64 bits in halves, whose sums do not overflow."""
    if part.dtype.itemsize < 8:
        return int(part.sum(dtype=np.int64))
    low, high = part & part.dtype.type(0xFFFFFFFF), part >> part.dtype.type(32)
    return (int(high.sum(dtype=np.int64)) << 32) + int(low.sum(dtype=np.int64))


class Counting:
    """A source whose pixels are counted as they pass, those in the core alone."""

    def __init__(
        self, source: PixelSource, count: int, core: Box, *, nodata: Number | None = None, alpha: int | None = None
    ) -> None:
        self._source = source
        self._core = core
        self._nodata = nodata
        self._alpha = alpha
        self._bands: list[list[BandStatistics]] = [[] for _ in range(count)]

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box, and count them."""
        pixels = self._source.read(box)
        rows = _overlap(box.row, box.height, self._core.row, self._core.height)
        columns = _overlap(box.column, box.width, self._core.column, self._core.width)
        for place, counted in enumerate(self._bands):
            counted[:] = [merged([*counted, statistics_of(self._valid_samples(pixels, place, rows, columns))])]
        return pixels

    def bands(self) -> list[BandStatistics]:
        """Give the statistics of each band so far."""
        return [merged(parts) for parts in self._bands]

    def _valid_samples(self, pixels: Pixels, place: int, rows: slice, columns: slice) -> NDArray[Any]:
        samples: NDArray[Any] = pixels.data[place, rows, columns]
        if pixels.valid is not None and not (valid := pixels.valid[rows, columns]).all():
            samples = samples[valid]
        elif self._alpha is not None and place != self._alpha:
            samples = samples[pixels.data[self._alpha, rows, columns] != 0]
        return samples if self._is_plain(samples) else samples[is_data(samples, self._nodata)]

    def _is_plain(self, samples: NDArray[Any]) -> bool:
        return self._nodata is None and samples.dtype.kind in "iu"


def is_data(samples: NDArray[Any], nodata: Number | None) -> NDArray[np.bool_]:
    """Tell which samples count: nodata does not, and neither does what is not a number."""
    if samples.dtype.kind in "iu":
        other: NDArray[np.bool_] = samples != nodata
        return other
    kept: NDArray[np.bool_] = np.isfinite(samples)
    if nodata is not None and math.isfinite(nodata):
        kept &= samples != samples.dtype.type(nodata)
    return kept


def _overlap(start: int, length: int, core: int, core_length: int) -> slice:
    """Give the part of a stretch that lies in the core, counted from the stretch's start."""
    first = min(max(core - start, 0), length)
    return slice(first, max(first, min(core + core_length - start, length)))
