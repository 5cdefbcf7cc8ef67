"""Up to which zoom features get tiles: as far as tiles show more, and can be made in reasonable time.

Imports shapely: only for where a handler runs.
"""

import math
from typing import Any, Final

import numpy as np
import shapely

LOWEST_CHOSEN: Final = 5
HIGHEST_CHOSEN: Final = 14
HIGHEST: Final = 16
TILE_UNITS: Final = 4096  # across a tile
UNITS_OF_EDGE: Final = 32  # how many of these the edges of most features should have
MOST_IN_TILE: Final = 5000  # features in the densest tiles
# Each tile that a feature touches is cut from all of its coordinates, and has to be kept besides. This much takes about
# an hour, half of what the task has.
MOST_WORK: Final = 5_000_000_000
WORK_OF_TILE: Final = 50
NORTHERNMOST: Final = 85.0511287798066
_GRID_ZOOM: Final = 10
_GRID: Final = 2**_GRID_ZOOM


class ZoomSurvey:
    """Looks at features in degrees, batch by batch, and tells the zoom."""

    def __init__(self) -> None:
        self._work = np.zeros(HIGHEST + 1)
        self._wanted = np.zeros(HIGHEST + 1, np.int64)  # how many features want this zoom
        self._grid = np.zeros((_GRID, _GRID), np.int64)  # how many features have their centre here

    def add(self, geometry: Any) -> None:
        """Take features into account."""
        geometry = geometry[~(shapely.is_missing(geometry) | shapely.is_empty(geometry))]
        if len(geometry):
            west, north, east, south = _in_world(shapely.bounds(geometry))
            coordinates = shapely.get_num_coordinates(geometry)
            for zoom in range(HIGHEST + 1):
                tiles = (_tile(east, zoom) - _tile(west, zoom) + 1) * (_tile(south, zoom) - _tile(north, zoom) + 1)
                self._work[zoom] += float((tiles * (coordinates + WORK_OF_TILE)).sum())
            centre = _tile((north + south) / 2, _GRID_ZOOM), _tile((west + east) / 2, _GRID_ZOOM)
            np.add.at(self._grid, centre, 1)
            self._wanted += _wanted_zooms(geometry, coordinates)

    def best(self, asked: int | None = None) -> int:
        """Give the zoom: the one that is asked for, or shows the features well, but none that takes too long."""
        chosen = min(max(self._by_detail(), self._by_density(), LOWEST_CHOSEN), HIGHEST_CHOSEN)
        affordable = int((np.cumsum(self._work) <= MOST_WORK).sum()) - 1
        return max(0, min(chosen if asked is None else asked, affordable))

    def _by_detail(self) -> int:
        """Give the zoom at which half of the lines and polygons are drawn as precisely as they should be."""
        total = self._wanted.sum()
        return int(np.searchsorted(np.cumsum(self._wanted), total / 2)) if total else 0

    def _by_density(self) -> int:
        """Give the zoom at which no tile has too many features; below the grid they are taken to be spread evenly."""
        densest = self._grid.max()
        if densest > MOST_IN_TILE:
            return _GRID_ZOOM + math.ceil(math.log(densest / MOST_IN_TILE, 4))
        grid, zoom = self._grid, _GRID_ZOOM
        while zoom and (grid := _halved(grid)).max() <= MOST_IN_TILE:
            zoom -= 1
        return zoom


def _in_world(bounds: Any) -> Any:
    """Give west, north, east and south as parts of the square world of web maps."""
    longitudes = np.clip(bounds[:, [0, 2]] / 360 + 0.5, 0, 1)
    latitudes = np.radians(np.clip(bounds[:, [3, 1]], -NORTHERNMOST, NORTHERNMOST))
    down = np.clip(0.5 - np.arcsinh(np.tan(latitudes)) / (2 * np.pi), 0, 1)
    return longitudes[:, 0], down[:, 0], longitudes[:, 1], down[:, 1]


def _tile(place: Any, zoom: int) -> Any:
    return np.minimum((place * 2**zoom).astype(np.int64), 2**zoom - 1)


def _wanted_zooms(geometry: Any, coordinates: Any) -> Any:
    """Count which zooms lines and polygons want, by the length of their edges."""
    length = shapely.length(geometry)
    edges = length[length > 0] / coordinates[length > 0]
    zooms = np.ceil(np.log2(360 * UNITS_OF_EDGE / TILE_UNITS / edges)).clip(0, HIGHEST).astype(np.int64)
    return np.bincount(zooms, minlength=HIGHEST + 1)


def _halved(grid: Any) -> Any:
    size = len(grid) // 2
    return grid.reshape(size, 2, size, 2).sum(axis=(1, 3))
