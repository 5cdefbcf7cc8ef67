"""The parts of an application that its routes work with."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request


def part(name: str) -> Callable[[Request], Awaitable[Any]]:
    """Give a dependency: the part of the application that its state has under this name.

    It is a coroutine, as every dependency of ours: FastAPI runs a plain function in a thread, and handing over to it
    takes longer than most of them do.
    """

    async def of_the_application(request: Request) -> Any:
        return getattr(request.app.state, name)

    return of_the_application
