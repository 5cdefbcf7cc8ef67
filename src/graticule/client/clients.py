"""Those who send calls: `Client` waits for the answer, `AsyncClient` lets others work meanwhile.

They differ only in how they read and wait; what is asked, repeated and understood is decided elsewhere.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, Final, Self, TypeVar

import httpx

from graticule.client import calls, event_stream
from graticule.client.call import Call, following
from graticule.client.event_stream import Following
from graticule.client.models import Page
from graticule.client.problems import problem_of, read_answer, unreachable
from graticule.client.repeating import DEFAULT_REPEATS, Outcome, Repeats
from graticule.core.errors import ConfigurationError
from graticule.core.models import Event

TIMEOUT_SECONDS: Final = 30.0
_SECRET: Final = re.compile(r"[\x21-\x7e]+")
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

T = TypeVar("T")


class _Server:
    """Where the calls go, and what goes with each of them."""

    def __init__(self, address: str, api_key: str | None, bearer: str | None, timeout: float) -> None:
        url = _url(address)
        self.address = str(url.copy_with(username=None, password=None)).rstrip("/")
        self.options: dict[str, Any] = {
            "base_url": url,
            "headers": _credentials(api_key, bearer),
            "timeout": timeout,
            "trust_env": url.host not in _LOOPBACK,  # a proxy has no business between us and this machine
            "verify": url.scheme == "https",  # else the certificates would be loaded in vain, longer than a call takes
        }
        self._stream_timeout = httpx.Timeout(timeout, read=event_stream.SILENCE_SECONDS)

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Give a call in the words of httpx."""
        content = call.content
        kind = {"Content-Type": call.content_type} if content is not None else {}
        return {
            "method": call.method,
            "url": call.path,
            "params": call.parameters,
            "content": content,
            "headers": {**kind, **call.headers},
        }

    def stream_request(self, call: Call[Any], feed: Following[Any]) -> dict[str, Any]:
        """Give the call of a stream, which may be silent for longer, from where the feed stands."""
        return self.request(call) | {"headers": feed.headers, "timeout": self._stream_timeout}

    def answered(self, call: Call[T], outcome: Outcome) -> T:
        """Give what the answer to a call says, or raise why there is none."""
        if isinstance(outcome, httpx.TransportError):
            raise unreachable(self.address, outcome) from outcome
        if not outcome.is_success:
            raise problem_of(outcome, self.address)
        return read_answer(call, outcome, self.address)


class Client:
    """Sends calls to one server, and waits for each answer."""

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        bearer: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        repeats: int = DEFAULT_REPEATS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect to the orchestrator or the gateway at an address, with an API key or an OIDC token.

        Calls that may be repeated are sent again up to `repeats` times when the connection is lost, or when the
        server is busy and does not ask for more than 10 s; 0 sends everything once.
        """
        self._server = _Server(address, api_key, bearer, timeout)
        self._repeats = repeats
        self._http = httpx.Client(**self._server.options, transport=transport)

    def __repr__(self) -> str:
        return f"Client({self._server.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call, and give its answer."""
        repeats = Repeats(call, self._repeats)
        while True:
            outcome = self._attempt(call)
            pause = repeats.pause_after(outcome)
            if pause is None:
                return self._server.answered(call, outcome)
            time.sleep(pause)

    def pages(self, call: Call[Page[T]]) -> Iterator[T]:
        """Give the items of a list; a further page is asked for when the one before is used up."""
        rest: Call[Page[T]] | None = call
        while rest is not None:
            page = self.send(rest)
            yield from page.items
            rest = following(rest, page)

    def events(self, job_id: str, after: int = 0) -> Iterator[Event]:
        """Give the events of a job after an event id, live, and end when the job has."""
        return self.stream(calls.follow_job_events(job_id), after)

    def stream(self, call: Call[T], after: int = 0) -> Iterator[T]:
        """Give what a stream tells, live; a connection that is lost is taken up after the last event."""
        feed = Following(call, self._server.address, after)
        while not feed.ended:
            try:
                with closing(self._pieces(call, feed)) as pieces:
                    for piece in pieces:
                        yield from feed.take(piece)
                        if feed.ended:
                            return
            except httpx.TransportError as error:
                feed.broken(error)
            time.sleep(event_stream.PAUSE_SECONDS)

    def _attempt(self, call: Call[Any]) -> Outcome:
        try:
            return self._http.request(**self._server.request(call))
        except httpx.TransportError as error:
            return error

    def _pieces(self, call: Call[Any], feed: Following[Any]) -> Generator[bytes, None, None]:
        with self._http.stream(**self._server.stream_request(call, feed)) as response:
            if not response.is_success:
                response.read()
            if feed.opened(response):
                yield from response.iter_bytes()


class AsyncClient:
    """Sends calls to one server, and lets others work while it waits."""

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        bearer: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        repeats: int = DEFAULT_REPEATS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect as `Client` does; the arguments mean the same."""
        self._server = _Server(address, api_key, bearer, timeout)
        self._repeats = repeats
        self._http = httpx.AsyncClient(**self._server.options, transport=transport)

    def __repr__(self) -> str:
        return f"AsyncClient({self._server.address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a call, and give its answer."""
        repeats = Repeats(call, self._repeats)
        while True:
            outcome = await self._attempt(call)
            pause = repeats.pause_after(outcome)
            if pause is None:
                return self._server.answered(call, outcome)
            await asyncio.sleep(pause)

    async def pages(self, call: Call[Page[T]]) -> AsyncGenerator[T, None]:
        """Give the items of a list; a further page is asked for when the one before is used up."""
        rest: Call[Page[T]] | None = call
        while rest is not None:
            page = await self.send(rest)
            for item in page.items:
                yield item
            rest = following(rest, page)

    def events(self, job_id: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Give the events of a job after an event id, live, and end when the job has."""
        return self.stream(calls.follow_job_events(job_id), after)

    async def stream(self, call: Call[T], after: int = 0) -> AsyncGenerator[T, None]:
        """Give what a stream tells, live; a connection that is lost is taken up after the last event."""
        feed = Following(call, self._server.address, after)
        while not feed.ended:
            try:
                async with aclosing(self._pieces(call, feed)) as pieces:
                    async for piece in pieces:
                        for told in feed.take(piece):
                            yield told
                        if feed.ended:
                            return
            except httpx.TransportError as error:
                feed.broken(error)
            await asyncio.sleep(event_stream.PAUSE_SECONDS)

    async def _attempt(self, call: Call[Any]) -> Outcome:
        try:
            return await self._http.request(**self._server.request(call))
        except httpx.TransportError as error:
            return error

    async def _pieces(self, call: Call[Any], feed: Following[Any]) -> AsyncGenerator[bytes, None]:
        async with self._http.stream(**self._server.stream_request(call, feed)) as response:
            if not response.is_success:
                await response.aread()
            if feed.opened(response):
                async for piece in response.aiter_bytes():
                    yield piece


def _credentials(api_key: str | None, bearer: str | None) -> dict[str, str]:
    if not all(_SECRET.fullmatch(secret) for secret in (api_key, bearer) if secret):
        raise ConfigurationError("The credential has characters that none can have.")  # it is not shown
    given = {"X-API-Key": api_key, "Authorization": f"Bearer {bearer}" if bearer else None}
    return {name: value for name, value in given.items() if value}


def _url(address: str) -> httpx.URL:
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigurationError(
            f"{address!r} is not the address of a server.", hint="Write it as http://127.0.0.1:8001."
        )
    return url
