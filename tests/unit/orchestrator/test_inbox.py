"""The inbox: reasons are gathered, and a job is in one hand at a time."""

import asyncio

import pytest

from graticule.core.ids import JobId
from graticule.dag.state import Resumed
from graticule.orchestrator.inbox import Inbox
from graticule.services.step_reading import Wake

A, B, C = JobId("a"), JobId("b"), JobId("c")


async def is_empty(inbox: Inbox) -> bool:
    """Tell whether nothing can be taken now."""
    try:
        async with asyncio.timeout(0.02):
            await inbox.take(1)
    except TimeoutError:
        return True
    return False


async def test_jobs_are_given_in_the_order_in_which_they_came_and_at_most_so_many() -> None:
    inbox = Inbox()
    for job_id in (B, A, C):
        inbox.add(job_id)
    assert list(await inbox.take(2)) == [B, A]
    assert list(await inbox.take(2)) == [C]
    assert await is_empty(inbox)


async def test_reasons_for_one_job_are_merged() -> None:
    inbox = Inbox()
    inbox.add(A, Wake(due={"x"}))
    inbox.add(A)
    inbox.add(A, Wake(due={"y"}, expired={"z": False}))
    inbox.add(A, Wake(expired={"z": True}, resumed=Resumed("n")))
    inbox.add(A, Wake())
    assert await inbox.take(10) == {A: Wake(due={"x", "y"}, expired={"z": True}, resumed=Resumed("n"))}


async def test_what_was_handed_in_is_not_changed() -> None:
    inbox, given = Inbox(), Wake(due={"x"})
    inbox.add(A, given)
    inbox.add(A, Wake(due={"y"}))
    assert given == Wake(due={"x"})


async def test_a_job_that_is_looked_at_waits_until_it_is_released() -> None:
    inbox = Inbox()
    inbox.add(A)
    await inbox.take(1)
    inbox.add(A, Wake(due={"later"}))
    inbox.add(B)
    assert list(await inbox.take(10)) == [B]
    assert await is_empty(inbox)
    inbox.release({A, B})
    assert await inbox.take(10) == {A: Wake(due={"later"})}


@pytest.mark.parametrize("how", ["add", "release"])
async def test_one_who_waits_is_woken(how: str) -> None:
    inbox = Inbox()
    if how == "release":
        inbox.add(A)
        await inbox.take(1)
        inbox.add(A)
    waiting = asyncio.create_task(inbox.take(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    if how == "release":
        inbox.release({A})
    else:
        inbox.add(A)
    assert list(await asyncio.wait_for(waiting, 1)) == [A]


async def test_of_two_that_wait_each_job_goes_to_one() -> None:
    inbox = Inbox()
    waiting = [asyncio.create_task(inbox.take(1)) for _ in range(2)]
    await asyncio.sleep(0)
    inbox.add(A)
    inbox.add(B)
    taken = await asyncio.wait_for(asyncio.gather(*waiting), 1)
    assert sorted(job_id for each in taken for job_id in each) == [A, B]


async def test_one_that_stopped_waiting_takes_nothing() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.take(1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    inbox.add(A)
    assert list(await asyncio.wait_for(inbox.take(1), 1)) == [A]
