"""Reduction two by two, against a plain reference that counts with fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.enums import ColorInterp
from tests.examples import examples
from tests.unit.handlers.raster.cog.rasters import Array, profile_for

from graticule.handlers.raster.cog.pyramid import level_sizes, reduced
from graticule.handlers.raster.pixels import Pixels

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize(
    ("width", "height", "sizes"),
    [
        (1, 1, [(1, 1)]),
        (512, 512, [(512, 512)]),
        (513, 1, [(513, 1), (257, 1)]),
        (1537, 700, [(1537, 700), (769, 350), (385, 175)]),
        (1024, 1025, [(1024, 1025), (512, 513), (256, 257)]),
    ],
)
def test_levels_end_with_one_block(width: int, height: int, sizes: list[tuple[int, int]]) -> None:
    assert level_sizes(width, height) == sizes


def rounded(mean: Fraction) -> int:
    return math.floor(abs(mean) + Fraction(1, 2)) * (1 if mean > 0 else -1)


def reference(data: Array, usable: Array, fallback: Array) -> Array:
    """The mean of the usable samples of each cell, halves rounded away from 0 as GDAL does; else the top left one."""
    bands, height, width = data.shape
    result = fallback[:, ::2, ::2].copy()
    for band, row, column in np.ndindex(bands, (height + 1) // 2, (width + 1) // 2):
        cell = (band, slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2))
        values = [Fraction(value.item()) for value in data[cell][usable[cell]]]
        if values:
            mean = sum(values, Fraction()) / len(values)
            result[band, row, column] = float(mean) if data.dtype.kind == "f" else rounded(mean)
    return result


@st.composite
def integer_rasters(draw: st.DrawFn) -> tuple[Array, Array]:
    dtype: np.dtype[Any] = np.dtype(draw(st.sampled_from(INTEGERS)))
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(1, 5)))
    limits = np.iinfo(dtype)
    few = st.integers(3, 6)  # so that values meet each other, and the nodata value
    values = st.one_of(few, st.integers(int(limits.min), int(limits.max)), st.just(int(limits.max)))
    size = math.prod(shape)
    data = np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype).reshape(shape)
    pixels = shape[1] * shape[2]
    valid = np.array(draw(st.lists(st.booleans(), min_size=pixels, max_size=pixels))).reshape(shape[1:])
    return data, valid


@given(integer_rasters())
@settings(max_examples=examples(80), deadline=None)
def test_average_of_integers_is_exact_for_any_type(raster: tuple[Array, Array]) -> None:
    data, valid = raster
    data[:, ~valid] = 0
    result = reduced(Pixels(data, valid), profile_for(data))
    np.testing.assert_array_equal(result.data, reference(data, np.broadcast_to(valid, data.shape), data))
    assert result.data.dtype == data.dtype
    assert result.valid is not None
    for row, column in np.ndindex(result.valid.shape):
        assert result.valid[row, column] == valid[2 * row : 2 * row + 2, 2 * column : 2 * column + 2].any()


@given(integer_rasters())
@settings(max_examples=examples(50), deadline=None)
def test_average_leaves_out_nodata_in_each_band_and_never_becomes_it(raster: tuple[Array, Array]) -> None:
    data, _ = raster
    result = reduced(Pixels(data), profile_for(data, nodata=4)).data
    expected = reference(data, data != 4, data)
    some = reference((data != 4).astype("f8"), np.ones(data.shape, bool), np.zeros(data.shape)) > 0
    expected[some & (expected == 4)] = 5
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("dtype", "nodata", "beside"), [("int16", -7, -6), ("float32", 2.0, 1.9999999)])
def test_a_mean_that_meets_nodata_moves_beside_it(dtype: str, nodata: float, beside: float) -> None:
    data = np.array([[[nodata - 1, nodata + 1]]], dtype)
    mean = reduced(Pixels(data), profile_for(data, nodata=nodata)).data.item()
    assert mean == pytest.approx(beside, abs=1e-9 if dtype == "int16" else 1e-6)
    assert mean != nodata


@given(
    st.lists(
        st.one_of(st.floats(-(2**20), 2**20, width=32), st.just(math.nan), st.just(-9999.0)), min_size=15, max_size=15
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_average_of_floats_leaves_out_nodata_and_nan(values: list[float]) -> None:
    data = np.array(values, "float32").reshape(1, 3, 5)
    result = reduced(Pixels(data), profile_for(data, nodata=-9999.0)).data
    expected = reference(data, (data != -9999) & ~np.isnan(data), data)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_float_as_nodata_does_no_harm(dtype: str) -> None:
    nodata = float(np.finfo(dtype).min)
    data = np.array([[[1, nodata, nodata, nodata], [2, nodata, nodata, nodata]]], dtype)
    assert reduced(Pixels(data), profile_for(data, nodata=nodata)).data.tolist() == [[[1.5, nodata]]]


def test_nan_as_nodata() -> None:
    data = np.array([[[1, math.nan, math.nan, math.nan], [4, math.nan, math.nan, math.nan]]], "float32")
    result = reduced(Pixels(data), profile_for(data, nodata=math.nan)).data
    np.testing.assert_array_equal(result, np.array([[[2.5, math.nan]]], "float32"))


def test_transparent_pixels_give_no_colour() -> None:
    colour, alpha = [[200, 0], [100, 7]], [[255, 0], [127, 0]]
    data = np.array([colour, alpha], "uint8")
    result = reduced(Pixels(data), profile_for(data, colorinterp=(ColorInterp.gray, ColorInterp.alpha))).data
    assert result.ravel().tolist() == [150, 191]


def test_nearest_takes_the_pixel_at_the_top_left() -> None:
    data = np.arange(15, dtype="uint8").reshape(1, 3, 5)
    valid = data[0] % 4 != 2
    result = reduced(Pixels(data, valid), profile_for(data, overview_resampling="nearest"))
    assert result.data.tolist() == [[[0, 2, 4], [10, 12, 14]]]
    assert result.valid is not None
    assert result.valid.tolist() == [[True, False, True], [False, True, False]]


def test_without_invalid_pixels_there_is_no_mask() -> None:
    data = np.ones((1, 4, 4), "uint8")
    assert reduced(Pixels(data), profile_for(data)).valid is None
