"""Alarms: each node at its time, once."""

import asyncio
from datetime import UTC, datetime, timedelta

from graticule.core.ids import JobId
from graticule.orchestrator.alarms import Alarm, Alarms

JOB = JobId("job")


def now() -> datetime:
    return datetime.now(UTC)


def alarm(seconds: float, node_id: str = "node") -> Alarm:
    return now() + timedelta(seconds=seconds), JOB, node_id


async def due(alarms: Alarms, within: float = 2) -> list[str]:
    """Name the nodes that are due next."""
    async with asyncio.timeout(within):
        return [node_id for _, _, node_id in await alarms.due()]


async def is_silent(alarms: Alarms) -> bool:
    try:
        await due(alarms, 0.05)
    except TimeoutError:
        return True
    return False


async def test_all_that_is_due_is_given_in_the_order_of_its_time() -> None:
    alarms = Alarms(now)
    alarms.add([alarm(-1, "b"), alarm(-2, "a"), alarm(100, "later")])
    assert await due(alarms) == ["a", "b"]
    assert await is_silent(alarms)


async def test_a_node_is_given_at_its_time_and_not_before() -> None:
    alarms, wanted = Alarms(now), alarm(0.1)
    alarms.add([wanted])
    assert await due(alarms) == ["node"]
    assert datetime.now(UTC) >= wanted[0]


async def test_a_node_that_is_announced_twice_is_given_once() -> None:
    alarms, wanted = Alarms(now), alarm(0.05)
    alarms.add([wanted, wanted])
    alarms.add([wanted])
    assert await due(alarms) == ["node"]
    assert await is_silent(alarms)


async def test_a_node_can_be_announced_again_once_it_was_given() -> None:
    alarms, wanted = Alarms(now), alarm(-1)
    for _ in range(2):
        alarms.add([wanted])
        assert await due(alarms) == ["node"]


async def test_an_earlier_alarm_shortens_the_wait() -> None:
    alarms = Alarms(now)
    alarms.add([alarm(1000, "late")])
    waiting = asyncio.create_task(alarms.due())
    await asyncio.sleep(0.01)
    alarms.add([alarm(0, "early")])
    async with asyncio.timeout(2):
        assert [node_id for _, _, node_id in await waiting] == ["early"]


async def test_without_an_alarm_it_waits_for_one() -> None:
    alarms = Alarms(now)
    waiting = asyncio.create_task(alarms.due())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    alarms.add([alarm(-1)])
    async with asyncio.timeout(2):
        assert len(await waiting) == 1


async def test_a_later_alarm_does_not_lengthen_the_wait() -> None:
    alarms = Alarms(now)
    alarms.add([alarm(0.1, "early")])
    waiting = asyncio.create_task(alarms.due())
    await asyncio.sleep(0.01)
    alarms.add([alarm(1000, "late")])
    async with asyncio.timeout(2):
        assert [node_id for _, _, node_id in await waiting] == ["early"]
