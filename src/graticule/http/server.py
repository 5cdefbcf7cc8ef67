"""The server: one listening socket, one event loop, a clean end on SIGTERM and SIGINT."""

import asyncio
import ctypes
import errno
import gc
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from graticule.core.errors import ConfigurationError
from graticule.http.connections import (
    BoundedProtocol,
    ConnectionMetrics,
    ConnectionPolicy,
    ConnectionState,
    ConnectionTable,
    raise_descriptor_limit,
)
from graticule.http.forwarded import ForwardedAddress
from graticule.logs import get_logger

BACKLOG: Final = 2048  # connections that the system keeps until they are accepted
ACCEPTED_AT_ONCE: Final = 64
LARGE_BLOCK: Final = 4 * 1024 * 1024  # bytes
_M_TRIM_THRESHOLD: Final = -1  # of glibc's malloc.h
_M_MMAP_THRESHOLD: Final = -3

_log = get_logger(__name__)


async def serve(
    app: FastAPI,
    host: str,
    port: int,
    *,
    policy: ConnectionPolicy | None = None,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """Serve the application until a signal comes; requests that are under way are finished.

    An error of the application's start or end is raised from here. A second signal ends at once, with
    the exit status that a shell gives a process ended by that signal.
    """
    policy = policy or ConnectionPolicy()
    raise_descriptor_limit()
    give_back_memory()
    with listen(host, port) as listening:
        lifespan = _Lifespan(app)
        server = _Server(_configuration(lifespan, policy), app, on_ready, policy)
        try:
            await server.serve(sockets=[listening])
        except (SystemExit, asyncio.CancelledError):
            # uvicorn leaves by SystemExit when the start fails; a second signal cancels a start that hangs.
            if not server.force_exit and lifespan.error is None:
                raise
        if server.force_exit:
            raise SystemExit(128 + server.last_signal)
        if lifespan.error is not None:
            raise lifespan.error


def give_back_memory() -> None:
    """Have the memory of large answers returned to the system when they are gone.

    glibc maps large blocks by themselves, but once one is freed it takes those of its size from the heap, where small
    ones that live longer keep what is between them.
    """
    with suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, 4 * LARGE_BLOCK)


def listen(host: str, port: int) -> socket.socket:
    """Open the port, so that a taken one is found out before anything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise _refused(host, port, error) from error
    # What is accepted inherits it, and asyncio does not set it here: the body of an answer would wait 40 ms for the
    # client to confirm the head.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _refused(host: str, port: int, error: OSError) -> ConfigurationError:
    place = f"Port {port} on {host}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(f"{place} is in use by another program.", hint="Choose another with --port.")
    if error.errno == errno.EACCES:
        return ConfigurationError(f"{place} may not be opened by this user.", hint="Choose one above 1023 with --port.")
    return ConfigurationError(f"{place} cannot be opened: {error.strerror}.", hint="Choose another with --host.")


def _configuration(app: "_Lifespan", policy: ConnectionPolicy | None = None) -> uvicorn.Config:
    policy = policy or ConnectionPolicy()
    return uvicorn.Config(
        ForwardedAddress(app, policy.proxies),
        http=BoundedProtocol,
        proxy_headers=False,  # uvicorn would believe anyone on this machine
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
        # For asyncio this is how many it accepts before it looks at any of them: all of those need a descriptor.
        backlog=ACCEPTED_AT_ONCE,
        # Longer than the idle time of the usual load balancers: the side that reuses closes first.
        timeout_keep_alive=75,
        # A request on a connection that is kept alive must not inherit what an earlier one has bound.
        reset_contextvars=True,
    )


class _Lifespan:
    """Keeps the error of a start or end that failed, which uvicorn would log and forget."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.error: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return

        async def without_traceback(message: Message) -> None:
            await send({"type": message["type"]})

        try:
            await self._app(scope, receive, without_traceback)
        except Exception as error:
            self.error = error
            raise


class _Server(uvicorn.Server):
    """Tells when it is ready and when it stops, and treats SIGTERM and SIGINT alike."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        on_ready: Callable[[], None] | None,
        policy: ConnectionPolicy | None = None,
    ) -> None:
        super().__init__(config)
        metrics = getattr(app.state, "connection_metrics", None) or ConnectionMetrics(CollectorRegistry())
        self._table = ConnectionTable(policy or ConnectionPolicy(), metrics)
        self.server_state = ConnectionState(self._table)
        self.last_signal = 0
        self._app = app
        self._on_ready = on_ready
        self._starting: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        if task is not None:
            self._starting = lambda: loop.call_soon_threadsafe(task.cancel)
        await super().startup(sockets)
        self._starting = None
        gc.collect()
        gc.freeze()  # what is there now stays: it need not be looked at again and again
        for listening in sockets or []:
            listening.listen(BACKLOG)  # asyncio has set it to what it accepts at once
            host, port = listening.getsockname()[:2]
            _log.info("serving", host=host, port=port)
        if self._on_ready is not None:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Close connections whose time is over, once a second; uvicorn calls this ten times as often."""
        if counter % 10 == 0:
            self._table.close_expired(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping")
        stopping: asyncio.Event | None = getattr(self._app.state, "stopping", None)
        if stopping is not None:
            stopping.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at the first signal, at once at the second.

        Nothing is noted for uvicorn to raise again afterwards: the process ends by itself, with status 0.
        """
        self.last_signal = sig
        if self.should_exit:
            self.force_exit = True
            if self._starting is not None:
                self._starting()
        self.should_exit = True
