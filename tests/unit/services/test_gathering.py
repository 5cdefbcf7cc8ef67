"""Work that comes at the same time is done together, and nothing of one is felt by another."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from graticule.core.errors import Unavailable
from graticule.services.gathering import Gathering

REQUEST: ContextVar[str] = ContextVar("REQUEST", default="nobody's")


class Work:
    """Counts what it is given, and waits in its first batch until it may go on."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.seen: list[str] = []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def do(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append([*numbers])
        self.seen.append(REQUEST.get())
        self.begun.set()
        await self.go_on.wait()
        if 0 in numbers:
            raise Unavailable("The database is away.")
        if bad := [number for number in numbers if number < 0]:
            raise ValueError(f"{bad[0]} cannot be done")
        return [number * 10 for number in numbers]


async def test_the_first_goes_at_once_and_then_together_what_came_meanwhile() -> None:
    work = Work()
    gathering = Gathering(work.do, most=3)
    first = asyncio.create_task(gathering.add(1))
    await work.begun.wait()
    others = [asyncio.create_task(gathering.add(number)) for number in (2, 3, 4, 5)]
    await asyncio.sleep(0)
    work.go_on.set()
    assert await asyncio.gather(first, *others) == [10, 20, 30, 40, 50]
    assert work.batches == [[1], [2, 3, 4], [5]]
    assert await gathering.add(6) == 60


async def test_each_is_told_its_own_error() -> None:
    work = Work()
    gathering = Gathering(work.do, most=10)
    first = asyncio.create_task(gathering.add(1))
    await work.begun.wait()
    others = [asyncio.create_task(gathering.add(number)) for number in (2, -3, 4)]
    await asyncio.sleep(0)
    work.go_on.set()
    came = await asyncio.gather(first, *others, return_exceptions=True)
    assert [came[0], came[1], came[3]] == [10, 20, 40]
    with pytest.raises(ValueError, match="-3 cannot be done"):
        await others[1]
    assert work.batches == [[1], [2, -3, 4], [2], [-3], [4]]


async def test_what_has_no_place_to_be_done_is_not_tried_one_by_one() -> None:
    work = Work()
    gathering = Gathering(work.do, most=10)
    first = asyncio.create_task(gathering.add(1))
    await work.begun.wait()
    others = [asyncio.create_task(gathering.add(number)) for number in (2, 0, 4)]
    await asyncio.sleep(0)
    work.go_on.set()
    came = await asyncio.gather(first, *others, return_exceptions=True)
    assert [type(each) for each in came] == [int, Unavailable, Unavailable, Unavailable]
    assert work.batches == [[1], [2, 0, 4]]


async def test_work_is_done_also_when_nobody_waits_for_it_any_more() -> None:
    work = Work()
    gathering = Gathering(work.do, most=10)
    first = asyncio.create_task(gathering.add(1))
    await work.begun.wait()
    left, waits = asyncio.create_task(gathering.add(2)), asyncio.create_task(gathering.add(3))
    await asyncio.sleep(0)
    left.cancel()
    first.cancel()
    work.go_on.set()
    assert await waits == 30
    assert work.batches == [[1], [2, 3]]


async def test_it_belongs_to_none_of_the_requests() -> None:
    work = Work()
    work.go_on.set()
    REQUEST.set("one")
    await Gathering(work.do, most=10).add(1)
    assert work.seen == ["nobody's"]
