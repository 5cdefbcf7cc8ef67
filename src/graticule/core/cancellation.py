"""Ending tasks for certain.

A cancellation can be lost: the database driver and its pool turn one that comes at the wrong moment into an
error or a result of their own (as `asyncio.wait_for` does before Python 3.12), and a task that handles errors
goes on. Whoever waits for the task's end then waits for ever, unless it asks again.
"""

import asyncio
from typing import Any, Final

ASK_AGAIN_SECONDS: Final = 0.2


async def end_tasks(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait until they have ended; what they raise is theirs."""
    while under_way := [task for task in tasks if not task.done()]:
        for task in under_way:
            task.cancel()
        await asyncio.wait(under_way, timeout=ASK_AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)
