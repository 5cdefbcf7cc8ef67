"""Where layers lie, and when that is odd for their CRS."""

import numpy as np
import pytest
from pyproj import Transformer

from graticule.handlers.vector.extent import Box
from graticule.handlers.vector.sources.placing import locate

CANADA = (-141.0, 41.7, -52.6, 83.1)
FRANCE = (-5.1, 41.3, 9.6, 51.1)
CHILE = (-75.0, -40.0, -70.0, -30.0)
ANTARCTIC = (-180.0, -90.0, 180.0, -60.0)


def bounds_of(area: Box, crs: str) -> Box:
    """Return the bounds of an area in a CRS."""
    longitudes, latitudes = np.meshgrid(np.linspace(area[0], area[2], 50), np.linspace(area[1], area[3], 50))
    x, y = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(longitudes.ravel(), latitudes.ravel())
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


@pytest.mark.parametrize(
    ("crs", "area", "is_outside"),
    [
        ("EPSG:3978", CANADA, False),
        ("EPSG:3347", CANADA, False),
        ("EPSG:3979", CANADA, False),
        ("EPSG:3031", ANTARCTIC, False),
        ("EPSG:2154", FRANCE, False),
        ("EPSG:25832", (5.0, 0.0, 6.0, 1.0), True),
        ("EPSG:2154", (-110.0, 50.0, -109.0, 51.0), True),
        ("EPSG:3978", CHILE, True),
        ("EPSG:2193", FRANCE, True),
        ("EPSG:2193", (170.0, -45.0, 185.0, -35.0), False),
        ("EPSG:3832", (175.0, -10.0, 176.0, -5.0), False),
    ],
)
def test_a_layer_is_outside_only_if_it_does_not_meet_the_area_of_its_crs(crs: str, area: Box, is_outside: bool) -> None:
    location = locate(crs, bounds_of(area, crs))
    assert location is not None
    assert (location.is_outside, location.is_swapped) == (is_outside, False)


def test_axes_are_swapped_only_where_that_puts_all_of_a_layer_into_the_area() -> None:
    west, south, east, north = bounds_of((2.0, 45.0, 3.0, 46.0), "EPSG:2154")
    swapped = locate("EPSG:2154", (south, west, north, east))
    assert swapped is not None
    assert swapped.is_swapped
