"""Statistics of bands: whatever the parts, those of the whole; and always something that JSON can hold."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from graticule.handlers.raster.pixels import Box, Pixels
from graticule.handlers.raster.statistics import BandStatistics, Counting, merged, statistics_of

EXACT = st.sampled_from(["uint8", "int8", "uint16", "int16"])


@given(EXACT.flatmap(lambda dtype: arrays.arrays(dtype, st.integers(1, 50))), st.data())
def test_parts_add_up_to_the_whole_exactly(samples: NDArray[Any], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, samples.size))
    whole = statistics_of(samples)
    assert merged([statistics_of(samples[cut:]), statistics_of(samples[:cut])]) == whole
    values = [int(each) for each in samples]
    assert (whole.count, whole.minimum, whole.maximum) == (len(values), min(values), max(values))
    assert (whole.sum, whole.sum_of_squares) == (sum(values), sum(each * each for each in values))
    assert whole.stddev == pytest.approx(float(np.std(values)), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32"])
def test_large_numbers_keep_their_small_deviations(dtype: str) -> None:
    samples = (2.45e6 + np.tile([0, 1, 2], 500)).astype(dtype)
    parts = merged(statistics_of(part) for part in np.array_split(samples, 7))
    assert parts.stddev == pytest.approx(float(samples.astype("float64").std()), rel=1e-9)
    assert parts.mean == pytest.approx(float(samples.astype("float64").mean()), rel=1e-12)


@pytest.mark.parametrize(
    "samples",
    [
        np.full(1000, 2**32 - 1, "uint32"),
        np.array([-1.797e308, 1.797e308, 1.0]),
        np.array([-1.797e308] * 4),
        np.full(10, 60_000, "uint16"),
    ],
)
def test_any_samples_can_be_told(samples: NDArray[Any]) -> None:
    half = BandStatistics.from_json(statistics_of(samples).to_json())
    both = merged([half] * 3)
    told = json.loads(json.dumps(both.to_json(), allow_nan=False))
    assert told["count"] == 3 * samples.size
    assert told["max"] == samples.max()
    assert all(abs(value) < 2**63 for value in told.values() if isinstance(value, int))


def test_without_samples_there_is_nothing_to_tell() -> None:
    nothing = statistics_of(np.array([], "uint8"))
    assert nothing == merged([]) == BandStatistics()
    assert nothing.to_json()["mean"] is None
    assert BandStatistics.from_json(nothing.to_json()) == nothing


class Given:
    """A source of given pixels."""

    def __init__(self, data: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> None:
        self.data, self.valid = data, valid

    def read(self, box: Box) -> Pixels:
        here = np.s_[box.row : box.row + box.height, box.column : box.column + box.width]
        return Pixels(self.data[:, *here], None if self.valid is None else self.valid[here])


def counted(source: Given, core: Box, **options: Any) -> list[BandStatistics]:
    counting = Counting(source, len(source.data), core, **options)
    for row in range(0, 8, 4):
        counting.read(Box(0, row, 8, 4))
    return counting.bands()


def test_only_the_core_is_counted_and_only_what_is_valid() -> None:
    data = np.arange(64, dtype="uint8").reshape(1, 8, 8)
    core = Box(2, 3, 4, 5)
    inside = data[0, 3:8, 2:6]
    assert counted(Given(data), core)[0] == statistics_of(inside)
    assert counted(Given(data), core, nodata=27)[0] == statistics_of(inside[inside != 27])
    valid = data[0] % 2 == 0
    assert counted(Given(data, valid), core)[0] == statistics_of(inside[inside % 2 == 0])
    with_alpha = np.concatenate([data, (data % 3 > 0).astype("uint8")])
    colour, alpha = counted(Given(with_alpha), core, alpha=1)
    assert colour == statistics_of(inside[inside % 3 > 0])
    assert alpha.count == inside.size


def test_what_is_not_a_number_does_not_count() -> None:
    data = np.ones((1, 8, 8), "float32")
    data[0, 0, :3] = [math.nan, math.inf, -math.inf]
    assert counted(Given(data), Box(0, 0, 8, 8))[0].count == 61
    assert counted(Given(data), Box(0, 0, 8, 8), nodata=1.0)[0].count == 0
