"""A Service Bus namespace: who we are to it, and the links to its queues, which are kept open."""

import asyncio
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final, Self

from azure.servicebus import exceptions
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

from graticule.config import Settings
from graticule.core.errors import ConfigurationError, GraticuleError, Unavailable
from graticule.identity import AsyncCredential
from graticule.messaging.metrics import QueueMetrics

PERMANENT_PAUSE_SECONDS: Final = 30.0  # someone has to mend it first
LISTEN_SECONDS: Final = 0.1  # that a link waits for a frame before it looks whether there is something else to do
BUSY_LISTEN_SECONDS: Final = 0.01  # that one does which has asked for many, and may have got all that there are
PULL_SECONDS: Final = 0.05  # that it waits for more messages when some have come
_DOMAIN: Final = "servicebus.windows.net"
# Whoever uses a link tries again by itself, with the pauses of all other parts.
_PATIENCE: Final = {"retry_total": 0, "retry_backoff_factor": 0.1, "retry_backoff_max": 1, "try_timeout": 15}


# It logs each error in full before it is raised, with addresses and frames; ours is told without them.
logging.getLogger("azure.servicebus").setLevel(logging.CRITICAL)


class BrokerAway(Unavailable):
    """The broker cannot be reached, or does not do now what it may do later."""


class Namespace:
    """Gives links to queues; each is opened once, and opened again when it was lost."""

    def __init__(self, settings: Settings, metrics: QueueMetrics | None = None) -> None:
        self._client = _client(settings)
        self.metrics = metrics or QueueMetrics()
        self._senders: dict[str, ServiceBusSender] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with told("close the links"):
            await self._client.close()

    def sender(self, queue: str) -> ServiceBusSender:
        """Give the link on which messages go to a queue."""
        if queue not in self._senders:
            self._senders[queue] = self._client.get_queue_sender(queue)
        return self._senders[queue]

    async def forget_sender(self, queue: str) -> None:
        """Have a new link made for the next messages: one that came to an error may never work again."""
        if sender := self._senders.pop(queue, None):
            with suppress(Unavailable, ConfigurationError), told("close a link", queue):
                await sender.close()

    def receiver(self, queue: str) -> ServiceBusReceiver:
        """Give a new link on which messages come from a queue, each locked for whoever receives it."""
        return _opened_once(_pulling_briefly(self._client.get_queue_receiver(queue, socket_timeout=LISTEN_SECONDS)))


def _pulling_briefly(receiver: ServiceBusReceiver) -> ServiceBusReceiver:
    """Let whoever asks for many messages have those that are there; the client would wait for more for 0.2 s."""
    unguarded: Any = receiver
    unguarded._further_pull_receive_timeout = PULL_SECONDS  # noqa: SLF001
    return receiver


def listen_for(receiver: ServiceBusReceiver, seconds: float) -> None:
    """Let an open link wait so long for a frame."""
    unguarded: Any = receiver
    unguarded._handler._socket_timeout = seconds  # noqa: SLF001


def _opened_once(receiver: ServiceBusReceiver) -> ServiceBusReceiver:
    """Let one at a time open a link: the client lets each open it who finds it closed, and close that of another."""
    unguarded: Any = receiver
    opening, turn = unguarded._open, asyncio.Lock()  # noqa: SLF001

    async def opened(*given: Any, **named: Any) -> None:
        async with turn:
            await opening(*given, **named)

    unguarded._open = opened  # noqa: SLF001
    return receiver


@contextmanager
def told(doing: str, queue: str = "") -> Iterator[None]:
    """Turn the client's errors into the domain's: what has to be mended is told apart from what passes."""
    where = f" of the queue {queue!r}" if queue else ""
    try:
        yield
    except exceptions.MessagingEntityNotFoundError:
        raise ConfigurationError(
            f"Service Bus has no queue {queue!r}.", hint="Make it: `graticule azure queues ensure`."
        ) from None
    except exceptions.MessagingEntityDisabledError:
        raise ConfigurationError(f"The queue {queue!r} of Service Bus is disabled.", hint="Enable it.") from None
    except (exceptions.ServiceBusAuthenticationError, exceptions.ServiceBusAuthorizationError) as error:
        raise ConfigurationError(
            f"Service Bus refused to {doing}{where}: {type(error).__name__}.",
            hint="Check the key, or that the identity has the roles Service Bus Data Sender and Receiver.",
        ) from None
    except GraticuleError:
        raise
    except Exception as error:
        # A client that is cut off in the middle of something comes to errors of all kinds. Their texts hold addresses
        # and frames, and now and then a token.
        raise BrokerAway(f"Service Bus could not {doing}{where} now: {type(error).__name__}.") from None


def namespace_host(settings: Settings) -> str:
    """Give the host of the namespace that is reached with an identity."""
    if settings.service_bus_fqdn:
        return settings.service_bus_fqdn
    if namespace := settings.service_bus_namespace:
        return namespace if "." in namespace else f"{namespace}.{_DOMAIN}"  # earlier settings name the host here, too
    raise ConfigurationError(
        "The namespace of Service Bus is not known.",
        hint="Set GRATICULE_SERVICE_BUS_FQDN (with an identity) or GRATICULE_SERVICE_BUS_CONNECTION_STRING.",
    )


def _client(settings: Settings) -> ServiceBusClient:
    """Log in with the key, if there is one, or else with the identity of this process."""
    options: dict[str, Any] = {**_PATIENCE, "ssl_context": _trust(authorities())}
    given = settings.service_bus_connection_string
    if given is None:
        return ServiceBusClient(namespace_host(settings), AsyncCredential(), **options)
    with connection_string_told():
        return ServiceBusClient.from_connection_string(given.get_secret_value(), **options)


@contextmanager
def connection_string_told() -> Iterator[None]:
    """Say what is wrong with a connection string, without repeating it."""
    try:
        yield
    except (ValueError, KeyError):
        raise ConfigurationError(
            "GRATICULE_SERVICE_BUS_CONNECTION_STRING is not a connection string.",
            hint="Copy it from the shared access policies of the namespace: Endpoint=sb://…;SharedAccessKeyName=…",
        ) from None


@cache
def _trust(file: str | None) -> ssl.SSLContext:
    """Give what all links verify the broker with; each would read all authorities anew."""
    return ssl.create_default_context(cafile=file)


def authorities() -> str | None:
    """Give the file of the authorities whose certificates are trusted; SSL_CERT_FILE names another one."""
    return ssl.get_default_verify_paths().cafile
