"""A look at some blocks of a raster: can they be decoded, do they hold data, and what values are there?"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rasterio.enums import MaskFlags
from rasterio.io import DatasetReader
from rasterio.windows import Window

from graticule.handlers.raster import tiff_layout
from graticule.handlers.raster.file_kinds import TIFF, FileKind
from graticule.handlers.raster.inspection import pixel_bytes, raw_bytes
from graticule.handlers.raster.opening import GDAL_ERRORS, undamaged, unreadable
from graticule.handlers.raster.raster_type import SampledValues
from graticule.handlers.raster.validation_codes import Code
from graticule.handlers.raster.warp import nodata_of

_MEBIBYTE: Final = 1024 * 1024
MOST_BLOCKS: Final = 24
MOST_STORED_BYTES: Final = 10 * _MEBIBYTE
MOST_RAW_BYTES: Final = 64 * _MEBIBYTE
MOST_BANDS: Final = 8
READ_AS_A_WHOLE_BELOW: Final = 4 * _MEBIBYTE
SEQUENTIAL_BELOW: Final = 512 * _MEBIBYTE  # of pixels in a format without random access
SCANNED_BELOW: Final = 256 * _MEBIBYTE  # of the file, when the sample has shown no data
SCAN_SECONDS: Final = 20.0
_VALUES_KEPT: Final = 4096  # of each block
_GOLDEN: Final = 0.6180339887498949

Watch = Callable[[], None]


class _Block(NamedTuple):
    """The pixels of a block: where one is valid in any band, the first band, and whether there is NaN."""

    valid: NDArray[np.bool_]
    first_band: NDArray[Any]
    has_nan: bool


@dataclass(slots=True)
class Sample:
    """What was seen."""

    blocks: int = 0
    pixels: int = 0
    valid_pixels: int = 0
    is_complete: bool = False  # all pixels were looked at
    has_nan: bool = False
    _values: list[NDArray[Any]] = field(default_factory=list)

    def add(self, block: _Block) -> None:
        """Take the pixels of a block."""
        self.blocks += 1
        self.pixels += block.valid.size
        self.valid_pixels += int(np.count_nonzero(block.valid))
        self.has_nan = self.has_nan or block.has_nan
        values = block.first_band[block.valid]
        self._values.append(values[:: max(1, values.size // _VALUES_KEPT)])

    def values(self) -> SampledValues | None:
        """Sum up the values of the first band; None when there are none."""
        values = np.concatenate(self._values) if self._values else np.empty(0)
        values = values[np.isfinite(values)]
        if not values.size or values.dtype.kind == "c":
            return None
        return SampledValues(float(values.min()), float(values.max()), int(np.unique(values).size))


def sampled(dataset: DatasetReader, name: str, kind: FileKind, watch: Watch) -> Sample:
    """Decode blocks all over the raster, the first and the last among them; all of it when it is small.

    Nothing is decoded of what numpy has no type for, and of a large file that can only be read from its beginning.
    """
    sample = Sample()
    if "complex_int16" in dataset.dtypes or (kind.is_sequential and raw_bytes(dataset) > SEQUENTIAL_BELOW):
        return sample
    if raw_bytes(dataset) <= READ_AS_A_WHOLE_BELOW:
        _take(dataset, name, [Window(0, 0, dataset.width, dataset.height)], sample, watch)
        sample.is_complete = dataset.count <= MOST_BANDS
        return sample
    _take(dataset, name, _chosen_blocks(dataset, kind), sample, watch)
    return sample


def holds_data(dataset: DatasetReader, name: str, sample: Sample, size: int, watch: Watch) -> bool | None:
    """Tell whether any pixel is valid; None when the raster is too large to know that in time."""
    if sample.valid_pixels or sample.is_complete:
        return bool(sample.valid_pixels)
    if size > SCANNED_BELOW or not sample.blocks:
        return None
    until, scan = time.monotonic() + SCAN_SECONDS, Sample()
    for window in _all_blocks(dataset):
        _take(dataset, name, [window], scan, watch)
        if scan.valid_pixels:
            return True
        if time.monotonic() > until:
            return None
    return False


def _take(dataset: DatasetReader, name: str, windows: Iterable[Window], sample: Sample, watch: Watch) -> None:
    for window in windows:
        watch()
        where = f"columns {window.col_off}-{window.col_off + window.width - 1}, "
        where += f"rows {window.row_off}-{window.row_off + window.height - 1}"
        try:
            with undamaged(name, where):
                sample.add(_pixels(dataset, window))
        except GDAL_ERRORS as error:
            raise unreadable(name, error, Code.CORRUPT, where) from None


def _pixels(dataset: DatasetReader, window: Window) -> _Block:
    """Decode a block; one band is in memory at a time."""
    valid = np.zeros((window.height, window.width), dtype=bool)
    first: NDArray[Any] | None = None
    has_nan = False
    for band in _bands(dataset):
        data = dataset.read(band, window=window)
        seen = _unmasked(dataset, band, window)
        if data.dtype.kind in "fc":
            is_nan = np.isnan(data)
            has_nan = has_nan or bool(is_nan.any())
            seen &= ~is_nan
        valid |= seen
        first = data if first is None else first
    assert first is not None  # noqa: S101 - there is a band: one without was rejected before
    return _Block(valid, first, has_nan)


def _unmasked(dataset: DatasetReader, band: int, window: Window) -> NDArray[np.bool_]:
    """Give where a band holds data; GDAL's mask of a nodata value that no pixel can have is of another value."""
    is_by_value = dataset.mask_flag_enums[band - 1] == [MaskFlags.nodata]
    if is_by_value and "int" in dataset.dtypes[0] and nodata_of(dataset) is None:
        return np.ones((window.height, window.width), dtype=bool)
    return np.asarray(dataset.read_masks(band, window=window) != 0)


def _bands(dataset: DatasetReader) -> list[int]:
    step = max(1, ceil(dataset.count / MOST_BANDS))
    return sorted({*dataset.indexes[::step], dataset.count})


def _chosen_blocks(dataset: DatasetReader, kind: FileKind) -> Iterator[Window]:
    """Give blocks until the budget is spent: the corners, the centre, and then others spread over the whole."""
    height, width = dataset.block_shapes[0]
    columns, rows = ceil(dataset.width / width), ceil(dataset.height / height)
    stored = raw = 0
    raw_block = prod(dataset.block_shapes[0]) * pixel_bytes(dataset)
    for count, (column, row) in enumerate(_spread(columns, rows)):
        stored += tiff_layout.stored_size(dataset, column, row) if kind is TIFF else raw_block
        raw += raw_block
        if count >= MOST_BLOCKS or (count > 0 and (stored > MOST_STORED_BYTES or raw > MOST_RAW_BYTES)):
            return
        yield _window(dataset, column, row)


def _spread(columns: int, rows: int) -> list[tuple[int, int]]:
    right, bottom, total = columns - 1, rows - 1, columns * rows
    corners = [(right, bottom), (0, 0), (columns // 2, rows // 2), (0, bottom), (right, 0)]
    places = [int(total * (step * _GOLDEN % 1)) for step in range(1, MOST_BLOCKS + 1)]
    return list(dict.fromkeys([*corners, *((place % columns, place // columns) for place in places)]))


def _all_blocks(dataset: DatasetReader) -> Iterator[Window]:
    """Go through all blocks in an order that meets data early, wherever they are."""
    height, width = dataset.block_shapes[0]
    columns, rows = ceil(dataset.width / width), ceil(dataset.height / height)
    strides = 16
    for first in range(strides):
        for place in range(first, columns * rows, strides):
            yield _window(dataset, place % columns, place // columns)


def _window(dataset: DatasetReader, column: int, row: int) -> Window:
    height, width = dataset.block_shapes[0]
    left, top = column * width, row * height
    return Window(left, top, min(width, dataset.width - left), min(height, dataset.height - top))
