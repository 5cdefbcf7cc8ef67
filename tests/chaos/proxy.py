"""A TCP proxy in front of PostgreSQL that can be a bad network: cut, slow, silent, or losing the answer to a commit."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from random import Random
from types import TracebackType
from typing import Final, Self

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]

_CHUNK: Final = 65536
_READY_FOR_QUERY: Final = b"Z\x00\x00\x00\x05"  # one byte follows: I (idle), T (in a transaction), E (in a failed one)
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class _Loss(Enum):
    NONE = auto()
    AWAITED = auto()  # a commit was passed on; nothing that the server says is passed back
    DONE = auto()


class _Link:
    """One client's connection and its counterpart at the server."""

    def __init__(self, client: Streams, server: Streams) -> None:
        self.client_reader, self.client_writer = client
        self.server_reader, self.server_writer = server
        self.is_idle = False  # no transaction is open
        self.loss = _Loss.NONE

    def reset(self) -> None:
        """End it at once; the client gets a reset, and a statement that the server works on is worked on to its end."""
        connection = self.client_writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        self.client_writer.transport.abort()
        self.server_writer.transport.abort()

    def commits(self, said: bytes) -> bool:
        """Tell whether what the client says is the end of a transaction, or a statement that commits by itself."""
        return b"COMMIT" in said or (self.is_idle and b"BEGIN" not in said)

    def note_answer(self, answer: bytes) -> None:
        """Note whether a transaction is open, when the server has answered to the end."""
        if answer[-6:-1] == _READY_FOR_QUERY:
            self.is_idle = answer[-1:] == b"I"
            if self.loss is _Loss.AWAITED:
                self.loss = _Loss.DONE


class Proxy:
    """Passes on what clients and server say, in the loop that has started it."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._delay = 0.0
        self._losses = 0
        self._server: asyncio.Server | None = None
        self.port = 0
        self.lost_answers = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1000)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Faults

    def cut(self, share: float = 1.0, rng: Random | None = None) -> int:
        """Reset connections, all or a share of them, and tell how many."""
        chosen = [link for link in self._links if rng is None or rng.random() < share]
        for link in chosen:
            link.reset()
        return len(chosen)

    async def slow(self, delay_seconds: float, seconds: float) -> None:
        """Pass on each piece of data so much later, for a while."""
        self._delay = delay_seconds
        try:
            await asyncio.sleep(seconds)
        finally:
            self._delay = 0.0

    def lose_answers(self, count: int = 1) -> None:
        """Let the next commits be executed, swallow their answers, and reset their connections."""
        self._losses = count

    async def stall(self, seconds: float) -> None:
        """Accept connections and pass nothing on for a while; then reset all of them."""
        self._flowing.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            self.cut()
            self._flowing.set()

    def behave(self) -> None:
        """Do no harm any more."""
        self._delay, self._losses = 0.0, 0
        self._flowing.set()

    # Passing on

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._link(reader, writer)
        except (OSError, asyncio.CancelledError):  # the server is away, or the proxy ends
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link((reader, writer), await self._connect())
        self._links.add(link)
        try:
            directions = [asyncio.ensure_future(self._ask(link)), asyncio.ensure_future(self._answer(link))]
            _, others = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for other in others:
                other.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        finally:
            self._links.discard(link)
            link.close()

    async def _ask(self, link: _Link) -> None:
        while said := await link.client_reader.read(_CHUNK):
            await self._linger()
            if self._losses > 0 and link.loss is _Loss.NONE and link.commits(said):
                self._losses -= 1
                self.lost_answers += 1
                link.loss = _Loss.AWAITED
            link.server_writer.write(said)
            await link.server_writer.drain()

    async def _answer(self, link: _Link) -> None:
        tail = b""
        while answer := await link.server_reader.read(_CHUNK):
            await self._linger()
            is_lost = link.loss is not _Loss.NONE
            tail = (tail + answer)[-6:]
            link.note_answer(tail)
            if link.loss is _Loss.DONE:
                link.reset()
                return
            if not is_lost:
                link.client_writer.write(answer)
                await link.client_writer.drain()

    async def _linger(self) -> None:
        await self._flowing.wait()
        if self._delay:
            await asyncio.sleep(self._delay)
