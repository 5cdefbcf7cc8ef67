"""Overviews: each level has half the size of the one before, and is made from it as its rows arrive.

Pixels are reduced two by two, aligned to the grid: a level does not depend on how it was cut into pieces.
"""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graticule.handlers.raster.cog.profile import BLOCK_SIZE, CogProfile
from graticule.handlers.raster.pixels import PixelArray, Pixels, Validity

# Wide enough for the sum of four.
_SUM_TYPES = {"u1": "u2", "i1": "i2", "u2": "u4", "i2": "i4", "u4": "u8", "i4": "i8"}


def level_sizes(width: int, height: int) -> list[tuple[int, int]]:
    """Give (width, height) of every level, from the full image down to one block."""
    sizes = [(width, height)]
    while max(sizes[-1]) > BLOCK_SIZE:
        sizes.append((_half(sizes[-1][0]), _half(sizes[-1][1])))
    return sizes


def reduced(pixels: Pixels, profile: CogProfile) -> Pixels:
    """Halve pixels. An odd last row or column is reduced with itself.

    `average` takes the mean of those of the four pixels that are valid, to integers rounded as GDAL does
    (halves away from 0); the result is valid when one of them is. `nearest` takes the pixel at the top left.
    """
    even = Pixels(_even(pixels.data), None if pixels.valid is None else _even(pixels.valid))
    if profile.overview_resampling == "nearest":
        return Pixels(_quarters(even.data)[0], None if even.valid is None else _quarters(even.valid)[0])
    valid = None if even.valid is None else np.logical_or.reduce(_quarters(even.valid))
    return Pixels(_averaged(even, profile), valid)


class LevelRow:
    """Gathers one block row of a level from the reduced pieces of the level before."""

    def __init__(self, profile: CogProfile, width: int, height: int) -> None:
        self._data = np.empty((profile.count, height, width), profile.dtype)
        self._valid: Validity | None = None
        self._missing = height * width

    def put(self, column: int, row: int, piece: Pixels) -> None:
        """Take a piece whose first pixel lies at (column, row) of this block row."""
        _, height, width = piece.data.shape
        place = (slice(row, row + height), slice(column, column + width))
        self._data[:, *place] = piece.data
        if piece.valid is not None:
            if self._valid is None:
                self._valid = np.ones(self._data.shape[1:], np.bool_)
            self._valid[place] = piece.valid
        self._missing -= height * width

    @property
    def is_complete(self) -> bool:
        """Whether all pieces have come."""
        return self._missing == 0

    @property
    def pixels(self) -> Pixels:
        """The pixels gathered so far."""
        return Pixels(self._data, self._valid)


def _half(size: int) -> int:
    return (size + 1) // 2


def _even(array: NDArray[Any]) -> NDArray[Any]:
    odd_rows, odd_columns = array.shape[-2] % 2, array.shape[-1] % 2
    if not odd_rows and not odd_columns:
        return array
    unpadded = [(0, 0)] * (array.ndim - 2)
    return np.pad(array, [*unpadded, (0, odd_rows), (0, odd_columns)], mode="edge")


def _quarters(array: NDArray[Any]) -> list[NDArray[Any]]:
    """The top left, top right, bottom left and bottom right pixels of all cells."""
    return [array[..., row::2, column::2] for row in (0, 1) for column in (0, 1)]


def _averaged(pixels: Pixels, profile: CogProfile) -> PixelArray:
    means = _means(pixels.data)
    usable = _usable(pixels, profile)
    if usable is None:
        return _beside_nodata(means, profile)
    counts = np.stack(_quarters(usable)).sum(axis=0, dtype=np.uint8)
    _mend(means, pixels.data, usable, counts)
    means = _beside_nodata(means, profile)
    none = counts == 0  # such a cell stays what it was: nodata, 0 or NaN
    means[none] = _quarters(pixels.data)[0][none]
    return means


def _usable(pixels: Pixels, profile: CogProfile) -> Validity | None:
    """Where a sample counts (bands, rows, columns): it is valid, opaque, not nodata and a number. None: everywhere."""
    conditions = []
    if pixels.valid is not None:
        conditions.append(pixels.valid)
    if profile.alpha is not None:
        conditions.append(pixels.data[profile.alpha] != 0)
    if profile.nodata is not None:
        conditions.append(pixels.data != profile.fill)
    if pixels.data.dtype.kind == "f":
        conditions.append(~np.isnan(pixels.data))
    if all(condition.all() for condition in conditions):
        return None
    return np.broadcast_to(reduce(np.logical_and, conditions), pixels.data.shape)


def _means(data: PixelArray) -> PixelArray:
    """The mean of all four samples of each cell, whatever they are."""
    sum_type = _SUM_TYPES.get(data.dtype.str[1:])
    if sum_type is not None:
        total = _sums(data, sum_type)
        total += 2
        if data.dtype.kind == "i":
            total -= total < 2  # a negative half is rounded down
        total >>= 2
        return total.astype(data.dtype)
    if data.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a huge nodata value may overflow here: its cells are mended
            return (_sums(data, "f8") / 4).astype(data.dtype)
    return _integer_means(np.stack(_quarters(data)), np.array(4, data.dtype))


def _sums(data: PixelArray, dtype: str) -> NDArray[Any]:
    rows: NDArray[Any] = np.add(data[..., ::2, :], data[..., 1::2, :], dtype=dtype)
    sums: NDArray[Any] = rows[..., ::2] + rows[..., 1::2]
    return sums


def _integer_means(values: PixelArray, counts: PixelArray) -> PixelArray:
    """Means over axis 0, rounded, that never leave the values' own type on the way."""
    quotients: PixelArray = (values // counts).sum(axis=0, dtype=values.dtype)
    remainders: PixelArray = (values % counts).sum(axis=0, dtype=values.dtype)
    is_negative = quotients + remainders // counts < 0
    quotients += (2 * remainders + counts - is_negative) // (2 * counts)
    return quotients


def _mend(means: PixelArray, data: PixelArray, usable: Validity, counts: NDArray[np.uint8]) -> None:
    """Set right the cells where some of the four samples do not count."""
    some = (counts > 0) & (counts < 4)
    values = np.stack([quarter[some] for quarter in _quarters(data)])
    values[~np.stack([quarter[some] for quarter in _quarters(usable)])] = 0
    if data.dtype.kind == "f":
        means[some] = values.sum(axis=0, dtype=np.float64) / counts[some]
    else:
        means[some] = _integer_means(values, counts[some].astype(data.dtype))


def _beside_nodata(means: PixelArray, profile: CogProfile) -> PixelArray:
    """A mean that happens to be the nodata value would be lost: it moves to the number beside it."""
    if profile.nodata is not None:
        means[means == profile.fill] = _beside(profile.fill)
    return means


def _beside(nodata: Any) -> Any:
    dtype = np.asarray(nodata).dtype
    if dtype.kind == "f":
        return np.nextafter(nodata, dtype.type(0 if nodata > 0 else 1))
    return nodata + 1 if nodata < np.iinfo(dtype).max else nodata - 1
