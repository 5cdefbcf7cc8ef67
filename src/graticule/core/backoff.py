"""How long to wait before something that is away is tried again."""

import random
from typing import Final

FIRST_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 1.0  # whoever was away is not kept waiting when it is back
SPREAD: Final = 0.2  # so that those who lost it at the same moment do not all come back at the same moment


class Backoff:
    """Pauses that grow from one try to the next, up to a bound, until one succeeds."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS

    def next(self) -> float:
        """Give the seconds to wait now."""
        seconds = self._seconds * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - no secret
        self._seconds = min(self._seconds * 2, LONGEST_SECONDS)
        return seconds

    def succeeded(self) -> None:
        """Begin with short pauses again."""
        self._seconds = FIRST_SECONDS
