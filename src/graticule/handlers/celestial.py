"""Which celestial body a CRS belongs to. Imports PROJ."""

import re
from typing import Final

from pyproj import CRS
from pyproj.database import query_crs_info

_EARTH_RADII: Final = (6.2e6, 6.5e6)  # metres; the radius of Venus is 6.05e6
_SMALLEST_RADIUS: Final = 1000.0  # a sphere of one metre is no body, but one without a size
_AUTHORITY: Final = "IAU_2015"


def other_body(crs: CRS) -> str | None:
    """Return the name of the celestial body of a CRS, or None if it is the Earth."""
    if crs.ellipsoid is None:
        return None
    radius = crs.ellipsoid.semi_major_metre
    if radius < _SMALLEST_RADIUS or _EARTH_RADII[0] <= radius <= _EARTH_RADII[1]:
        return None
    named = f"{crs.name} {crs.datum.name if crs.datum else ''} {crs.ellipsoid.name}".casefold()
    words = set(re.findall("[a-z]+", named))
    known = {info.name.split()[0] for info in query_crs_info(_AUTHORITY)}
    found = sorted(body for body in known if body.casefold() in words)
    return found[0] if found else f"another celestial body (radius {radius / 1000:,.0f} km)"
