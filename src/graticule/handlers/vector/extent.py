"""Extents in degrees, the only way from a layer's bounds to longitudes and latitudes. Imports PROJ."""

import math
from typing import Final

import numpy as np
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.handlers.vector.described import WGS84
from graticule.handlers.vector.preparing.reprojecting import BEYOND_POLE, NOISE, Origins, Reprojection, has_longitudes
from graticule.handlers.vector.rejecting import Code, rejected

Box = tuple[float, float, float, float]  # west, south, east, north

_POLE, _HALF_TURN, _TURN = 90.0, 180.0, 360.0
_TOLERANCE: Final = _HALF_TURN * NOISE
_SAMPLES: Final = 201  # along each side of a box whose edges lie outside the projection's domain
_SMALLEST_GAP: Final = 3 * _TURN / _SAMPLES  # degrees; longitudes that are less apart go all round the globe


def extent_in_degrees(crs: CRS, bounds: Box) -> Box | None:
    """Return bounds in degrees, or None where they lie outside the domain of the projection.

    The east is never below the west: across the antimeridian, longitudes continue beyond 180.
    """
    if not all(map(math.isfinite, bounds)):
        return None
    extent = _geographic_extent(crs, bounds) if has_longitudes(crs) else _projected_extent(crs, bounds)
    if not all(map(math.isfinite, extent)):
        return None
    west, south, east, north = extent
    furthest = _TURN + _TOLERANCE  # some files count longitudes from 0 to 360, or down to -360
    if max(-south, north) > _POLE * (1 + BEYOND_POLE) or max(-west, east) > furthest:
        return None
    return west, max(south, -_POLE), east, min(north, _POLE)


def wrapped(extent: Box) -> Box:
    """Return an extent with longitudes from -180 to 180; the west is above the east across the antimeridian."""
    west, south, east, north = extent
    if east - west >= _TURN - _TOLERANCE:
        return -_HALF_TURN, south, _HALF_TURN, north
    if west < -_HALF_TURN - _TOLERANCE or east > _HALF_TURN + _TOLERANCE:
        turns = math.floor((west + _HALF_TURN + _TOLERANCE) / _TURN) * _TURN
        west, east = west - turns, east - turns
    east = east - _TURN if east > _HALF_TURN + _TOLERANCE else east
    return max(west, -_HALF_TURN), south, min(east, _HALF_TURN), north


def _geographic_extent(crs: CRS, bounds: Box) -> Box:
    west, south, east, north = bounds
    corners = np.array([west, west, east, east]), np.array([south, north, south, north])
    x, y = Reprojection(crs, CRS.from_user_input(WGS84), Origins())(*corners)
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _projected_extent(crs: CRS, bounds: Box) -> Box:
    """Transform a box; `errcheck` would refuse conic projections, for which one of the poles is at infinity."""
    try:
        to_degrees = Transformer.from_crs(crs, WGS84, always_xy=True)
    except ProjError:
        what = f"PROJ has no transformation from {crs.name} to EPSG:4326."
        raise rejected(Code.UNKNOWN_SOURCE_CRS, what, "CRS") from None
    if not _has_whole_edges(to_degrees, bounds):
        return _sampled_extent(to_degrees, bounds)
    west, south, east, north = to_degrees.transform_bounds(*bounds)
    return west, south, east + _TURN if east < west else east, north


def _has_whole_edges(to_degrees: Transformer, bounds: Box) -> bool:
    """Return whether the projection covers the edges of a box: PROJ takes the bounds of what it covers for all."""
    west, south, east, north = bounds
    columns, rows = np.linspace(west, east, _SAMPLES), np.linspace(south, north, _SAMPLES)
    x = np.concatenate([columns, columns, np.full(_SAMPLES, west), np.full(_SAMPLES, east)])
    y = np.concatenate([np.full(_SAMPLES, south), np.full(_SAMPLES, north), rows, rows])
    return bool(_is_on_globe(*to_degrees.transform(x, y)).all())


def _sampled_extent(to_degrees: Transformer, bounds: Box) -> Box:
    """Return the extent of the part of a box that the projection covers: a full disk touches its box only at points."""
    columns, rows = np.linspace(bounds[0], bounds[2], _SAMPLES), np.linspace(bounds[1], bounds[3], _SAMPLES)
    grid_x, grid_y = np.meshgrid(columns, rows)
    x, y = to_degrees.transform(grid_x.ravel(), grid_y.ravel())
    is_inside = _is_on_globe(x, y)
    if not is_inside.any():
        return (math.inf,) * 4
    west, east = _shortest_arc(np.sort(x[is_inside]))
    return west, float(y[is_inside].min()), east, float(y[is_inside].max())


def _is_on_globe(longitudes: np.ndarray, latitudes: np.ndarray) -> np.ndarray:
    is_on_globe: np.ndarray = np.isfinite(longitudes) & (np.abs(latitudes) <= _POLE * (1 + BEYOND_POLE))
    return is_on_globe


def _shortest_arc(longitudes: np.ndarray) -> tuple[float, float]:
    """Return the ends of the shortest arc that contains sorted longitudes of samples."""
    gaps = np.diff(longitudes, append=longitudes[0] + _TURN)
    widest = int(np.argmax(gaps))
    if gaps[widest] < _SMALLEST_GAP:
        return -_HALF_TURN, _HALF_TURN
    west = float(longitudes[(widest + 1) % len(longitudes)])
    return west, west + _TURN - float(gaps[widest])
