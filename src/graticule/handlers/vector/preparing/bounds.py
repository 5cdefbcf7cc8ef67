"""Boxes around features: west, south, east, north, in the units of a CRS. Needs neither GDAL nor numpy."""

Bounds = tuple[float, float, float, float]


def joined(*several: Bounds | None) -> Bounds | None:
    """Give the box around all of them; what has no place has none."""
    known = [each for each in several if each is not None]
    if not known:
        return None
    west, south, east, north = zip(*known, strict=True)
    return min(west), min(south), max(east), max(north)
