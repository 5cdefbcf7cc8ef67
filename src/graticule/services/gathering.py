"""Work that comes at the same time is done together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from graticule.core.errors import Unavailable

T = TypeVar("T")
R = TypeVar("R")


class Gathering(Generic[T, R]):
    """Does what comes one by one in batches: the first at once, and then together what has come meanwhile.

    A batch that fails is done again one by one: each is told its own error, and none suffers from another's. Where
    nothing can be done now (`Unavailable`) all are told at once: one after the other, they would wait for minutes.
    """

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[Sequence[R]]], most: int) -> None:
        """Do work by `do`, which either does all that it is given or nothing; at most so many at once."""
        self._do = do
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._doing: asyncio.Task[None] | None = None

    async def add(self, work: T) -> R:
        """Do something, and give what came of it; it is done also when nobody waits for it any more."""
        came: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, came))
        if self._doing is None:
            # In a context of its own: it does the work of many, and belongs to none of their requests.
            self._doing = asyncio.create_task(self._do_all(), context=Context())
        return await came

    async def _do_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                if not await self._is_done(batch):
                    for each in batch:
                        await self._is_done([each])
        finally:
            self._doing = None

    async def _is_done(self, batch: Sequence[tuple[T, "asyncio.Future[R]"]]) -> bool:
        """Do a batch; False when it has to be done one by one."""
        try:
            results = await self._do([work for work, _ in batch])
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, Unavailable):
                return False
            for _, came in batch:
                _end(came, error)
            return True
        except BaseException:
            for _, came in batch:
                came.cancel()
            raise
        for (_, came), result in zip(batch, results, strict=True):
            if not came.done():
                came.set_result(result)
        return True


def _end(came: "asyncio.Future[R]", error: Exception) -> None:
    if not came.done():
        came.set_exception(error)
