"""Ways from one CRS to another, and where the map of a projection ends."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyproj import CRS, Transformer

from graticule.handlers.vector.preparing.wkb import Flags, Floats

_QUARTER: Final = 1e7  # metres from the equator to a pole
_TORN: Final = 3e6  # metres: what has its ends so far apart may have been torn at the end of a map
_HAIR: Final = 1e-9  # of half a turn
NOISE: Final = 1e-7  # of half a turn: as much as a 32-bit float is off at the antimeridian; such is clamped
# Of the latitude of a pole: rounded world grids exceed the poles by some metres, where there is nothing else.
BEYOND_POLE: Final = 1e-5
_ATOM: Final = 1e-12  # of half a turn: less than a grain of dust


@dataclass(frozen=True, slots=True)
class Origins:
    """Meridians from which longitudes are counted, if not from that of their CRS."""

    source: float = 0.0
    target: float = 0.0


class Reprojection:
    """Moves coordinates from one CRS to another; x is always first."""

    def __init__(self, source: CRS, target: CRS, origins: Origins) -> None:
        is_same = source.equals(target, ignore_axis_order=True)
        self._transform = None if is_same else Transformer.from_crs(source, target, always_xy=True).transform
        self._origins = origins
        self.is_needed = not is_same
        self.may_jump = not has_longitudes(source)
        self.far = half_turn(source) / 2 if source.is_geographic else _QUARTER / _unit(source)  # in the source
        both = has_longitudes(source) and has_longitudes(target)
        self._turns = (2 * half_turn(source), 2 * half_turn(target)) if both else None
        self._turn, self._end = 2 * half_turn(target), half_turn(source) * (1 - _ATOM)
        self._pole = half_turn(source) / 2 if has_longitudes(source) else None

    def __call__(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Move them; the arrays are not the caller's any more."""
        if not len(x):
            return x, y
        y = y if self._pole is None else clamped(y, self._pole, BEYOND_POLE)
        moved_x, moved_y = self._moved(self._from_origin(x) if self._origins.source else x, y)
        if not self._origins.target:
            return moved_x, moved_y
        turned = moved_x - self._origins.target
        return turned - self._turn * np.round(turned / self._turn) if self.may_jump else turned, moved_y

    def _from_origin(self, x: Floats) -> Floats:
        """Count longitudes from the meridian of their CRS; PROJ takes the end of a map for its other end."""
        within: Floats = np.clip(x, -self._end, self._end)
        return within + self._origins.source

    def _moved(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        if self._transform is None:
            return x, y
        if self._turns is None:
            moved: tuple[Floats, Floats] = self._transform(x, y, inplace=True)
            return moved
        from_turn, to_turn = self._turns  # PROJ brings all longitudes onto the globe, and tears apart what goes beyond
        moved_x, moved_y = self._transform(x, y)
        return moved_x + to_turn * np.round(x / from_turn - moved_x / to_turn), moved_y


@dataclass(frozen=True, slots=True)
class Seam:
    """The meridian at which the map of a projection ends, half a turn from its `origin`."""

    geodetic: CRS
    origin: float  # in units of it
    torn: float  # in units of the projection

    @classmethod
    def of(cls, target: CRS) -> "Seam | None":
        """Find it; a projection that goes on there has none."""
        geodetic = target.geodetic_crs if target.is_projected else None
        if geodetic is None:
            return None
        seam = cls(geodetic.to_2d(), round(_origin(target) * half_turn(geodetic) / math.pi, 9), _TORN / _unit(target))
        return seam if seam._is_one(target) else None

    def _is_one(self, target: CRS) -> bool:
        half = half_turn(self.geodetic)
        beside, latitudes = np.repeat([half, -half], 3) * (1 - _HAIR), np.tile([-half / 4, 0, half / 4], 2)
        transform = Transformer.from_crs(self.geodetic, target, always_xy=True).transform
        west, east = np.split(np.column_stack(transform(self.origin + beside, latitudes)), 2)
        with np.errstate(invalid="ignore"):
            return bool((_length(east - west) > self.torn).any())

    def is_far(self, vertices: Floats) -> Flags:
        """Tell which vertices have the next so far away that the map may end between them."""
        return is_far(vertices, self.torn)


def clamped(values: Floats, limit: float, noise: float = NOISE) -> Floats:
    """Return values with those that exceed a limit by no more than a share of it set to it."""
    is_noise = (np.abs(values) > limit) & (np.abs(values) <= limit * (1 + noise))
    return np.where(is_noise, np.clip(values, -limit, limit), values) if is_noise.any() else values


def is_far(vertices: Floats, distance: float) -> Flags:
    """Tell which vertices have the next at more than a distance."""
    found = np.zeros(len(vertices), bool)
    if len(vertices) and max(np.ptp(column) for column in vertices.T) > distance / 2:
        found[:-1] = _length(np.diff(vertices, axis=0)) > distance
    return found


def has_longitudes(crs: CRS) -> bool:
    """Tell whether x is a longitude; that of a globe turned about another pole is none."""
    return bool(crs.is_geographic and not crs.is_derived)


def half_turn(crs: CRS) -> float:
    """Give half a turn in the units of a geographic CRS: 180 degrees, or 200 gons."""
    return round(math.pi / _unit(crs), 9)


def _unit(crs: CRS) -> float:
    """Give the unit of a CRS in metres or radians."""
    return float(crs.axis_info[0].unit_conversion_factor)


def _origin(projected: CRS) -> float:
    """Give the longitude in the middle of a map, in radians."""
    operation = projected.coordinate_operation
    named = [each for each in (operation.params if operation else []) if each.name.startswith("Longitude of ")]
    return float(named[0].value) * named[0].unit_conversion_factor if named else 0.0


def _length(steps: Floats) -> Floats:
    lengths: Floats = np.hypot(steps[:, 0], steps[:, 1])
    return lengths
