"""How much of everything is run."""

from dataclasses import dataclass
from enum import StrEnum

CORES = 2
WORKERS = 2
CRS = "EPSG:32620"
TARGET = "EPSG:4326"
LAYER = "parcels"
SCHEMA = "geo"


class VectorPart(StrEnum):
    """What can be chosen on the command line."""

    LOAD = "vector-load"
    SCALE = "vector-scale"


@dataclass(frozen=True)
class VectorSize:
    """How many polygons are loaded; for the scale, so many times more."""

    features: int = 1_000_000
    times: int = 10

    @property
    def name(self) -> str:
        """Say in words what the source is."""
        return f"{self.features:,} polygons, 10 attributes"
