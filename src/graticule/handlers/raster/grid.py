"""The output's pixel grid: the one on which all tiles of a raster lie, and which `gdalwarp` would choose."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyproj
from affine import Affine
from numpy.typing import NDArray
from pyproj import Transformer
from rasterio.crs import CRS
from rasterio.vrt import WarpedVRT
from rasterio.warp import calculate_default_transform, transform

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.validation_codes import Code, finding

MAX_DATUM_SHIFT: Final = 0.1  # degrees; from one datum to another it is some hundred metres
POINTS: Final = 33  # looked at along each side, to find the bounds of a shape whose sides bend
HALF_TURN: Final = 180.0
TURN: Final = 360.0
MOST: Final = 16  # times the pixels of the source: a long raster that is turned by 45 degrees needs some
FEWEST: Final = 64
FINE: Final = 256  # parts of a pixel, to find the extent that GDAL rounds to whole pixels
WORLD: Final = (-180.0, -90.0, 180.0, 90.0)
SMALL: Final = 1 << 20  # pixels that are no trouble, however few the source has

Positions = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OutputGrid:
    """Pixels of one size in a projection. Across the antimeridian, longitudes go on beyond 180."""

    crs: CRS
    transform: Affine
    width: int
    height: int

    @property
    def box(self) -> Box:
        """All of it."""
        return Box(0, 0, self.width, self.height)

    def part(self, box: Box) -> "OutputGrid":
        """Give the grid of a part of it."""
        return OutputGrid(self.crs, self.transform @ Affine.translation(box.column, box.row), box.width, box.height)

    def bounds(self) -> tuple[float, float, float, float]:
        """Give west, south, east, north in the grid's projection."""
        corners = [self.transform @ corner for corner in ((0, 0), (self.width, self.height))]
        (left, top), (right, bottom) = corners
        return min(left, right), min(bottom, top), max(left, right), max(bottom, top)

    def bounds_4326(self) -> list[float]:
        """Give west, south, east, north in EPSG:4326; west is greater than east across the antimeridian."""
        return lonlat_bounds(self.crs, self.transform, self.width, self.height)

    def to_json(self) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {
            "crs": crs_name(self.crs),
            "transform": list(self.transform)[:6],
            "width": self.width,
            "height": self.height,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "OutputGrid":
        """Read what `to_json` gave."""
        return cls(CRS.from_user_input(given["crs"]), Affine(*given["transform"]), given["width"], given["height"])


def applied(transform: Affine, columns: Positions, rows: Positions) -> tuple[Positions, Positions]:
    """Go from many positions in pixels to those in a projection, or back by the inverse."""
    with np.errstate(invalid="ignore"):  # what has no position is infinite, and becomes not a number
        xs = transform.c + columns * transform.a + rows * transform.b
        ys = transform.f + columns * transform.d + rows * transform.e
    return xs, ys


def crs_name(crs: CRS) -> str:
    """Return the code of a projection such as EPSG:4326, or its WKT when it has none.

    It is by the code that a CRS goes from GDAL to PROJ: each has a database of its own, and names of datums change.
    """
    authority = crs.to_authority(confidence_threshold=100)
    return ":".join(authority) if authority else crs.to_wkt()


def is_north_up(transform: Affine) -> bool:
    """Tell whether rows run east and columns south, as those of every output do."""
    return transform.b == 0 and transform.d == 0 and transform.a > 0 and transform.e < 0


def output_grid(dataset: Any, target_crs: CRS | None) -> OutputGrid:
    """Give the grid of a dataset's output: its own when nothing has to change, otherwise that of GDAL's warp."""
    target = target_crs or dataset.crs
    if dataset.crs == target and is_north_up(dataset.transform):
        return OutputGrid(target, dataset.transform, dataset.width, dataset.height)
    return check_grid_size(_warped_grid(dataset, target), dataset)


def _warped_grid(dataset: Any, target: CRS) -> OutputGrid:
    extent = _extent(dataset.crs, dataset.transform, dataset.width, dataset.height)
    crosses = target.is_geographic and extent is not None and extent.crosses_antimeridian
    # The same degrees, but counted from 0 to 360.
    counted = CRS.from_string(f"{target.to_proj4()} +lon_wrap=180") if crosses else target
    with WarpedVRT(dataset, crs=counted, AREA_OF_INTEREST=_area_of_interest(dataset.crs)) as warped:
        grid = OutputGrid(target, warped.transform, warped.width, warped.height)
    if crosses:
        grid = _with_datum_shift(grid, counted, dataset)
    return _kept_pixel(grid, counted, dataset) if 1 in {dataset.width, dataset.height} else grid


def _with_datum_shift(grid: OutputGrid, counted: CRS, dataset: Any) -> OutputGrid:
    """Move a grid to where PROJ has it: degrees counted from 0 to 360 have no code, and GDAL no datum shift."""
    xs, ys = applied(dataset.transform, np.array([dataset.width / 2]), np.array([dataset.height / 2]))
    (gdal_longitude,), (gdal_latitude,) = transform(dataset.crs, counted, xs, ys)
    to_target = Transformer.from_crs(crs_name(dataset.crs), crs_name(grid.crs), always_xy=True)
    (longitude,), (latitude,) = to_target.transform(xs, ys)
    east, north = math.remainder(longitude - gdal_longitude, TURN), latitude - gdal_latitude
    if not max(abs(east), abs(north)) < MAX_DATUM_SHIFT:
        return grid
    return replace(grid, transform=Affine.translation(east, north) @ grid.transform)


def _area_of_interest(crs: CRS) -> str:
    """Return the area by which GDAL sorts transformations between datums: the one by which PROJ sorts them.

    By itself GDAL takes that of the source, and chooses another transformation than for its pixels, or none where it
    mistakes the area: longitudes may be counted from Ferro.
    """
    area = pyproj.CRS.from_user_input(crs_name(crs)).area_of_use
    return ",".join(map(str, area.bounds if area else WORLD))


def _kept_pixel(grid: OutputGrid, crs: CRS, dataset: Any) -> OutputGrid:
    """Return a grid that keeps a single pixel, row or column: GDAL's may be empty, or have no centre inside it."""
    is_pixel = dataset.width == dataset.height == 1
    width = 1 if is_pixel or (dataset.width == 1 and not grid.width) else grid.width
    height = 1 if is_pixel or (dataset.height == 1 and not grid.height) else grid.height
    if not is_pixel and (width, height) == (grid.width, grid.height):
        return grid
    area = _area_of_interest(dataset.crs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # rasterio multiplies affines by `*`
        fine, columns, rows = calculate_default_transform(
            dataset.crs, crs, dataset.width * FINE, dataset.height * FINE, *dataset.bounds, AREA_OF_INTEREST=area
        )
    if not (width and height and columns and rows):
        return grid
    return OutputGrid(grid.crs, fine @ Affine.scale(columns / width, rows / height), width, height)


def check_grid_size(grid: OutputGrid, dataset: Any) -> OutputGrid:
    """Refuse a grid with far more, or far fewer, pixels than the source has: the projections do not go together."""
    before, after = dataset.width * dataset.height, grid.width * grid.height
    if after and before / FEWEST <= after + SMALL and after <= before * MOST + SMALL:
        return grid
    raise Rejected(
        [
            finding(
                Code.UNUSABLE_GRID,
                f"In the projection of the output its {dataset.width:,} x {dataset.height:,} pixels would become "
                f"{grid.width:,} x {grid.height:,}.",
                "projection",
            )
        ]
    )


def lonlat_bounds(crs: CRS, transform: Affine, width: int, height: int) -> list[float]:
    """Give the bounds of a raster in EPSG:4326; west is greater than east across the antimeridian.

    All four are NaN when no point of it has a place on the earth.
    """
    extent = _extent(crs, transform, width, height)
    if extent is None:
        return [math.nan] * 4
    west, east = extent.west, extent.east
    if east - west >= TURN - extent.pixel:
        west, east = -HALF_TURN, HALF_TURN
    elif extent.crosses_antimeridian:
        east -= TURN
    return [max(west, -HALF_TURN), max(extent.south, -90.0), min(east, HALF_TURN), min(extent.north, 90.0)]


@dataclass(frozen=True, slots=True)
class _Extent:
    """Where a raster lies, in degrees: west is -180 or more (but for a part of a pixel), east may be beyond 180."""

    west: float
    south: float
    east: float
    north: float
    pixel: float  # about so wide

    @property
    def crosses_antimeridian(self) -> bool:
        """Whether more than a pixel lies on either side of it, and not all around the earth.

        GDAL's own suggestion there is a grid all around the earth, nearly all of it empty.
        """
        beyond = self.west < HALF_TURN - self.pixel and self.east > HALF_TURN + self.pixel
        return beyond and self.east - self.west < TURN - self.pixel


def _extent(crs: CRS, transform: Affine, width: int, height: int) -> _Extent | None:
    """Look at points all over a raster; None when none of them has a place on the earth."""
    columns, rows = np.meshgrid(np.linspace(0, width, POINTS), np.linspace(0, height, POINTS))
    to_degrees = Transformer.from_crs(crs_name(crs), "EPSG:4326", always_xy=True)
    longitudes, latitudes = to_degrees.transform(*applied(transform, columns, rows))  # infinite where there is no place
    known = np.isfinite(longitudes) & np.isfinite(latitudes)
    if not known.any():
        return None
    if known.all():  # otherwise a jump of 360 degrees cannot be told from a hole
        longitudes = np.unwrap(np.unwrap(longitudes, period=TURN, axis=1), period=TURN, axis=0)
    west, east = float(longitudes[known].min()), float(longitudes[known].max())
    south, north = float(latitudes[known].min()), float(latitudes[known].max())
    pixel = (east - west) / width
    turns = math.floor((west + HALF_TURN + pixel) / TURN) * TURN
    poles = [pole for pole in (-90.0, 90.0) if _holds_pole(to_degrees, transform, width, height, pole)]
    if poles:
        return _Extent(-HALF_TURN, min([south, *poles]), HALF_TURN, max([north, *poles]), TURN / width)
    return _Extent(west - turns, south, east - turns, north, pixel)


def _holds_pole(to_degrees: Transformer, transform: Affine, width: int, height: int, latitude: float) -> bool:
    """Tell whether a pole is a point inside the raster; in many projections it is a line, or nowhere."""
    crs = to_degrees.source_crs
    if crs is None or crs.is_geographic:
        return False
    longitudes = np.array([0.0, 90.0, 180.0])
    xs, ys = to_degrees.transform(longitudes, np.full(3, latitude), direction="INVERSE")
    columns, rows = applied(~transform, xs, ys)
    if not (np.isfinite(columns).all() and np.isfinite(rows).all()):
        return False
    is_point = np.ptp(columns) < 1 and np.ptp(rows) < 1
    return bool(is_point and 0 <= columns[0] <= width and 0 <= rows[0] <= height)
