"""Statistics of whatever numbers a raster can hold."""

import math
from typing import Any

import numpy as np
import pytest
from rio_tiler.models import ImageData
from tests.number_cases import FLOATS, INTEGERS

from graticule.serve.tiles.statistics import RasterStatistics, count_image

GREATEST = 1.7976931348623157e308


def counted(values: list[Any], dtype: str, **histogram: Any) -> RasterStatistics:
    """Count four pixels, of which the last is masked."""
    mask = np.array([[[False, False], [False, True]]])
    image = ImageData(np.ma.MaskedArray(np.array(values, dtype).reshape(1, 2, 2), mask=mask))
    (found,) = count_image(image, {"categorical": False}, {"bins": 10, **histogram}).values()
    return found


@pytest.mark.parametrize("value", FLOATS.values(), ids=FLOATS)
def test_floats(value: float) -> None:
    same, spread = counted([value] * 4, "float64"), counted([value, 0, 0, 7], "float64")
    assert (same.min, same.max, same.median) == (value, value, value)
    assert same.mean == pytest.approx(value)
    assert (spread.min, spread.max) == (min(0, value), max(0, value))
    assert sum(same.histogram[0]) == sum(spread.histogram[0]) == 3
    assert all(map(math.isfinite, [*same.histogram[1], *spread.histogram[1]]))


@pytest.mark.parametrize("value", INTEGERS.values(), ids=INTEGERS)
def test_integers_stay_exact(value: int) -> None:
    dtype = "uint64" if value >= 2**63 else "int64"
    found = counted([value, 1, value, 5], dtype)
    assert (found.min, found.max) == (min(1, value), max(1, value))
    assert isinstance(found.max, int)
    assert sum(found.histogram[0]) == 3


def test_the_whole_range_of_doubles() -> None:
    found = counted([-GREATEST, GREATEST, 0, 0], "float64")
    assert (found.min, found.max, found.mean) == (-GREATEST, GREATEST, 0)
    assert found.std == pytest.approx(GREATEST * math.sqrt(2 / 3))


def test_ordinary_numbers_are_as_the_library_counts_them() -> None:
    values = np.arange(12, dtype="float32").reshape(3, 2, 2)
    image = ImageData(np.ma.MaskedArray(values, mask=False))
    ours = count_image(image, {"percentiles": [25]}, {"bins": 4})
    theirs = image.statistics(percentiles=[25], hist_options={"bins": 4})
    assert {name: band.model_dump() for name, band in ours.items()} == {
        name: band.model_dump() for name, band in theirs.items()
    }


def test_a_band_may_be_asked_for_twice() -> None:
    image = ImageData(np.ma.MaskedArray(np.array([[[1, 2]], [[1, 2]]], "uint8")), band_names=["b1", "b1"])
    assert count_image(image, {}, {})["b1"].max == 2


def test_a_range_is_given_in_the_units_of_the_raster() -> None:
    assert counted([1e30, 2e30, 3e30, 0], "float64", range=(0, 4e30)).histogram[1][-1] == 4e30
