"""One queue of the broker, seen from whoever works on its messages: what has arrived, and what is to be settled.

A link asks for no more than is wanted, so that nothing is locked here that another could work on. The client waits a
while for the rest of what it asked for, so a link that was idle asks for one message first, and for more as long as it
gets all that it asks for.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver
from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError, MessageNotFoundError

from graticule.core.backoff import Backoff
from graticule.core.cancellation import end_tasks
from graticule.core.errors import ConfigurationError, GraticuleError, Unavailable
from graticule.logs import get_logger
from graticule.messaging.metrics import Letter
from graticule.messaging.servicebus.namespace import (
    BUSY_LISTEN_SECONDS,
    LISTEN_SECONDS,
    PERMANENT_PAUSE_SECONDS,
    Namespace,
    listen_for,
    told,
)

IDLE_SECONDS: Final = 60.0  # that one request for a message lasts
FULL_SECONDS: Final = 1.0  # that one for several does
GROWTH: Final = 8
MOST_AT_ONCE: Final = 200  # messages settled by one request
MOST_TRIES: Final = 4  # to settle messages
LAST_SECONDS: Final = 10.0  # for settlements when the link is closed
CLOSE_SECONDS: Final = 5.0
LONGEST_REASON: Final = 4000
LOOK_SECONDS: Final = 10.0  # between two looks at the locks, which last minutes
SHORTEST_LOOK_SECONDS: Final = 0.1
# The lock is not ours any more: the message is gone, or another's.
LOST: Final = (MessageLockLostError, MessageNotFoundError, MessageAlreadySettled)

COMPLETED: Final = "completed"  # as the broker names what becomes of a message
ABANDONED: Final = "abandoned"

HandOn = Callable[["InboundQueue", Sequence[ServiceBusReceivedMessage]], Awaitable[None]]

_log = get_logger(__name__)


class InboundQueue:
    """Receives while something is wanted, keeps the locks of what is held, and settles in groups."""

    def __init__(
        self, namespace: Namespace, name: str, announce: Callable[[], None], hand_on: HandOn | None = None
    ) -> None:
        """`announce` is called when something has arrived, `hand_on` with what nobody here has time for.

        Without `hand_on`, what has arrived is kept until someone has time for it.
        """
        self._hand_on = hand_on
        self.name = name
        self._namespace = namespace
        self._announce = announce
        self._receiver: ServiceBusReceiver = namespace.receiver(name)
        self._arrived: deque[ServiceBusReceivedMessage] = deque()
        self._held: dict[ServiceBusReceivedMessage, timedelta] = {}  # with how long its lock lasts
        self._wanted = 0
        self._is_wanted = asyncio.Event()
        self._some_held = asyncio.Event()
        self._ended: deque[tuple[str, ServiceBusReceivedMessage]] = deque()  # with what becomes of each
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
        settling, keeping = self._tasks[1:]
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self.stop_receiving()
                await self._all_settled.wait()
                await self._settled(ABANDONED, list(self._arrived))
        await end_tasks(settling, keeping)
        with suppress(Unavailable, ConfigurationError, TimeoutError), told("close the link", self.name):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._receiver.close()

    async def stop_receiving(self) -> None:
        """Receive no more, and hand on what nobody here has taken up; locks are kept, and messages settled."""
        self._want(0)
        await end_tasks(self._tasks[0])
        for message in list(self._arrived):
            await self._handed_on(message)

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
        self._end(COMPLETED, message)

    def give_up(self, message: ServiceBusReceivedMessage) -> None:
        """Have a message delivered once more, soon."""
        self._end(ABANDONED, message)

    def _end(self, outcome: str, message: ServiceBusReceivedMessage) -> None:
        self._held.pop(message, None)
        self._ended.append((outcome, message))
        self._all_settled.clear()
        self._some_ended.set()

    async def dead_letter(self, message: ServiceBusReceivedMessage, reason: str, description: str) -> None:
        """Set a message aside at the broker; one whose lock was lost is another's."""
        self._held.pop(message, None)
        async with self._link("set a message aside") as receiver:
            with suppress(*LOST):
                await receiver.dead_letter_message(
                    message, reason=reason, error_description=description[:LONGEST_REASON]
                )
                self._namespace.metrics.set_aside(Letter.MESSAGE, self.name)

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
            asked = asked * GROWTH if len(came) == asked else max(1, len(came) // GROWTH)

    async def _came(self, asked: int) -> list[ServiceBusReceivedMessage]:
        async with self._link("receive messages") as receiver:
            listen_for(receiver, LISTEN_SECONDS if asked == 1 else BUSY_LISTEN_SECONDS)
            return await receiver.receive_messages(asked, IDLE_SECONDS if asked == 1 else FULL_SECONDS)

    @asynccontextmanager
    async def _link(self, doing: str) -> AsyncIterator[ServiceBusReceiver]:
        """Give the link, open; one that came to an error may never work again, and is replaced."""
        receiver = self._receiver
        try:
            with told(doing, self.name):
                await receiver.__aenter__()  # does nothing where it is open; most requests would not open it
                yield receiver
        except GraticuleError:
            self._namespace.metrics.broker_failed(self.name)
            if receiver is self._receiver:  # nobody else was faster
                self._receiver = self._namespace.receiver(self.name)
            with suppress(Unavailable, ConfigurationError), told("close a link", self.name):
                await receiver.close()
            raise

    def _note(self, came: Sequence[ServiceBusReceivedMessage]) -> None:
        self._namespace.metrics.received(self.name, len(came))
        now = datetime.now(UTC)
        self._held |= {message: _locked_until(message) - now for message in came}
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
                for outcome in (COMPLETED, ABANDONED):
                    await self._settled(outcome, [message for wanted, message in ended if wanted == outcome])
            self._all_settled.set()

    async def _settled(self, outcome: str, messages: Sequence[ServiceBusReceivedMessage]) -> None:
        """Settle messages by one request; where one of them spoils it, each by its own.

        What cannot be settled is left to its lock, and whoever gets it then finds it surplus.
        """
        if not messages:
            return
        try:
            are_ours = await self._asked_to_settle(outcome, [message.lock_token for message in messages])
        except GraticuleError as error:
            _log.info("messages are left to their locks", queue=self.name, count=len(messages), error=error.message)
            return
        if not are_ours and len(messages) > 1:
            for message in messages:
                await self._settled(outcome, [message])

    async def _asked_to_settle(self, outcome: str, lock_tokens: Sequence[object]) -> bool:
        """Ask for it more than once, for a link that was lost is replaced; False when one of the locks was lost."""
        backoff = Backoff()
        for is_last in (False,) * (MOST_TRIES - 1) + (True,):
            try:
                async with self._link("settle messages") as receiver:
                    return await _settled_by_request(receiver, outcome, lock_tokens)
            except Unavailable:
                if is_last:
                    raise
                await asyncio.sleep(backoff.next())
        return False

    async def _keep_locks(self) -> None:
        while True:
            await self._some_held.wait()  # or a lock that is shorter than a pause would be lost in it
            if not self._held:
                self._some_held.clear()
                continue
            await asyncio.sleep(self._look_seconds())
            now = datetime.now(UTC)
            due = [message for message, lock in self._held.items() if _locked_until(message) - now < lock / 2]
            for message in due:
                await self._kept(message)

    def _look_seconds(self) -> float:
        shortest = min(self._held.values()).total_seconds()
        return min(max(shortest / 6, SHORTEST_LOOK_SECONDS), LOOK_SECONDS)

    async def _kept(self, message: ServiceBusReceivedMessage) -> None:
        """Renew a lock, but of a message that nobody here had time for: another may have.

        A task whose lock is lost is run to its end all the same: the rows say whose it is.
        """
        if message in self._arrived and await self._handed_on(message):
            return
        async with self._link("renew a lock") as receiver:
            try:
                await receiver.renew_message_lock(message)
            except LOST:
                self._held.pop(message, None)

    async def _handed_on(self, message: ServiceBusReceivedMessage) -> bool:
        """Hand a message on; False when that cannot be done now, and it is kept."""
        if self._hand_on is None:
            return False
        self._arrived.remove(message)
        try:
            await self._hand_on(self, [message])
        except GraticuleError:
            self._arrived.append(message)
            return False
        return True

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


async def _settled_by_request(receiver: ServiceBusReceiver, outcome: str, lock_tokens: Sequence[object]) -> bool:
    """Settle any number of messages, also those of a link that was lost; False when one of the locks was, too.

    The client has no name of its own for it, and uses it itself for one message where the link is gone.
    """
    settle: Callable[[str, Sequence[object]], Awaitable[object]] = receiver._settle_message_via_mgmt_link  # noqa: SLF001
    try:
        await settle(outcome, lock_tokens)
    except LOST:
        return False
    return True


def _locked_until(message: ServiceBusReceivedMessage) -> datetime:
    return message.locked_until_utc or datetime.now(UTC)
