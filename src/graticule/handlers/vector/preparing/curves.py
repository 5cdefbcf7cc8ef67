"""Circular arcs as line segments.

Neither shapely nor pyogrio linearizes curves; the segments are those of GDAL's CONVERT_TO_LINEAR: equal ones of about
4 degrees, from the beginning of an arc to its end, of an odd number and at least seven.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEGREES: Final = 4.0  # of a segment
MAX_VERTICES: Final = 2_000_000  # of a geometry with curves: 32 MiB
_STEP: Final = math.radians(DEGREES)
_ARC_POINTS: Final = 3
_LEAST_STEPS: Final = 7
_STRAIGHT: Final = 1e-12  # of the squared length of an arc: its points lie on a line


class TooManyVertices(ValueError):
    """A curve that would have more vertices than a feature may have."""


def linearize(points: Floats) -> Floats:
    """Return the vertices of a circular string: each third of its points ends an arc, and begins the next."""
    if len(points) < _ARC_POINTS:
        return points
    with np.errstate(all="ignore"):  # what is not finite is straight
        return _linearize(points)


def _linearize(points: Floats) -> Floats:
    first, middle, last = points[:-2:2], points[1:-1:2], points[2::2]
    first = first[: len(last)]
    center, sweep = _circles(first[:, :2], middle[:, :2], last[:, :2])
    is_straight = sweep == 0
    steps = np.maximum(_LEAST_STEPS, np.floor(np.abs(sweep) / _STEP + 1e-9)).astype(np.int64) | 1
    steps[is_straight] = 2
    if steps.sum() >= MAX_VERTICES:
        raise TooManyVertices(f"Its curves have more than {MAX_VERTICES:,} vertices as lines.")
    arc = np.repeat(np.arange(len(steps)), steps)
    number = np.arange(len(arc)) - np.repeat(np.cumsum(steps) - steps, steps) + 1
    share = number / steps[arc]
    made = _interpolate(share, _share_of_middle(first, middle, center, sweep)[arc], first[arc], middle[arc], last[arc])
    is_curved = ~is_straight[arc]
    radius = first[:, :2] - center
    turned = (np.arctan2(radius[:, 1], radius[:, 0]))[arc] + sweep[arc] * share
    distance = np.hypot(radius[:, 0], radius[:, 1])[arc]
    on_circle = center[arc] + distance[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    made[is_curved, :2] = on_circle[is_curved]
    is_end = number == steps[arc]
    made[is_end] = last
    rest = points[1 + 2 * len(last) :]  # of a string with an even number of points
    return np.vstack([points[:1], made, rest])


def _circles(first: Floats, middle: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Return the centers of arcs, and how far they turn to the left in radians; 0 for those that are straight."""
    to_middle, to_last = middle - first, last - first
    doubled = 2 * (to_middle[:, 0] * to_last[:, 1] - to_middle[:, 1] * to_last[:, 0])
    squares = np.column_stack([(to_middle**2).sum(axis=1), (to_last**2).sum(axis=1)])
    is_circle = (to_last == 0).all(axis=1) & (squares[:, 0] > 0)
    x = (squares[:, 0] * to_last[:, 1] - squares[:, 1] * to_middle[:, 1]) / doubled
    y = (squares[:, 1] * to_middle[:, 0] - squares[:, 0] * to_last[:, 0]) / doubled
    offset = np.where(is_circle[:, None], to_middle / 2, np.column_stack([x, y]))
    begin, end = (np.arctan2(each[:, 1], each[:, 0]) for each in (-offset, to_last - offset))
    left = (end - begin) % (2 * math.pi)
    sweep = np.where(is_circle, 2 * math.pi, np.where(doubled > 0, left, left - 2 * math.pi))
    is_straight = ~is_circle & ~(np.abs(doubled) > _STRAIGHT * squares.sum(axis=1))
    is_straight |= ~np.isfinite(offset).all(axis=1) | ~np.isfinite(sweep)
    return first + np.where(is_straight[:, None], 0, offset), np.where(is_straight, 0.0, sweep)


def _share_of_middle(first: Floats, middle: Floats, center: Floats, sweep: Floats) -> Floats:
    """Return which share of each arc lies before its middle point."""
    begin, at = (np.arctan2(*(each[:, :2] - center).T[::-1]) for each in (first, middle))
    turned = np.where(sweep > 0, (at - begin) % (2 * math.pi), (begin - at) % (2 * math.pi))
    share = np.where(sweep == 0, 0.5, turned / np.abs(sweep))
    within: Floats = np.clip(np.nan_to_num(share, nan=0.5), 1e-9, 1 - 1e-9)
    return within


def _interpolate(share: Floats, of_middle: Floats, first: Floats, middle: Floats, last: Floats) -> Floats:
    """Return values between those of three points: heights and measures."""
    before = (share / of_middle)[:, None]
    after = ((share - of_middle) / (1 - of_middle))[:, None]
    values: Floats = np.where(before <= 1, first + (middle - first) * before, middle + (last - middle) * after)
    return values
