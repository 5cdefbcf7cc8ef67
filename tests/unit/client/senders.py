"""Both clients behind one face: what holds for the one has to hold for the other."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import httpx

from graticule.client import AsyncClient, Call, Client, Page

T = TypeVar("T")
ADDRESS = "http://127.0.0.1:1"
Answer = httpx.Response | Exception


@dataclass
class Wire:
    """Answers in turn, the last one for ever, and remembers what it was asked."""

    answers: list[Answer]
    asked: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers.raw, content=answer.content)  # one for each

    @property
    def headers(self) -> httpx.Headers:
        """Give those of the last request."""
        return self.asked[-1].headers


@dataclass(frozen=True)
class Sender:
    """A way to send calls."""

    name: str
    send: Callable[..., Any]
    first: Callable[..., list[Any]]
    follow: Callable[..., list[Any]]


def _waiting(wire: Wire, **options: Any) -> Client:
    return Client(ADDRESS, transport=httpx.MockTransport(wire), **options)


def _concurrent(wire: Wire, **options: Any) -> AsyncClient:
    return AsyncClient(ADDRESS, transport=httpx.MockTransport(wire), **options)


def _send(wire: Wire, call: Call[T], **options: Any) -> T:
    with _waiting(wire, **options) as client:
        return client.send(call)


def _first(wire: Wire, call: Call[Page[T]], count: int) -> list[T]:
    with _waiting(wire) as client:
        return list(islice(client.pages(call), count))


def _follow(wire: Wire, job_id: str, after: int = 0) -> list[Any]:
    with _waiting(wire) as client:
        return list(client.events(job_id, after))


def _send_async(wire: Wire, call: Call[T], **options: Any) -> T:
    async def run() -> T:
        async with _concurrent(wire, **options) as client:
            return await client.send(call)

    return asyncio.run(run())


def _first_async(wire: Wire, call: Call[Page[T]], count: int) -> list[T]:
    async def run() -> list[T]:
        found: list[T] = []
        async with _concurrent(wire) as client, contextlib.aclosing(client.pages(call)) as items:
            async for item in items:
                found.append(item)
                if len(found) == count:
                    break
        return found

    return asyncio.run(run())


def _follow_async(wire: Wire, job_id: str, after: int = 0) -> list[Any]:
    async def run() -> list[Any]:
        async with _concurrent(wire) as client:
            return [event async for event in client.events(job_id, after)]

    return asyncio.run(run())


SENDERS = [
    Sender("Client", _send, _first, _follow),
    Sender("AsyncClient", _send_async, _first_async, _follow_async),
]


@contextlib.contextmanager
def noted_pauses(monkeypatch: Any) -> Iterator[list[float]]:
    """Let nobody wait, and note for how long it would have been."""
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    with monkeypatch.context() as patch:
        patch.setattr("graticule.client.clients.time.sleep", pauses.append)
        patch.setattr("graticule.client.clients.asyncio.sleep", noted)
        yield pauses
