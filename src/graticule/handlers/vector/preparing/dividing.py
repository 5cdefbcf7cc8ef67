"""Geometries across the antimeridian: put together, and divided there, as RFC 7946 has it."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import shapely

from graticule.handlers.vector.preparing.reprojecting import BEYOND_POLE, NOISE
from graticule.handlers.vector.preparing.wkb import (
    COLLECTION,
    POLYGON,
    Flags,
    Floats,
    Geometry,
    Integers,
    Runs,
    Writer,
    of_shapely,
    several_of,
)

_FARTHEST: Final = 3  # half turns: longitudes from 0 to 360 are usual, and what goes across their end
_SIDES: Final = (-1, 0, 1)


class Divider:
    """Divides geometries at the antimeridian of a geographic CRS, in whose units half a turn is `half`."""

    def __init__(self, half: float) -> None:
        self._half, self._turn, self._pole = half, 2 * half, half / 2

    def has(self, x: Floats, y: Floats) -> Flags:
        """Tell which places are on the globe, however its longitudes are counted."""
        return (np.abs(y) <= self._pole * (1 + BEYOND_POLE)) & (np.abs(x) <= self._half * _FARTHEST)

    def is_beyond(self, x: Floats) -> Flags:
        """Tell which longitudes are beyond the antimeridian."""
        return np.abs(x) > self._half * (1 + NOISE)

    def brought(self, x: Floats, runs: Runs) -> Floats:
        """Move what is wholly beyond the antimeridian onto the globe; a geometry of which a part is not stays."""
        begins = np.cumsum(runs.counts) - runs.counts
        first, last = self._turns(np.minimum.reduceat(x, begins), np.maximum.reduceat(x, begins))
        is_on_both_sides = np.isin(runs.features, runs.features[first < last])
        moved: Floats = x - np.repeat(np.where(is_on_both_sides, 0, first * self._turn), runs.counts)
        return moved

    def _turns(self, west: Any, east: Any) -> tuple[Any, Any]:
        """Give how many turns away the maps are on which something begins and ends."""
        noise = self._half * NOISE
        first = np.floor((west + self._half + noise) / self._turn)
        first = np.where(self.is_beyond(west) | self.is_beyond(east), first, 0)
        return first, np.maximum(first, np.ceil((east + self._half - noise) / self._turn) - 1)

    def is_wide(self, x: Floats) -> bool:
        """Tell whether longitudes are so far apart, or so far off, that something may go across."""
        return len(x) > 0 and bool(np.ptp(x) > self._half or self.is_beyond(x).any())

    def is_jump(self, x: Floats) -> Flags:
        """Tell which longitudes are followed by one on the other side of the map."""
        jumps = np.zeros(len(x), bool)
        jumps[:-1] = np.abs(np.diff(x)) > self._half
        return jumps

    def turned(self, vertices: Integers, way: list[Floats], runs: Runs) -> Floats:
        """Give by how much all longitudes lie behind those from which their edges come.

        To some vertices the way is known, of places from the vertex before: each step of it goes the short way round.
        To all others the edge itself does.
        """
        longitudes = np.array(way)
        direct = longitudes[-1] - longitudes[0]
        led = self._short(np.diff(longitudes, axis=0)).sum(axis=0)
        led = np.where(np.isfinite(led), led, self._short(direct))
        turns = np.zeros(int(runs.counts.sum()))
        turns[vertices] = np.round((direct - led) / self._turn)  # whole ones, so that a ring stays closed
        turns = np.cumsum(turns)
        begins = np.cumsum(runs.counts) - runs.counts
        behind: Floats = (turns - np.repeat(turns[begins], runs.counts)) * self._turn
        return behind

    def _short(self, steps: Floats) -> Floats:
        """Give the short way round of each step."""
        short: Floats = steps - self._turn * np.round(steps / self._turn)
        return short

    def enclosed(self, geometry: Geometry) -> Geometry:
        """Give the areas of rings that go on beyond the antimeridian, each on its own way round the globe."""
        if geometry.kind > POLYGON:
            made = [self.enclosed(member) for member in geometry.members]
            singles = made if geometry.kind == COLLECTION else [single for each in made for single in _singles(each)]
            return replace(geometry, members=singles)
        return self._enclosed_polygon(geometry) if geometry.kind == POLYGON else geometry

    def divided(self, geometry: Geometry) -> tuple[Geometry, bool]:
        """Bring a valid geometry onto the globe, and tell whether it had to be divided for that."""
        if geometry.kind == COLLECTION:
            members = [self.divided(member) for member in geometry.members]
            return replace(geometry, members=[member for member, _ in members]), any(cut for _, cut in members)
        pieces = [self._pieces(part) for part in _singles(geometry)]
        several = [piece for each in pieces for piece in each]
        if geometry.kind <= POLYGON and len(several) == 1:
            return several[0], False
        made = replace(geometry, kind=several_of(geometry.kind), rings=[], members=several)
        return _merged(made), any(len(each) > 1 for each in pieces)

    def _enclosed_polygon(self, polygon: Geometry) -> Geometry:
        shell, *holes = (self._area(ring, polygon) for ring in polygon.rings)
        if not holes:
            return shell
        area, left_out = shapely_of(shell), [shapely_of(copy) for hole in holes for copy in self._copies(hole, shell)]
        return of_shapely(shapely.difference(area, shapely.union_all(left_out)), polygon)

    def _area(self, vertices: Floats, polygon: Geometry) -> Geometry:
        """Give what a ring encloses. One around a pole does not close on the map: it goes along the map's edge."""
        if abs(vertices[-1, 0] - vertices[0, 0]) > self._half:
            edge = vertices[[-1, 0]]
            edge[:, 1] = np.copysign(self._pole, vertices[:, 1].mean())
            vertices = np.vstack([vertices, edge, vertices[:1]])
        return replace(polygon, rings=[vertices])

    def _copies(self, hole: Geometry, shell: Geometry) -> list[Geometry]:
        """Give a hole where its shell is: it may be whole turns away, or go across the shell's own edge."""
        middles = [ring[:, 0].min() + ring[:, 0].max() for ring in (hole.rings[0], shell.rings[0])]
        turns = round((middles[1] - middles[0]) / 2 / self._turn)
        return [self._moved(hole, turns + side) for side in _SIDES]

    def _pieces(self, part: Geometry) -> list[Geometry]:
        x = part.rings[0][:, 0]
        first, last = map(int, self._turns(x.min(), x.max()))
        if first == last:
            return [self._moved(part, -first)]
        whole = shapely_of(part)
        return [piece for turns in range(first, last + 1) for piece in self._cut(part, whole, turns)]

    def _cut(self, part: Geometry, whole: Any, turns: int) -> list[Geometry]:
        """Give what is on the map that is some turns away, moved onto ours."""
        begin = turns * self._turn - self._half
        window = shapely.box(begin, -self._half, begin + self._turn, self._half)
        cut = of_shapely(shapely.intersection(whole, window), part)
        return [self._moved(piece, -turns) for piece in of_kind(cut, part.kind)]

    def _moved(self, geometry: Geometry, turns: int) -> Geometry:
        rings = [ring + np.array([turns * self._turn, *[0] * (ring.shape[1] - 1)]) for ring in geometry.rings]
        return replace(geometry, rings=rings, members=[self._moved(member, turns) for member in geometry.members])


def shapely_of(geometry: Geometry) -> Any:
    """Give a geometry as shapely has it."""
    written = Writer(has_z=geometry.has_z, has_m=geometry.has_m).written(geometry)
    made = shapely.from_wkb(written)
    return made if shapely.is_valid(made) else shapely.make_valid(made, method="structure", keep_collapsed=False)


def of_kind(geometry: Geometry, kind: int) -> list[Geometry]:
    """Give the single parts of a type, at any depth."""
    return [part for part in _singles(geometry) if part.kind == kind]


def _singles(geometry: Geometry) -> list[Geometry]:
    if geometry.kind <= POLYGON:
        return [geometry] if geometry.rings and len(geometry.rings[0]) else []
    return [single for member in geometry.members for single in _singles(member)]


def _merged(geometry: Geometry) -> Geometry:
    """Put pieces together that meet on the other side of the globe, as those around a pole do."""
    if geometry.kind != several_of(POLYGON) or len(geometry.members) <= 1:
        return geometry
    pieces = [shapely_of(member) for member in geometry.members]
    is_apart = shapely.is_valid(shapely.multipolygons(pieces))
    return geometry if is_apart else of_shapely(shapely.union_all(pieces), geometry)
