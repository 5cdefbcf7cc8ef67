"""Tasks are ended for certain, also those that lose a cancellation."""

import asyncio

from graticule.core.cancellation import end_tasks


async def stubborn(times: int, begun: asyncio.Event) -> str:
    """Lose some cancellations, as code does that takes them for an error."""
    while True:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            times -= 1
            if times < 0:
                raise


async def test_a_task_that_loses_cancellations_is_ended_all_the_same() -> None:
    begun = [asyncio.Event() for _ in range(3)]
    tasks = [asyncio.create_task(stubborn(times, event)) for times, event in enumerate(begun)]
    for event in begun:
        await event.wait()
    async with asyncio.timeout(10):
        await end_tasks(*tasks)
    assert all(task.cancelled() for task in tasks)


async def test_tasks_that_have_ended_already_or_fail_are_no_trouble() -> None:
    async def failing() -> None:
        raise ValueError("its own business")

    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    await end_tasks(done, asyncio.create_task(failing()))
    await end_tasks()
