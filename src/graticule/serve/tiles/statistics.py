"""Statistics of a picture, whatever its numbers are.

rio-tiler counts in the type of the raster, where the range of a histogram of numbers such as 3.4e38 is none, and sums
overflow. Bands of large numbers are therefore counted in doubles that were divided by a power of two.
"""

import math
from typing import Any, Final

import numpy as np
from attrs import evolve
from numpy.typing import NDArray
from rio_tiler.models import BandStatistics, ImageData

from graticule.core import json_codec

TINY: Final = 2.0**-1000  # below, the bins of a histogram cannot be told from each other
LARGE: Final = 2.0**50  # beyond, half a unit to either side, which numpy adds to a single value, is next to nothing
_SCALED: Final = ("mean", "sum", "std", "median", "majority", "minority")


class RasterStatistics(BandStatistics):
    """Statistics of a band; of integers, the least and the greatest value are integers."""

    min: int | float | None  # type: ignore[assignment]
    max: int | float | None  # type: ignore[assignment]


def count_image(
    image: ImageData, wanted: dict[str, Any], histogram: dict[str, Any], coverage: Any = None
) -> dict[str, RasterStatistics]:
    """Return the statistics of each band of a picture."""
    keeps_units = wanted.get("categorical") or "range" in histogram  # which are given in the units of the raster
    factors = [1.0 if keeps_units else _factor(band) for band in image.array]
    counted = evolve(image, array=_scaled(image.array, factors)) if set(factors) != {1.0} else image
    found = counted.statistics(**wanted, hist_options=histogram, coverage=coverage)
    bands = {
        name: (factor, band) for name, factor, band in zip(image.band_names, factors, image.array, strict=True)
    }  # the same band may have been asked for twice
    return {name: _restored(statistics, *bands[name]) for name, statistics in found.items()}


def _factor(band: np.ma.MaskedArray[Any, Any]) -> float:
    """Return the power of two by which the numbers of a band become less than 2."""
    values = band.compressed()
    values = values[np.isfinite(values)]
    largest = max(abs(float(values.min())), abs(float(values.max()))) if values.size else 0.0
    is_ordinary = largest == 0 or TINY <= largest <= LARGE
    return 1.0 if is_ordinary else math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _scaled(array: np.ma.MaskedArray[Any, Any], factors: list[float]) -> np.ma.MaskedArray[Any, Any]:
    divisors = np.asarray(factors).reshape(-1, 1, 1)
    with np.errstate(all="ignore"):  # what is masked may be anything
        return np.ma.MaskedArray(array.data.astype(np.float64) / divisors, mask=np.ma.getmaskarray(array))


def _restored(found: BandStatistics, factor: float, band: np.ma.MaskedArray[Any, Any]) -> RasterStatistics:
    values = found.model_dump()
    if factor != 1.0:
        scaled = [*_SCALED, *(name for name in values if name.startswith("percentile_"))]
        values |= {name: values[name] * factor for name in scaled}
        values["histogram"] = [values["histogram"][0], _edges(np.asarray(values["histogram"][1]), factor)]
    is_whole = band.dtype.kind in "iu" and band.count()
    values |= {"min": int(band.min()), "max": int(band.max())} if is_whole else _extremes(band, values)
    return RasterStatistics.model_construct(**values)


def _extremes(band: np.ma.MaskedArray[Any, Any], values: dict[str, Any]) -> dict[str, Any]:
    finite: NDArray[Any] = band.compressed()[np.isfinite(band.compressed())]
    if not finite.size:
        return {name: json_codec.finite_number(values[name]) for name in ("min", "max")}
    return {"min": float(finite.min()), "max": float(finite.max())}


def _edges(edges: NDArray[np.float64], factor: float) -> list[float]:
    """Return the edges of a histogram in the units of the raster, none beyond the greatest number."""
    greatest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return [float(each) for each in np.clip(edges * factor, -greatest, greatest)]
