"""When a call is sent again, and after which pause. Both clients ask here, and only do the waiting."""

from typing import Any, Final

import httpx

from graticule.client.call import Call
from graticule.client.problems import retry_after
from graticule.core.backoff import Backoff

DEFAULT_REPEATS: Final = 3
LONGEST_PAUSE_SECONDS: Final = 10.0
BUSY: Final = frozenset({429, 503})
# The request may never have arrived, or its answer was lost. A server that is slow is not asked twice.
LOST: Final = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)

Outcome = httpx.Response | httpx.TransportError


class Repeats:
    """Counts how often a call was sent again."""

    def __init__(self, call: Call[Any], most: int) -> None:
        self._left = most if call.repeatable else 0
        self._backoff = Backoff()

    def pause_after(self, outcome: Outcome) -> float | None:
        """Give the seconds to wait before the call is sent again; None when the outcome stands."""
        if self._left == 0 or not _passes(outcome):
            return None
        self._left -= 1
        wanted = retry_after(outcome) if isinstance(outcome, httpx.Response) else None
        if wanted is None:
            return self._backoff.next()
        return wanted if wanted <= LONGEST_PAUSE_SECONDS else None


def _passes(outcome: Outcome) -> bool:
    """Tell whether the same call may succeed in a moment."""
    if isinstance(outcome, httpx.Response):
        return outcome.status_code in BUSY
    return isinstance(outcome, LOST)
