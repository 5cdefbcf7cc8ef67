"""How long processing will take: what files of about the same size took, and nothing extrapolated."""

import pytest

from graticule.repositories.assets import PastJob
from graticule.services.estimates import typical_seconds

SMALL = [PastJob(seconds, 10_000) for seconds in (4.0, 5.0, 6.0)]
LARGE = [PastJob(seconds, 10**10) for seconds in (3000.0, 4000.0, 5000.0)]


@pytest.mark.parametrize(
    ("past", "source_bytes", "seconds"),
    [
        ([], 10, None),
        ([PastJob(7)], 10, 7),
        ([*SMALL, *LARGE], None, 1503),
        ([*SMALL, *LARGE], 20_000, 5),
        ([*SMALL, *LARGE], 3 * 10**10, 4000),
        ([*SMALL, *LARGE], 10**12, 1503),
        ([*SMALL, *LARGE[:2]], 10**10, 6),
        ([PastJob(1, 0), PastJob(2, 0), PastJob(3, 2)], 0, 2),
        ([*(PastJob(1, 10_000) for _ in range(20)), *(PastJob(9, 30_000) for _ in range(40))], 10_000, 1),
    ],
)
def test_it_is_the_median_of_the_nearest_in_size(
    past: list[PastJob], source_bytes: int | None, seconds: float | None
) -> None:
    assert typical_seconds(past, source_bytes) == seconds
