"""One queue of the broker, seen from whoever works on its messages: what has arrived, and what is to be settled.

A link asks for no more than is wanted, so that nothing is locked here that another could work on. The client waits a
while for the rest of what it asked for, so a link that was idle asks for one message first, and for more as long as it
gets all that it asks for.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver
from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError, MessageNotFoundError

from graticule.core.backoff import Backoff
from graticule.core.cancellation import end_tasks
from graticule.core.errors import ConfigurationError, GraticuleError, Unavailable
from graticule.logs import get_logger
from graticule.messaging.servicebus.namespace import PERMANENT_PAUSE_SECONDS, Namespace, told

IDLE_SECONDS: Final = 60.0  # that one request for a message lasts
FULL_SECONDS: Final = 1.0  # that one for several does
GROWTH: Final = 8
MOST_AT_ONCE: Final = 200  # messages settled by one request
MOST_TRIES: Final = 4  # to settle a message
LAST_SECONDS: Final = 10.0  # for settlements when the link is closed
LONGEST_REASON: Final = 4000
LOOK_SECONDS: Final = 10.0  # between two looks at the locks, which last minutes
SHORTEST_LOOK_SECONDS: Final = 0.1
# The lock is not ours any more: the message is gone, or another's.
LOST: Final = (MessageLockLostError, MessageNotFoundError, MessageAlreadySettled)

Settle = Callable[[ServiceBusReceiver, ServiceBusReceivedMessage], Awaitable[None]]

_log = get_logger(__name__)


class InboundQueue:
    """Receives while something is wanted, keeps the locks of what is held, and settles in groups."""

    def __init__(self, namespace: Namespace, name: str, announce: Callable[[], None]) -> None:
        self.name = name
        self._namespace = namespace
        self._announce = announce
        self._receiver: ServiceBusReceiver = namespace.receiver(name)
        self._arrived: deque[ServiceBusReceivedMessage] = deque()
        self._held: dict[str, tuple[ServiceBusReceivedMessage, timedelta]] = {}  # by sequence number: message, lock
        self._wanted = 0
        self._is_wanted = asyncio.Event()
        self._some_held = asyncio.Event()
        self._ended: deque[ServiceBusReceivedMessage] = deque()
        self._some_ended = asyncio.Event()
        self._all_settled = asyncio.Event()
        self._all_settled.set()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        parts = (self._receive, self._settle, self._keep_locks)
        self._tasks = [asyncio.create_task(self._persistently(part), name=part.__name__) for part in parts]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Settle what is to be settled, and let others have what nobody here took."""
        receiving, settling, keeping = self._tasks
        await end_tasks(receiving, keeping)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._all_settled.wait()
                await self._each(ServiceBusReceiver.abandon_message, self._arrived)
        await end_tasks(settling)
        with suppress(Unavailable, ConfigurationError), told("close the link", self.name):
            await self._receiver.close()

    def take(self, limit: int) -> list[ServiceBusReceivedMessage]:
        """Give what has arrived, up to a limit, and have the rest of it asked for."""
        taken = [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]
        self._want(limit - len(taken))
        if self._arrived:
            self._announce()
        return taken

    def want_more(self, count: int) -> None:
        """Have so many more asked for."""
        self._want(self._wanted + count)

    def put_back(self, messages: Iterable[ServiceBusReceivedMessage]) -> None:
        """Let messages be taken once more."""
        self._arrived.extendleft(reversed(list(messages)))

    def complete(self, message: ServiceBusReceivedMessage) -> None:
        """Have a message ended, soon."""
        self._held.pop(_key(message), None)
        self._ended.append(message)
        self._all_settled.clear()
        self._some_ended.set()

    async def dead_letter(self, message: ServiceBusReceivedMessage, reason: str, description: str) -> None:
        """Set a message aside at the broker; one whose lock was lost is another's."""
        self._held.pop(_key(message), None)
        with told("set a message aside", self.name), suppress(*LOST):
            await self._receiver.dead_letter_message(
                message, reason=reason, error_description=description[:LONGEST_REASON]
            )

    def _want(self, count: int) -> None:
        self._wanted = count
        if count > 0:
            self._is_wanted.set()
        else:
            self._is_wanted.clear()

    # The parts, each of which runs for ever

    async def _receive(self) -> None:
        asked = 1
        while True:
            await self._is_wanted.wait()
            asked = min(asked, self._wanted)
            came = await self._came(asked)
            if came:
                self._note(came)
            asked = asked * GROWTH if len(came) == asked else 1

    async def _came(self, asked: int) -> list[ServiceBusReceivedMessage]:
        """Receive messages; a link that comes to an error may never work again, and is replaced."""
        try:
            with told("receive messages", self.name):
                return await self._receiver.receive_messages(asked, IDLE_SECONDS if asked == 1 else FULL_SECONDS)
        except GraticuleError:
            lost, self._receiver = self._receiver, self._namespace.receiver(self.name)
            with suppress(Unavailable, ConfigurationError), told("close a link", self.name):
                await lost.close()
            raise

    def _note(self, came: Sequence[ServiceBusReceivedMessage]) -> None:
        now = datetime.now(UTC)
        self._held |= {_key(message): (message, _locked_until(message) - now) for message in came}
        self._some_held.set()
        self._arrived.extend(came)
        self._want(self._wanted - len(came))
        self._announce()

    async def _settle(self) -> None:
        while True:
            await self._some_ended.wait()
            self._some_ended.clear()
            while self._ended:
                ended = [self._ended.popleft() for _ in range(min(MOST_AT_ONCE, len(self._ended)))]
                await self._completed(ended)
            self._all_settled.set()

    async def _completed(self, messages: Sequence[ServiceBusReceivedMessage]) -> None:
        """End messages by one request; where one of them spoils it, each by its own."""
        together = getattr(self._receiver, "_settle_message_via_mgmt_link", None)
        if together is not None and len(messages) > 1:
            with suppress(Unavailable), told("settle messages", self.name):
                await together("completed", [message.lock_token for message in messages])
                return
        await self._each(ServiceBusReceiver.complete_message, messages)

    async def _each(self, settle: Settle, messages: Iterable[ServiceBusReceivedMessage]) -> None:
        for message in messages:  # one by one: several who find a link lost would spoil each other's new one
            await self._one(settle, message)

    async def _one(self, settle: Settle, message: ServiceBusReceivedMessage) -> None:
        """Settle a message; one that cannot be is left to its lock, and whoever gets it then finds it surplus.

        It is tried more than once: a link that was lost is being replaced.
        """
        backoff = Backoff()
        for _ in range(MOST_TRIES):
            try:
                with told("settle a message", self.name), suppress(*LOST):
                    await settle(self._receiver, message)
            except Unavailable as unsettled:
                error = unsettled
                await asyncio.sleep(backoff.next())
            else:
                return
        _log.info("a message is left to its lock", queue=self.name, error=error.message)

    async def _keep_locks(self) -> None:
        while True:
            await self._some_held.wait()  # or a lock that is shorter than a pause would be lost in it
            if not self._held:
                self._some_held.clear()
                continue
            await asyncio.sleep(self._look_seconds())
            now = datetime.now(UTC)
            due = [message for message, lock in self._held.values() if _locked_until(message) - now < lock / 2]
            for message in due:
                await self._kept(message)

    def _look_seconds(self) -> float:
        shortest = min(lock.total_seconds() for _, lock in self._held.values())
        return min(max(shortest / 6, SHORTEST_LOOK_SECONDS), LOOK_SECONDS)

    async def _kept(self, message: ServiceBusReceivedMessage) -> None:
        """Renew a lock, but of a message that nobody here had time for: another may have.

        A task whose lock is lost is run to its end all the same: the rows say whose it is.
        """
        if message in self._arrived:
            self._arrived.remove(message)
            del self._held[_key(message)]
            await self._one(ServiceBusReceiver.abandon_message, message)
            return
        with told("renew a lock", self.name):
            try:
                await self._receiver.renew_message_lock(message)
            except LOST:
                self._held.pop(_key(message), None)

    async def _persistently(self, part: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff()
        while True:
            try:
                await part()
            except Unavailable as error:
                pause = backoff.next()
                _log.warning("the broker is not there", queue=self.name, error=error.message, again_in=pause)
            except ConfigurationError as error:
                pause = PERMANENT_PAUSE_SECONDS
                _log.error("the broker refuses", queue=self.name, error=str(error), again_in=pause)
            except Exception:
                pause = backoff.next()
                _log.exception("a link failed and is begun anew", queue=self.name)
            await asyncio.sleep(pause)


def _key(message: ServiceBusReceivedMessage) -> str:
    return str(message.lock_token)


def _locked_until(message: ServiceBusReceivedMessage) -> datetime:
    return message.locked_until_utc or datetime.now(UTC)
