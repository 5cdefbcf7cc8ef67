"""Never more at once than there are places, and nobody waits for ever."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from graticule.core.errors import TooSlow, Unavailable
from graticule.serve.limits import WAITING_FOR_EACH, Bounded, Capacity

SCOPE: Scope = {"type": "http", "method": "GET", "path": "/"}


class Worker:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.at_work = 0
        self.most_at_work = 0
        self.stubborn = False

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        self.begun.set()
        try:
            await (self._thread() if self.stubborn else self.go.wait())
            await send({"type": "http.response.start", "status": 200, "headers": []})
        finally:
            self.at_work -= 1

    async def _thread(self) -> None:
        """Go on when cancelled, as a thread does."""
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                continue


async def receive() -> Message:
    return {"type": "http.request"}


class Sent(list[Message]):
    async def __call__(self, message: Message) -> None:
        self.append(message)


async def test_no_more_are_worked_on_than_there_are_places() -> None:
    worker = Worker()
    bounded = Bounded(worker, Capacity(2), 30)
    asked = [asyncio.create_task(bounded(SCOPE, receive, Sent())) for _ in range(10)]
    await worker.begun.wait()
    await asyncio.sleep(0)
    worker.go.set()
    await asyncio.gather(*asked)
    assert worker.most_at_work == 2


async def test_when_too_many_wait_the_next_is_refused_at_once() -> None:
    worker = Worker()
    bounded = Bounded(worker, Capacity(1), 30)
    asked = [asyncio.create_task(bounded(SCOPE, receive, Sent())) for _ in range(1 + WAITING_FOR_EACH)]
    await worker.begun.wait()
    with pytest.raises(Unavailable):
        await bounded(SCOPE, receive, Sent())
    worker.go.set()
    await asyncio.gather(*asked)
    await bounded(SCOPE, receive, Sent())


async def test_work_that_takes_too_long_is_given_up_and_its_place_is_free_when_it_has_ended() -> None:
    worker = Worker()
    worker.stubborn = True
    capacity, sent = Capacity(1), Sent()
    with pytest.raises(TooSlow):
        await Bounded(worker, capacity, 0.01)(SCOPE, receive, sent)
    assert worker.at_work == 1
    with pytest.raises(TooSlow):  # it is still at work, and nobody else can be
        await Bounded(worker, capacity, 0.01)(SCOPE, receive, Sent())
    assert worker.most_at_work == 1
    worker.go.set()
    await Bounded(worker, capacity, 30)(SCOPE, receive, Sent())
    assert sent == []  # nobody listens to it any more


async def test_an_error_of_the_work_is_raised_and_leaves_no_place_taken() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ValueError("broken")

    bounded = Bounded(broken, Capacity(1), 30)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            await bounded(SCOPE, receive, Sent())


class Sender:
    """An application that sends parts of an answer at a pace."""

    def __init__(self, parts: int, pause: float, size: int = 16 * 1024) -> None:
        self._parts, self._pause, self._size = parts, pause, size

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(self._parts):
            await asyncio.sleep(self._pause)
            await send({"type": "http.response.body", "body": b"x" * self._size, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def test_an_answer_in_parts_may_take_longer_as_long_as_it_goes_on() -> None:
    sent, capacity = Sent(), Capacity(1)
    await Bounded(Sender(parts=10, pause=0.05), capacity, 0.25)(SCOPE, receive, sent)
    assert len(sent) == 12
    stuck = Sent()
    with pytest.raises(TooSlow):
        await Bounded(Sender(parts=2, pause=0.6), capacity, 0.25)(SCOPE, receive, stuck)
    assert len(stuck) == 1
    slow = Sent()
    with pytest.raises(TooSlow):
        await Bounded(Sender(parts=1000, pause=0.05, size=10), capacity, 0.25)(SCOPE, receive, slow)
    assert 1 < len(slow) < 20
