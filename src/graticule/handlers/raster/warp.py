"""Pixels of a source on the output's grid, exactly where they belong.

The nearest pixel is found by our own arithmetic. GDAL's warper either transforms every pixel by itself, which takes
fourteen times as long as all the rest, or interpolates along lines whose ends depend on the window that is asked for:
up to an eighth of a pixel off by default, so that tiles would not fit together. Here positions are interpolated by
cubics between points of one lattice over the whole grid, checked in every cell, and transformed one by one wherever
the check fails or a position is too close to the border of two pixels. The result is that of `gdalwarp -et 0`,
whatever the window. All other resampling, and projections between which there is more than one way, are GDAL's.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from affine import Affine
from numpy.typing import NDArray
from pyproj import Transformer
from pyproj.exceptions import ProjError
from rasterio.enums import MaskFlags, Resampling
from rasterio.vrt import WarpedVRT
from rasterio.warp import transform
from rasterio.windows import Window

from graticule.handlers.raster.grid import TURN, OutputGrid, Positions, applied, crs_name
from graticule.handlers.raster.nodata import WIDE_INTEGERS, Number, exact_nodata
from graticule.handlers.raster.opening import GDAL_ERRORS, open_raster
from graticule.handlers.raster.pixels import Box, Pixels, PixelSource, Validity

CELL: Final = 64  # pixels between two points of the lattice
BITS: Final = 20
PARTS: Final = 1 << BITS  # of a source pixel: as finely positions are told from each other
SMALLEST: Final = 1 / PARTS
FARTHEST: Final = 2000  # source pixels that a box may reach across, so that a position fits into 31 bits
EXACT: Final = 1e-9
SMOOTH: Final = 1e-3  # for resampling that blends: invisible after rounding
LOOKED_AT: Final = 5  # pixels along each side, by which the way is chosen
CLOSE: Final = 0.01  # of a pixel
CHUNK: Final = 1024  # columns that are gathered at once
# GDAL takes a position that is short of a border by no more than this as being on it.
BORDER: Final = 1e-10

Indices = NDArray[np.int32]
Places = NDArray[np.intp]


@contextmanager
def opened_source(name: str, grid: OutputGrid, *, resampling: str = "nearest") -> Iterator[PixelSource]:
    """Open a raster for one thread, to be read on the output's grid."""
    with open_raster(name) as dataset:
        if lies_on(dataset, grid):
            yield Plain(dataset, nodata_of(dataset))
        elif resampling == "nearest" and (way := straight_way(dataset, grid)) is not None:
            yield Nearest(dataset, grid, way)
        else:
            with _warped(dataset, grid, resampling) as warped:
                yield Warped(warped, dataset)


def lies_on(dataset: Any, grid: OutputGrid) -> bool:
    """Tell whether the dataset has this grid already."""
    return (dataset.crs, dataset.transform, dataset.width, dataset.height) == (
        grid.crs,
        grid.transform,
        grid.width,
        grid.height,
    )


def needs_mask(dataset: Any, grid: OutputGrid) -> bool:
    """Tell whether only a mask can say which pixels of the output are valid."""
    if nodata_of(dataset) is not None or _alpha(dataset) is not None:
        return False
    return MaskFlags.per_dataset in dataset.mask_flag_enums[0] or not lies_on(dataset, grid)


def nodata_of(dataset: Any) -> Number | None:
    """Return the nodata value if samples of the type can have it; that of integers is an integer.

    Where nothing else tells which samples are missing, those of floats are that are not a number.
    """
    nodata, dtype = exact_nodata(dataset), np.dtype(dataset.dtypes[0])
    if dtype.kind == "f":
        tells = _alpha(dataset) is not None or MaskFlags.per_dataset in dataset.mask_flag_enums[0]
        return math.nan if nodata is None and not tells else nodata
    if nodata is None or dtype.kind not in "iu" or not math.isfinite(nodata):
        return None
    limits = np.iinfo(dtype)
    return int(nodata) if limits.min <= nodata <= limits.max and nodata == int(nodata) else None


def straight_way(dataset: Any, grid: OutputGrid) -> Transformer | None:
    """Return the way from the grid's projection to the source's, if it is the same for all of the grid.

    Between datums there are often several, each for an area. Where GDAL, which has a PROJ of its own, would put the
    source elsewhere, the way is GDAL's: the grid is its choice.
    """
    if dataset.gcps[0] or (dataset.crs.is_geographic and not -180 <= dataset.bounds.left < dataset.bounds.right <= 180):
        return None
    way = way_back(dataset, grid)
    # GDAL's warper counts in doubles, which do not hold all integers of 64 bits.
    is_straight = dataset.dtypes[0] in WIDE_INTEGERS or _is_one(way, grid)
    return way if is_straight and _is_that_of_gdal(way, dataset, grid) else None


def way_back(dataset: Any, grid: OutputGrid) -> Transformer:
    """Return the way from the grid's projection to the source's: at each place the one that PROJ finds best."""
    return Transformer.from_crs(crs_name(grid.crs), crs_name(dataset.crs), always_xy=True)


def _is_one(way: Transformer, grid: OutputGrid) -> bool:
    """Return whether all of a grid goes the same way, by some of its pixels."""
    columns, rows = np.meshgrid(np.linspace(0, grid.width, LOOKED_AT), np.linspace(0, grid.height, LOOKED_AT))
    places = zip(*(each.flat for each in applied(grid.transform, columns, rows)), strict=True)
    return len({_operation(way, *place) for place in places} - {None}) <= 1


def _operation(way: Transformer, x: float, y: float) -> str | None:
    """Return the operation by which a place is transformed; None when it has no place there."""
    if not math.isfinite(way.transform(x, y)[0]):
        return None
    try:
        return str(way.get_last_used_operation().definition)
    except ProjError:  # nothing is to be done: they are the same
        return ""


def _is_that_of_gdal(way: Transformer, dataset: Any, grid: OutputGrid) -> bool:
    """Return whether GDAL finds the middle of the source in the same place of the grid, to a hundredth of a pixel."""
    x, y = dataset.transform @ (dataset.width / 2, dataset.height / 2)
    here = way.transform(x, y, direction="INVERSE")
    try:
        there = transform(dataset.crs, grid.crs, [x], [y])
    except GDAL_ERRORS:
        return True
    if not np.isfinite(here).all():
        return True
    columns, rows = applied(~grid.transform, *np.transpose([here, np.ravel(there)]))
    turns = np.abs(TURN / grid.transform.a) if grid.crs.is_geographic else math.inf
    return bool(np.abs(math.remainder(np.ptp(columns), turns)) < CLOSE and np.ptp(rows) < CLOSE)


def _warped(dataset: Any, grid: OutputGrid, resampling: str) -> WarpedVRT:
    return WarpedVRT(
        dataset,
        crs=grid.crs,
        transform=grid.transform,
        width=grid.width,
        height=grid.height,
        resampling=Resampling[resampling],
        tolerance=EXACT if resampling == "nearest" else SMOOTH,
        nodata=nodata_of(dataset),
        add_alpha=needs_mask(dataset, grid),
        UNIFIED_SRC_NODATA="PARTIAL",  # as gdalwarp has it: a pixel is missing where all its bands are
    )


@dataclass(frozen=True, slots=True)
class Plain:
    """A dataset that lies on the output's grid."""

    dataset: Any
    nodata: Number | None

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box; where there is a nodata value, it also stands for the mask."""
        window = _window(box)
        data, valid = self.dataset.read(window=window), _own_mask(self.dataset, window)
        if valid is None or self.nodata is None:
            return Pixels(data, valid)
        data[:, ~valid] = self.nodata
        return Pixels(data)


@dataclass(frozen=True, slots=True)
class Warped:
    """A dataset on its way through GDAL's warper."""

    warped: WarpedVRT
    dataset: Any

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box."""
        # The warper's own type may be a wider one.
        data = self.warped.read(window=_window(box)).astype(self.dataset.dtypes[0], copy=False)
        if len(data) == self.dataset.count:
            return Pixels(data)
        return Pixels(data[:-1], data[-1] != 0)


class Nearest:
    """A dataset whose nearest pixels are gathered."""

    def __init__(self, dataset: Any, grid: OutputGrid, way: Transformer) -> None:
        self._dataset = dataset
        self._way = Way(grid, way, dataset.transform)
        self._has_mask = needs_mask(dataset, grid)
        self._alpha = _alpha(dataset)
        nodata = nodata_of(dataset)
        self._fill = 0 if nodata is None else nodata

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box."""
        data = np.full((self._dataset.count, box.height, box.width), self._fill, self._dataset.dtypes[0])
        valid = np.zeros((box.height, box.width), bool) if self._has_mask else None
        for start in range(0, box.width, CHUNK):
            part = Box(box.column + start, box.row, min(CHUNK, box.width - start), box.height)
            columns = slice(start, start + part.width)
            self._gather(part, data[:, :, columns], None if valid is None else valid[:, columns])
        return Pixels(data, valid)

    def _gather(self, box: Box, data: NDArray[Any], valid: Validity | None) -> None:
        found = self._way.nearest(box, self._dataset.width, self._dataset.height)
        if found is None:
            self._gather_halves(box, data, valid)
        elif found.window is not None:
            self._take(found, found.window, data, valid)

    def _gather_halves(self, box: Box, data: NDArray[Any], valid: Validity | None) -> None:
        """Take less at a time, where neighbours in the output are far apart in the source: near a pole."""
        for part in _halves(box):
            down, right = part.row - box.row, part.column - box.column
            here = np.s_[..., down : down + part.height, right : right + part.width]
            self._gather(part, data[here], None if valid is None else valid[here])

    def _take(self, found: "Found", window: Window, data: NDArray[Any], valid: Validity | None) -> None:
        source = self._dataset.read(window=window)
        places = found.places(window)
        there = self._there(window, source, places, found.inside)
        for band, target in zip(source, data, strict=True):
            taken = band.reshape(-1)[places]
            if there is None:
                target[...] = taken
            else:
                np.copyto(target, taken, where=there)
        if valid is not None:
            valid[...] = True if there is None else there

    def _there(self, window: Window, source: NDArray[Any], places: Places, inside: Validity | None) -> Validity | None:
        """Tell which pixels come from the source; None when all do."""
        own = source[self._alpha] != 0 if self._alpha is not None else _own_mask(self._dataset, window)
        if own is None or own.all():
            return inside
        taken: Validity = own.reshape(-1)[places]
        return taken if inside is None else taken & inside


@dataclass(frozen=True, slots=True)
class Found:
    """The source pixels of a box of output pixels; those that are not inside are column and row 0 of the window."""

    columns: Indices
    rows: Indices
    inside: Validity | None  # None when all are
    window: Window | None  # of the source, that holds all of them; None when there are none

    def places(self, window: Window) -> Places:
        """Give their places in the pixels of the window, one after the other."""
        places: Places = self.rows - np.int32(window.row_off)
        places *= np.int32(window.width)
        places += self.columns
        places -= np.int32(window.col_off)
        if self.inside is not None:
            places[~self.inside] = 0
        return places.astype(np.intp)


class Way:
    """The way from pixels of the output's grid to pixels of the source."""

    def __init__(self, grid: OutputGrid, transformer: Transformer, source_transform: Affine) -> None:
        self._grid = grid
        self._transformer = transformer
        self._to_pixels = ~source_transform

    def nearest(self, box: Box, width: int, height: int) -> Found | None:
        """Give the nearest source pixel of each pixel of a box; None when they are too far apart for one box."""
        first = (box.column // CELL, box.row // CELL)
        last = ((box.column + box.width - 1) // CELL, (box.row + box.height - 1) // CELL)
        cells = (last[0] - first[0] + 1, last[1] - first[1] + 1)
        lattice = self._lattice(first, cells)
        if not self._is_smooth(first, cells, lattice):
            return self._one_by_one(box, width, height)
        if max(float(np.ptp(each)) for each in lattice) > FARTHEST:
            return None if max(box.width, box.height) > CELL else self._one_by_one(box, width, height)
        return self._by_cubics(box, first, lattice, width, height)

    def exact(self, columns: Positions, rows: Positions) -> tuple[Positions, Positions]:
        """Transform positions in the output's grid one by one, to positions in the source."""
        there = self._transformer.transform(*applied(self._grid.transform, columns, rows))  # infinite: there is no way
        return applied(self._to_pixels, *there)

    def _lattice(self, first: tuple[int, int], cells: tuple[int, int]) -> tuple[Positions, Positions]:
        """Transform the corners of the cells, and one more on each side for the cubics."""
        columns = np.arange(first[0] - 1, first[0] + cells[0] + 2) * float(CELL)
        rows = np.arange(first[1] - 1, first[1] + cells[1] + 2) * float(CELL)
        return self.exact(*np.meshgrid(columns, rows))

    def _is_smooth(self, first: tuple[int, int], cells: tuple[int, int], lattice: tuple[Positions, Positions]) -> bool:
        """Tell whether the cubics are as good as they have to be, by the centres of all cells."""
        columns = (np.arange(first[0], first[0] + cells[0]) + 0.5) * CELL
        rows = (np.arange(first[1], first[1] + cells[1]) + 0.5) * CELL
        wanted = self.exact(*np.meshgrid(columns, rows))
        with np.errstate(invalid="ignore"):  # what cannot be transformed is infinite
            errors = (np.abs(_cubics(got, _CENTRE) - want) for got, want in zip(lattice, wanted, strict=True))
            return all(bool((each < SMALLEST / 4).all()) for each in errors)

    def _by_cubics(
        self, box: Box, first: tuple[int, int], lattice: tuple[Positions, Positions], width: int, height: int
    ) -> Found:
        """Count in parts of a pixel (1 / `PARTS`): whole numbers, so that little memory is moved."""
        here = np.s_[box.row - first[1] * CELL :, box.column - first[0] * CELL :]
        origins = [int(np.floor(each.min())) for each in lattice]
        fine = [
            _cubics((each - origin) * PARTS, _INSIDE)[here][: box.height, : box.width].astype(np.int32)
            for each, origin in zip(lattice, origins, strict=True)
        ]
        doubtful = _is_at_border(fine[0]) | _is_at_border(fine[1])
        columns, rows = ((each >> BITS) + np.int32(origin) for each, origin in zip(fine, origins, strict=True))
        if doubtful.any():
            down, right = np.nonzero(doubtful)
            columns[doubtful], rows[doubtful] = _pixels_of(
                *self.exact(_centres(right, box.column), _centres(down, box.row)), width, height
            )
        return _found(columns, rows, width, height)

    def _one_by_one(self, box: Box, width: int, height: int) -> Found | None:
        """Transform every pixel by itself: where projections end or tear."""
        columns = _centres(np.arange(box.width), box.column)
        rows = _centres(np.arange(box.height), box.row)
        found = _found(*_pixels_of(*self.exact(*np.meshgrid(columns, rows)), width, height), width, height)
        window = found.window
        too_large = window is not None and window.width * window.height > FARTHEST**2
        return None if too_large and box.width * box.height > 1 else found


def _centres(pixels: NDArray[np.intp], start: int) -> Positions:
    return pixels.astype(np.float64) + (start + 0.5)


def _pixels_of(xs: Positions, ys: Positions, width: int, height: int) -> tuple[Indices, Indices]:
    """Give the pixels of positions by GDAL's rule; -1 for what is not inside."""
    with np.errstate(invalid="ignore"):
        inside = (xs >= 0) & (ys >= 0) & (xs + BORDER <= width) & (ys + BORDER <= height)
    columns = np.minimum(np.floor(np.where(inside, xs, -1) + BORDER), width - 1).astype(np.int32)
    rows = np.minimum(np.floor(np.where(inside, ys, -1) + BORDER), height - 1).astype(np.int32)
    return columns, rows


def _found(columns: Indices, rows: Indices, width: int, height: int) -> Found:
    left, right, top, bottom = (int(each) for each in (columns.min(), columns.max(), rows.min(), rows.max()))
    if left >= 0 and top >= 0 and right < width and bottom < height:
        return Found(columns, rows, None, Window(left, top, right - left + 1, bottom - top + 1))
    inside = (columns >= 0) & (rows >= 0) & (columns < width) & (rows < height)
    if not inside.any():
        return Found(columns, rows, inside, None)
    there = _found(columns[inside], rows[inside], width, height)
    return Found(columns, rows, inside, there.window)


def _halves(box: Box) -> list[Box]:
    if box.width >= box.height:
        half = box.width // 2
        return [
            Box(box.column, box.row, half, box.height),
            Box(box.column + half, box.row, box.width - half, box.height),
        ]
    half = box.height // 2
    return [Box(box.column, box.row, box.width, half), Box(box.column, box.row + half, box.width, box.height - half)]


def _weights(at: Positions) -> Positions:
    """Give Lagrange's weights of four points at -1, 0, 1 and 2 for positions between 0 and 1: (positions, 4)."""
    t = at
    return np.stack(
        [
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        ],
        axis=-1,
    )


_INSIDE: Final = _weights((np.arange(CELL) + 0.5) / CELL)  # the centres of the pixels of a cell
_CENTRE: Final = _weights(np.array([0.5]))


def _cubics(lattice: Positions, weights: Positions) -> Positions:
    """Give positions between the points of a lattice: down the columns first, which are few, then along the rows."""
    return _along_rows(_along_rows(lattice.T, weights).T, weights)


def _along_rows(values: Positions, weights: Positions) -> Positions:
    four = np.lib.stride_tricks.sliding_window_view(values, 4, axis=1)  # (rows, cells, 4)
    found: Positions = np.matmul(four, weights.T).reshape(len(values), -1)
    return found


def _is_at_border(fine: Indices) -> Validity:
    """Tell where a position is so close to the border of two pixels that the cubics cannot tell the side."""
    border: Validity = ((fine + np.int32(1)) & np.int32(PARTS - 1)) <= 1
    return border


def _window(box: Box) -> Window:
    return Window(box.column, box.row, box.width, box.height)


def _alpha(dataset: Any) -> int | None:
    """Give the place of the alpha band, if there is one."""
    found = [place for place, flags in enumerate(dataset.colorinterp) if flags.name == "alpha"]
    return found[0] if found else None


def _own_mask(dataset: Any, window: Window) -> Validity | None:
    """Give the mask that comes with a dataset; None when all its pixels are valid, or nodata or alpha tell."""
    if dataset.mask_flag_enums[0] != [MaskFlags.per_dataset]:
        return None
    mask: Validity = dataset.read_masks(1, window=window) != 0
    return mask
