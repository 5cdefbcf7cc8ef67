"""How often one caller may ask, and how often one address may be wrong or not say who it is."""

import math
import time
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from graticule.core.errors import TooManyRequests
from graticule.core.permissions import Caller

FAILURES_PER_MINUTE: Final = 60
NAMELESS_PER_MINUTE: Final = 600


class RateLimits:
    """Counts in the memory of this process, over a minute that slides."""

    def __init__(
        self,
        requests_per_minute: int,
        failures_per_minute: int = FAILURES_PER_MINUTE,
        nameless_per_minute: int = NAMELESS_PER_MINUTE,
    ) -> None:
        self._requests = RateLimitItemPerMinute(requests_per_minute, namespace="requests")
        self._failures = RateLimitItemPerMinute(failures_per_minute, namespace="failures")
        self._nameless = RateLimitItemPerMinute(nameless_per_minute, namespace="nameless")
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def count(self, caller: Caller) -> None:
        """Count a request, or raise `TooManyRequests`; one that is refused does not count."""
        kind = "name" if caller.client_id is None else "client"
        message = f"More than {self._requests.amount} requests in a minute."
        await self._hit(message, self._requests, kind, caller.name)

    async def count_failure(self, address: str) -> None:
        """Count a credential that was wrong, or raise `TooManyRequests`."""
        message = "Too many requests with a wrong credential came from this address."
        await self._hit(message, self._failures, party_of(address))

    async def count_nameless(self, address: str) -> None:
        """Count a request without a credential, or raise `TooManyRequests`."""
        message = "Too many requests without a credential came from this address."
        await self._hit(message, self._nameless, party_of(address))

    async def _hit(self, message: str, limit: RateLimitItemPerMinute, *key: str) -> None:
        if not await self._limiter.hit(limit, *key):
            window = await self._limiter.get_window_stats(limit, *key)
            raise TooManyRequests(message, retry_after_seconds=max(1, math.ceil(window.reset_time - time.time())))


def party_of(address: str) -> str:
    """Return what one party holds: an address, and of version 6 the network of a subscriber."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else address
