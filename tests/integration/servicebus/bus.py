"""Where the checks run: on the emulator, in a thread beside them, or in a real namespace."""

import asyncio
import base64
import datetime as dt
import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote
from uuid import uuid4

import pytest
from azure.servicebus import TransportType
from azure.servicebus.management import ServiceBusAdministrationClient
from tests.certificates import Certificates, made
from tests.servicebus_emulator import Emulator, QueueOptions

Result = TypeVar("Result")
KEY_NAME: Final = "RootManageSharedAccessKey"
KEY: Final = "a key of the checks"
GOOD_JWT: Final = "a good token"


class Bus(Protocol):
    """A namespace in which a check makes its own queue."""

    lock_seconds: float  # the shortest lock
    moment: float  # after which it is sure that nothing comes

    @property
    def connection_string(self) -> str:
        """Give where it is, with a key."""

    def new_queue(self, options: QueueOptions) -> str:
        """Give the name of a new queue."""

    def client_options(self, *, tls: bool) -> dict[str, Any]:
        """Give what a client needs to connect, besides the queue."""

    def administration_options(self) -> dict[str, Any]:
        """Give what a client of the administration needs to connect."""

    def emulated(self, why: str) -> "EmulatedBus":
        """Give the emulator, for what can be done with it alone."""


@dataclass
class EmulatedBus:
    """The emulator in a loop of its own, so that clients that block do not block it."""

    emulator: Emulator
    certificates: Certificates
    loop: asyncio.AbstractEventLoop
    lock_seconds: float = 1
    moment: float = 0.3

    @property
    def connection_string(self) -> str:
        return self.emulator.connection_string

    def new_queue(self, options: QueueOptions) -> str:
        name = f"check-{uuid4().hex[:12]}"
        self.do(lambda emulator: emulator.namespace.create(name, options))
        return name

    def client_options(self, *, tls: bool) -> dict[str, Any]:
        # Also a client without TLS loads authorities: with this one file, not with all of the world.
        trusted = {"connection_verify": str(self.certificates.ca)}
        if not tls:
            return {"conn_str": self.connection_string, **trusted}
        return {
            "conn_str": f"Endpoint=sb://127.0.0.1/;SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}",
            "custom_endpoint_address": f"sb://127.0.0.1:{self.emulator.tls_port}",
            "transport_type": TransportType.Amqp,  # a custom endpoint alone would mean web sockets
            **trusted,
        }

    def administration_options(self) -> dict[str, Any]:
        address = f"sb://127.0.0.1:{self.emulator.admin_port}"
        connection_string = f"Endpoint={address};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"
        return {"conn_str": connection_string, "connection_verify": str(self.certificates.ca)}

    def signed_token(self, resource: str, seconds: int) -> str:
        """Give a token for a resource that ends then."""
        end = str(int(time.time()) + seconds)
        signed = f"{quote(resource, safe='')}\n{end}".encode()
        signature = base64.b64encode(hmac.new(KEY.encode(), signed, "sha256").digest())
        return f"SharedAccessSignature sr={quote(resource, safe='')}&sig={quote(signature)}&se={end}&skn={KEY_NAME}"

    def emulated(self, why: str) -> "EmulatedBus":
        del why
        return self

    def do(self, action: Callable[[Emulator], Result]) -> Result:
        """Do something with the emulator, in its loop."""

        async def act() -> Result:
            return action(self.emulator)

        return asyncio.run_coroutine_threadsafe(act(), self.loop).result(10)


@dataclass
class RealBus:
    """A namespace of Azure. Its queues are made for a check and removed in the end."""

    connection_string: str
    lock_seconds: float = 5
    moment: float = 3
    _queues: list[str] = field(default_factory=list)

    def new_queue(self, options: QueueOptions) -> str:
        name = f"graticule-check-{uuid4().hex[:12]}"
        with ServiceBusAdministrationClient.from_connection_string(self.connection_string) as client:
            client.create_queue(name, **_as_arguments(options))
        self._queues.append(name)
        return name

    def client_options(self, *, tls: bool) -> dict[str, Any]:
        del tls  # always
        return {"conn_str": self.connection_string}

    def administration_options(self) -> dict[str, Any]:
        return {"conn_str": self.connection_string}

    def emulated(self, why: str) -> EmulatedBus:
        pytest.skip(f"A real namespace cannot do that: {why}.")

    def remove_queues(self) -> None:
        """Remove all queues that were made."""
        with ServiceBusAdministrationClient.from_connection_string(self.connection_string) as client:
            for name in self._queues:
                client.delete_queue(name)


@contextmanager
def emulated_bus(folder: Path) -> Iterator[EmulatedBus]:
    """Run the emulator in a thread."""
    certificates = made(folder)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="service bus emulator")
    thread.start()
    emulator = Emulator(keys={KEY_NAME: KEY}, tls=certificates.server_context(), check_jwt=_check_jwt)
    try:
        asyncio.run_coroutine_threadsafe(emulator.__aenter__(), loop).result(10)
        yield EmulatedBus(emulator, certificates, loop)
        asyncio.run_coroutine_threadsafe(emulator.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def real_bus(connection_string: str) -> Iterator[RealBus]:
    """Give a real namespace, and leave it as it was."""
    bus = RealBus(connection_string)
    try:
        yield bus
    finally:
        bus.remove_queues()


def _check_jwt(token: str, audience: str) -> float:
    del audience
    if token != GOOD_JWT:
        raise ValueError("This token is not good.")
    return dt.datetime.now(dt.UTC).timestamp() + 3600


def _as_arguments(options: QueueOptions) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "lock_duration": dt.timedelta(seconds=options.lock_seconds),
        "max_delivery_count": options.max_deliveries,
        "dead_lettering_on_message_expiration": options.dead_letter_on_expiry,
    }
    if options.ttl_seconds is not None:
        arguments["default_message_time_to_live"] = dt.timedelta(seconds=options.ttl_seconds)
    if options.duplicate_seconds:
        arguments["requires_duplicate_detection"] = True
        arguments["duplicate_detection_history_time_window"] = dt.timedelta(seconds=options.duplicate_seconds)
    return arguments
