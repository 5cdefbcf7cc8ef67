"""A receiver of callbacks on loopback: a real HTTP server whose answers a test writes itself."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from graticule.core.cancellation import end_tasks

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Received:
    """A request."""

    line: str
    headers: dict[str, str]  # by names in lower case
    body: bytes


def status(code: int, **headers: str) -> Answering:
    """Answer with a status and no body."""
    lines = [f"HTTP/1.1 {code} Whatever", "Content-Length: 0"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n")


def raw(said: bytes) -> Answering:
    """Say something."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    return answer


def endless(said: bytes, again: bytes) -> Answering:
    """Say something, and then something else for ever."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0)

    return answer


async def silence(_: asyncio.StreamWriter) -> None:
    """Say nothing more, and keep the connection."""
    await asyncio.Event().wait()


@dataclass
class Receiver:
    """A server that keeps what it receives."""

    host: str = "127.0.0.1"
    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: list[Answering] = field(default_factory=list)  # for the next requests; the last one for all that follow
    connections: int = 0
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _open: set[asyncio.Future[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/hook?key=secret"

    async def until(self, count: int, seconds: float = 20) -> None:
        """Wait for so many requests."""
        async with asyncio.timeout(seconds):
            while len(self.received) < count:
                self._told.clear()
                await self._told.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        serving = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(serving)
        try:
            await serving
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(serving)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        answer = self._next_answer()
        self.received.append(Received(first, headers, body))
        self._told.set()
        await answer(writer)
        await writer.drain()

    def _next_answer(self) -> Answering:
        if not self.answers:
            return status(204)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def close(self) -> None:
        await end_tasks(*self._open)


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver(host)
    server = await asyncio.start_server(receiver.serve, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
        await receiver.close()
