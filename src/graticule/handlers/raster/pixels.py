"""Pixels on their way from a source to a COG, and what is counted of them in passing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PixelArray = NDArray[Any]
Validity = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of pixels: where it begins, and how large it is."""

    column: int
    row: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Pixels:
    """The pixels of a box: `data` is (bands, rows, columns); `valid` is (rows, columns), None when all are valid.

    Where a pixel is not valid, `data` holds the nodata value, or 0 when there is none.
    """

    data: PixelArray
    valid: Validity | None = None


class PixelSource(Protocol):
    """Gives the pixels of any box of an output grid. One thread uses it at a time."""

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box that lies inside the grid."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A source seen from a tile: the tile's column and row 0 lie at (column, row) of the source."""

    source: PixelSource
    column: int
    row: int

    def read(self, box: Box) -> Pixels:
        """Give the pixels of a box of the tile."""
        return self.source.read(Box(box.column + self.column, box.row + self.row, box.width, box.height))


PixelSources = Sequence[PixelSource]
