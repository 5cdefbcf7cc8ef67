"""Microsoft's two clients behind one face, so that each check is written once and run with both."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

from azure.servicebus import AutoLockRenewer, ServiceBusClient, ServiceBusSubQueue
from azure.servicebus.aio import AutoLockRenewer as AioAutoLockRenewer
from azure.servicebus.aio import ServiceBusClient as AioServiceBusClient
from tests.integration.servicebus.bus import Bus

RETRIES: Final = {"retry_total": 3, "retry_backoff_factor": 0.05}
_ENOUGH: Final = 10  # seconds in which anything comes that comes at all


class InThread:
    """Something that blocks as if it were asynchronous: each call is made in a thread."""

    def __init__(self, blocking: Any) -> None:
        self.blocking = blocking

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.blocking, name)

        async def called(*values: Any, **named: Any) -> Any:
            return await asyncio.to_thread(call, *values, **named)

        return called

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.blocking.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.blocking.__exit__, kind, error, trace)

    def __aiter__(self) -> Self:
        self._iterator = iter(self.blocking)
        return self

    async def __anext__(self) -> Any:
        message = await asyncio.to_thread(next, self._iterator, None)
        if message is None:
            raise StopAsyncIteration
        return message


class Clients:
    """Senders and receivers of one of the clients."""

    def __init__(self, bus: Bus, *, is_aio: bool, tls: bool = False, **options: Any) -> None:
        self.bus = bus
        self.is_aio = is_aio
        self._options = {**RETRIES, **bus.client_options(tls=tls), **options}

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Any]:
        """Give a client; options are those of the client, besides or instead of the usual ones."""
        options = {**self._options, **options}
        if self.is_aio:
            async with AioServiceBusClient.from_connection_string(**options) as aio:
                yield aio
        else:
            with ServiceBusClient.from_connection_string(**options) as blocking:
                yield blocking

    @asynccontextmanager
    async def links(
        self, queue: str, *, receivers: int = 1, dead_letters: bool = False, **options: Any
    ) -> AsyncIterator[Any]:
        """Give a sender to a queue and receivers of it, opened and closed all at once: each takes half a second."""
        async with self.client() as client:
            made = [client.get_queue_sender(queue)]
            made += [client.get_queue_receiver(queue, **options) for _ in range(receivers)]
            if dead_letters:
                made.append(client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER))
            links = [self._as_aio(link) for link in made]
            await asyncio.gather(*(link.__aenter__() for link in links))
            try:
                yield links
            finally:
                await asyncio.gather(*(link.__aexit__(None, None, None) for link in links))

    @asynccontextmanager
    async def sender(self, queue: str, **options: Any) -> AsyncIterator[Any]:
        """Give a sender to a queue; options are those of the client."""
        async with self.client(**options) as client, self._as_aio(client.get_queue_sender(queue)) as sender:
            yield sender

    @asynccontextmanager
    async def renewing(self, receiver: Any, message: Any) -> AsyncIterator[None]:
        """Let the client renew the lock of a message."""
        if self.is_aio:
            aio = AioAutoLockRenewer()
            aio.register(receiver, message, max_lock_renewal_duration=60)
            yield
            await aio.close()
        else:
            renewer = AutoLockRenewer()
            renewer.register(receiver.blocking, message, max_lock_renewal_duration=60)
            yield
            await asyncio.to_thread(renewer.close)

    def _as_aio(self, link: Any) -> Any:
        return link if self.is_aio else InThread(link)


async def one(receiver: Any) -> Any:
    """Give the next message."""
    messages = await receiver.receive_messages(max_message_count=1, max_wait_time=_ENOUGH)
    assert len(messages) == 1
    return messages[0]


async def some(receiver: Any, count: int) -> list[Any]:
    """Give so many messages."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await receiver.receive_messages(max_message_count=count - len(messages), max_wait_time=_ENOUGH)
        assert more
        messages += more
    return messages


async def gets_nothing(receiver: Any, bus: Bus) -> bool:
    """Tell whether no message comes."""
    messages: list[Any] = await receiver.receive_messages(max_message_count=1, max_wait_time=bus.moment)
    return not messages
