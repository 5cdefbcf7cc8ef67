"""Which coordinate comes first in a CRS, by PROJ's own results."""

import math

import pytest
from pyproj import CRS, Transformer

from graticule.serve.features.crs import is_north_first


@pytest.mark.parametrize(
    "code", [4326, 4258, 3035, 31468, 32661, 2193, 3067, 5041, 3857, 2056, 32632, 3031, 3995, 2053]
)
def test_the_order_is_that_of_proj(code: int) -> None:
    assert is_north_first(code) is _is_swapped(code)


def _is_swapped(code: int) -> bool:
    """Tell whether coordinates come the other way round than for a map."""
    crs = CRS.from_epsg(code)
    area = crs.area_of_use
    assert area is not None
    west, east = area.west, area.east + (360 if area.east < area.west else 0)
    place = ((west + east) / 2 + 0.013 + 180) % 360 - 180, (area.south + area.north) / 2 - 0.017
    x, y = Transformer.from_crs("OGC:CRS84", crs, always_xy=True).transform(*place)
    first, second = Transformer.from_crs("OGC:CRS84", crs).transform(*place)
    assert math.isfinite(x)
    assert math.isfinite(y)
    return bool((first, second) == (y, x))
