"""How long the processing of a file will probably take."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from graticule.repositories.assets import PastJob

ALIKE_FACTOR: Final = 4  # between files that count as about as large
MIN_ALIKE: Final = 3
MAX_ALIKE: Final = 20


def typical_seconds(past: Sequence[PastJob], source_bytes: int | None) -> float | None:
    """Return the median of the jobs whose files were nearest in size; of all, where too few were about as large.

    Nothing is extrapolated: a rate by the byte, measured at small files, is mostly their fixed cost.
    """
    alike = [] if source_bytes is None else _alike(past, source_bytes)
    chosen = alike if len(alike) >= MIN_ALIKE else [job.seconds for job in past]
    return median(chosen) if chosen else None


def _alike(past: Sequence[PastJob], source_bytes: int) -> list[float]:
    sized = [(_distance(job.source_bytes, source_bytes), job) for job in past if job.source_bytes is not None]
    near = sorted((each for each in sized if each[0] <= math.log(ALIKE_FACTOR)), key=lambda each: each[0])
    return [job.seconds for _, job in near[:MAX_ALIKE]]


def _distance(one: int, other: int) -> float:
    return abs(math.log((one + 1) / (other + 1)))
