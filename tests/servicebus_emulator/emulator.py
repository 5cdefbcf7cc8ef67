"""The emulator: a namespace with its queues, on the ports of this machine."""

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from tests.servicebus_emulator.administration import HEAD_LIMIT, Administration
from tests.servicebus_emulator.connection import Broker, Connection
from tests.servicebus_emulator.faults import Faults
from tests.servicebus_emulator.namespace import Namespace
from tests.servicebus_emulator.queue import Queue, QueueOptions
from tests.servicebus_emulator.tokens import CheckJwt, Tokens

ROOT: Final = "RootManageSharedAccessKey"
DEFAULT_KEYS: Final = {ROOT: "an-emulated-key"}


class Emulator:
    """A Service Bus namespace that lives as long as the block that opens it."""

    def __init__(
        self,
        queues: Mapping[str, QueueOptions] | None = None,
        *,
        keys: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        check_jwt: CheckJwt | None = None,
    ) -> None:
        self._options = queues or {}
        self._keys = dict(keys or DEFAULT_KEYS)
        self._tls = tls
        self._host = host
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._tokens = Tokens(self._keys, check_jwt)
        self._administration: Administration | None = None
        self.namespace = Namespace(self._detach)
        self.faults = Faults(self._cut, self.namespace.expire_locks)
        self.port = port
        self.tls_port: int | None = None
        self.admin_port: int | None = None

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Give the queues by their names."""
        return self.namespace.queues

    @property
    def connection_string(self) -> str:
        """Give what a client needs to connect without TLS, with the first of the keys."""
        name, key = next(iter(self._keys.items()))
        endpoint = f"Endpoint=sb://{self._host}:{self.port}"
        return f"{endpoint};SharedAccessKeyName={name};SharedAccessKey={key};UseDevelopmentEmulator=true;"

    async def __aenter__(self) -> Self:
        for name, options in self._options.items():
            self.namespace.create(name, options)
        self.port = await self._listen(self.port, None)
        if self._tls is not None:
            self.tls_port = await self._listen(0, self._tls)
            self.admin_port = await self._administer(self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        self._cut()
        if self._administration is not None:
            self._administration.close()
        self.namespace.close()
        await asyncio.gather(*(server.wait_closed() for server in self._servers))

    async def _listen(self, port: int, tls: ssl.SSLContext | None) -> int:
        broker = Broker(self.namespace, self._tokens, self.faults, self._connections)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(broker), self._host, port, ssl=tls)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _administer(self, tls: ssl.SSLContext) -> int:
        administration = Administration(self.namespace, self._tokens, f"https://{self._host}")
        server = await asyncio.start_server(administration.serve, self._host, 0, ssl=tls, limit=HEAD_LIMIT)
        self._servers.append(server)
        self._administration = administration
        return int(server.sockets[0].getsockname()[1])

    def _detach(self, path: str) -> None:
        """Take the links of a queue that was removed from their clients."""
        for connection in list(self._connections):
            connection.detach(path)

    def _cut(self) -> None:
        for connection in list(self._connections):
            connection.cut()
