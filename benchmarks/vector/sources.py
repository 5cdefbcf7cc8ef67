"""The source: a GeoPackage of polygons like buildings, with ten attributes of all common types.

Run as a process: writing takes memory that must not count for anyone.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio.raw
import shapely

from benchmarks.raster.tools import ROOT
from benchmarks.vector.size import CRS, LAYER

PART = 500_000  # features that are made and written at once
WEST, SOUTH, METRES = 300_000.0, 1_400_000.0, 400_000.0
KINDS = np.array(["house", "shed", "garage", "hall"], dtype=object)


def make_source(path: Path, features: int) -> None:
    """Write the source, if it is not there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-m", __name__, str(path), str(features))
    subprocess.run(command, cwd=ROOT, check=True)


def _write(path: Path, features: int) -> None:
    unfinished = path.with_suffix(".part.gpkg")
    unfinished.unlink(missing_ok=True)
    random = np.random.default_rng(7)
    for first in range(0, features, PART):
        count = min(PART, features - first)
        shapes = _polygons(random, count)
        fields = _fields(random, shapes, first)
        pyogrio.raw.write(
            unfinished,
            shapely.to_wkb(shapes),
            list(fields.values()),
            list(fields),
            driver="GPKG",
            layer=LAYER,
            geometry_type="Polygon",
            crs=CRS,
            append=first > 0,
        )
    unfinished.rename(path)


def _polygons(random: np.random.Generator, count: int) -> Any:
    """Draw uneven rings of 4 to 12 corners, none of which crosses itself."""
    corners = random.integers(4, 13, count)
    feature = np.repeat(np.arange(count), corners)
    place = np.arange(feature.size) - np.repeat(np.cumsum(corners) - corners, corners)
    angle = 2 * np.pi * place / corners[feature]
    reach = random.uniform(5, 40, count)[feature] * random.uniform(0.6, 1, feature.size)
    x = random.uniform(WEST, WEST + METRES, count)[feature] + reach * np.cos(angle)
    y = random.uniform(SOUTH, SOUTH + METRES, count)[feature] + reach * np.sin(angle)
    return shapely.polygons(shapely.linearrings(np.column_stack([x, y]), indices=feature))


def _fields(random: np.random.Generator, shapes: Any, first: int) -> dict[str, Any]:
    count = len(shapes)
    days = np.datetime64("1950-01-01") + random.integers(0, 27_000, count)
    moments = np.datetime64("2020-01-01T00:00:00", "ms") + random.integers(0, 10**11, count)
    return {
        "code": (first + np.arange(count, dtype=np.int64)) * 1_000_003,
        "name": _words(random, "Parcel", count),
        "owner": _words(random, "Owner number", count),
        "kind": random.choice(KINDS, count),
        "floors": random.integers(1, 9, count).astype(np.int32),
        "area": shapely.area(shapes),
        "height": random.uniform(2, 40, count),
        "listed": random.random(count) < 0.1,
        "built": days.astype("datetime64[D]"),
        "seen": moments,
    }


def _words(random: np.random.Generator, word: str, count: int) -> Any:
    return np.array([f"{word} {number}" for number in random.integers(0, 100_000, count)], dtype=object)


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]))
