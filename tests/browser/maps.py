"""What a picture of a map page shows where: the page fits the bounds of its data into the window."""

import math

import imagecodecs
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]  # rows, columns, and red, green, blue
Box = tuple[float, float, float, float]
Colour = tuple[int, int, int]

PADDING = 24  # of map.js

# Of map.js too; what is filled lets the background shine through.
LIGHT_BACKGROUND: Colour = (0xEC, 0xEF, 0xF1)
DARK_BACKGROUND: Colour = (0x14, 0x18, 0x1B)
FILL: Colour = (0x1F, 0x6F, 0xB2)
FILL_OPACITY = 0.45


def decoded(png: bytes) -> Picture:
    return np.asarray(imagecodecs.png_decode(png))[:, :, :3]


def filled(background: Colour = LIGHT_BACKGROUND, colour: Colour = FILL, opacity: float = FILL_OPACITY) -> Colour:
    """The colour of a polygon's area on the background."""
    red, green, blue = (
        round(over * opacity + under * (1 - opacity)) for over, under in zip(colour, background, strict=True)
    )
    return red, green, blue


def colour_at(picture: Picture, longitude: float, latitude: float, bounds: Box) -> Colour:
    """The colour at a place on a map that fits `bounds`."""
    height, width, _ = picture.shape
    column, row = spot(longitude, latitude, bounds, (width, height))
    red, green, blue = picture[int(row), int(column)].tolist()
    return red, green, blue


def spot(longitude: float, latitude: float, bounds: Box, size: tuple[int, int]) -> tuple[float, float]:
    """Where a place is in a window that fits `bounds`; east of the antimeridian, longitudes go on beyond 180."""
    width, height = size
    west, north = _mercator(bounds[0], bounds[3])
    east, south = _mercator(bounds[2], bounds[1])
    scale = min((width - 2 * PADDING) / (east - west), (height - 2 * PADDING) / (south - north))
    x, y = _mercator(longitude, latitude)
    return width / 2 + (x - (west + east) / 2) * scale, height / 2 + (y - (north + south) / 2) * scale


def is_near(colour: Colour, other: Colour, tolerance: int = 4) -> bool:
    """Whether two colours are the same but for rounding."""
    return all(abs(one - two) <= tolerance for one, two in zip(colour, other, strict=True))


def _mercator(longitude: float, latitude: float) -> tuple[float, float]:
    """A place in the world as a square of side 1, from the north-west."""
    sine = math.sin(math.radians(latitude))
    return longitude / 360 + 0.5, 0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi)
