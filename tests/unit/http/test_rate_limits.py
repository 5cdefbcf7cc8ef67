"""How often one caller may ask: over any minute, each for itself, and with a word on when to come back."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import time_machine

from graticule.core.errors import TooManyRequests
from graticule.core.ids import ClientId
from graticule.core.permissions import Caller
from graticule.http.rate_limits import RateLimits

ADA = Caller("ada", frozenset())
ADAS_KEY = Caller("ada", frozenset(), client_id=ClientId("ada"))
BEN = Caller("ben", frozenset())


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Stand in the middle of a minute."""
    with time_machine.travel(datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC), tick=False) as traveller:
        yield traveller


async def admitted(limits: RateLimits, caller: Caller, times: int) -> int:
    passed = 0
    for _ in range(times):
        try:
            await limits.count(caller)
        except TooManyRequests:
            continue
        passed += 1
    return passed


async def test_each_caller_has_its_own_minute(clock: time_machine.Traveller) -> None:
    limits = RateLimits(5)
    assert await admitted(limits, ADA, 8) == 5
    assert await admitted(limits, BEN, 8) == 5
    assert await admitted(limits, ADAS_KEY, 8) == 5, "a key is another caller than a person of the same name"


async def test_who_comes_back_when_told_is_let_in(clock: time_machine.Traveller) -> None:
    limits = RateLimits(5)
    assert await admitted(limits, ADA, 5) == 5
    for _ in range(20):
        with pytest.raises(TooManyRequests, match="5 requests in a minute") as refused:
            await limits.count(ADA)
        assert 1 <= refused.value.retry_after_seconds <= 60
        clock.shift(refused.value.retry_after_seconds)
        if await admitted(limits, ADA, 1):
            return
    pytest.fail("never let in again")


async def test_over_a_long_time_nobody_gets_more_than_the_limit(clock: time_machine.Traveller) -> None:
    limits = RateLimits(60)
    passed = 0
    for _ in range(600):  # ten minutes, two requests a second
        passed += await admitted(limits, ADA, 2)
        clock.shift(1)
    assert 550 <= passed <= 660


async def test_an_address_may_be_wrong_so_often(clock: time_machine.Traveller) -> None:
    limits = RateLimits(5, failures_per_minute=3)
    for _ in range(3):
        await limits.count_failure("192.0.2.1")
    with pytest.raises(TooManyRequests, match="wrong credential"):
        await limits.count_failure("192.0.2.1")
    await limits.count_failure("192.0.2.2")
    clock.shift(120)
    await limits.count_failure("192.0.2.1")


async def test_an_address_may_come_without_a_credential_so_often(clock: time_machine.Traveller) -> None:
    limits = RateLimits(5, failures_per_minute=1, nameless_per_minute=3)
    await limits.count_failure("192.0.2.1")
    for _ in range(3):
        await limits.count_nameless("192.0.2.1")
    with pytest.raises(TooManyRequests, match="without a credential") as refused:
        await limits.count_nameless("192.0.2.1")
    assert 1 <= refused.value.retry_after_seconds <= 60
    await limits.count_nameless("192.0.2.2")


async def test_who_holds_a_network_is_one_party(clock: time_machine.Traveller) -> None:
    limits = RateLimits(5, failures_per_minute=3)
    for number in range(3):
        await limits.count_failure(f"2001:db8:0:1::{number}")
    with pytest.raises(TooManyRequests):
        await limits.count_failure("2001:db8:0:1::ffff")
    await limits.count_failure("2001:db8:0:2::1")
    await limits.count_failure("not an address")
