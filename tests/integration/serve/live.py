"""A server on loopback, in a thread: the clients that are tried against it block."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    """A server that tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class LiveServer(threading.Thread):
    """Serves an application, which is opened in the thread, as long as the context lasts."""

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        super().__init__(daemon=True)
        self._opened = opened
        self._server = _Server(uvicorn.Config("", log_level="error", lifespan="off"))

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        # One that knows its protocol: otherwise asyncio does not turn off the delay of small packets.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
            listening.bind(("127.0.0.1", 0))
            self.port = listening.getsockname()[1]
            async with self._opened() as app:
                self._server.config.app = app
                await self._server.serve([listening])

    def __enter__(self) -> str:
        self.start()
        assert self._server.is_up.wait(20)
        return f"http://127.0.0.1:{self.port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self.join(10)
