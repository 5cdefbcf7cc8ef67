"""How much of everything is run."""

from dataclasses import dataclass
from enum import StrEnum


class ServingPart(StrEnum):
    """What can be chosen on the command line."""

    TILES = "serving-tiles"
    FEATURES = "serving-features"


@dataclass(frozen=True)
class ServingSize:
    """The data, and what is asked of them."""

    side: int = 8192  # pixels of the source of the COG
    features: int = 100_000
    addresses: int = 300  # that differ
    requests: int = 2000  # of a round
    light_requests: int = 8000  # of a round in which nothing has to be made
    connections: int = 16
