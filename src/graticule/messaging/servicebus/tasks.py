"""Tasks that come to a worker by the broker: a message is taken under the lease that the ledger gives."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from azure.servicebus import ServiceBusReceivedMessage

from graticule.core.channels import queue_channel
from graticule.core.errors import GraticuleError, InvalidInput
from graticule.core.ids import TaskId
from graticule.logs import get_logger
from graticule.messaging.ledger import TaskLedger
from graticule.messaging.protocol import TaskMessage
from graticule.messaging.servicebus.documents import named_task
from graticule.messaging.servicebus.inbound import InboundQueue
from graticule.messaging.servicebus.namespace import Namespace
from graticule.repositories.listener import Heard
from graticule.repositories.tasks import LeaseState, TakenTask

MALFORMED: Final = "malformed"
UNKNOWN: Final = "unknown-task"
SET_ASIDE: Final = "set-aside"

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message, the task of which it tells, and where it came from."""

    received: ServiceBusReceivedMessage
    task_id: TaskId
    queue: InboundQueue


class ServiceBusTaskQueue:
    """A `TaskQueue` whose messages the broker carries. It works while it is entered."""

    def __init__(self, namespace: Namespace, ledger: TaskLedger, queues: Sequence[str]) -> None:
        self._namespace = namespace
        self._ledger = ledger
        self._names = tuple(queues)
        self._queues: dict[str, InboundQueue] = {}
        self._held: dict[TaskId, tuple[int, Arrival]] = {}  # with the delivery that names the lease
        self._announced: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        for name in self._names:
            announce = partial(self._announced.put_nowait, name)
            self._queues[name] = InboundQueue(self._namespace, name, announce, self._handed_on)
        await asyncio.gather(*(queue.__aenter__() for queue in self._queues.values()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(queue.__aexit__() for queue in self._queues.values()))

    async def stop_receiving(self) -> None:
        """Take no more messages, and let others have those that nobody here has taken up."""
        await asyncio.gather(*(queue.stop_receiving() for queue in self._queues.values()))

    async def heard(self) -> AsyncIterator[Heard]:
        """Tell of queues whose messages have arrived, as the database's notifications do."""
        while True:
            yield Heard(queue_channel(await self._announced.get()))

    async def receive(
        self, queue: str, limit: int, without: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> list[TaskMessage]:
        """Take up to so many messages of a queue; none when only those of some handlers or partners are wanted.

        What a message is for is known only when it was received, and then nobody else can have it.
        """
        if without or passed_over:
            return []
        inbound = self._queues[queue]
        received = inbound.take(limit)
        try:
            arrivals = [arrival for each in received if (arrival := await self._read(inbound, each))]
            messages = await self._leased(arrivals)
        except BaseException:
            inbound.put_back(received)  # the ledger is away: nothing is lost
            raise
        inbound.want_more(len(received) - len(messages))  # in place of those that were none
        return messages

    async def seconds_to_next(self, queues: Sequence[str]) -> float | None:
        """Give None: what waits for its time does so at the broker, which then sends it."""
        return None

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases; the broker's locks are kept besides."""
        return await self._ledger.renew(messages)

    async def complete(self, messages: Sequence[TaskMessage]) -> set[TaskId]:
        """End messages, and give those that were held."""
        held = {message.task_id for message in messages if self._holds(message.task_id, message.delivery_count)}
        for message in messages:
            self.release(message)
        return held

    async def abandon(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Give tasks back: they are sent anew, for the broker counts every delivery and knows of no delay."""
        given_back: set[TaskId] = set()
        try:
            given_back = await self._ledger.give_back(messages, delay_seconds=delay_seconds, counts=counts)
        finally:  # if the ledger is away, the leases run out, and the tasks are sent anew then
            for message in messages:
                self.release(message, is_lost=message.task_id not in given_back)
        return given_back

    async def abandon_all_but(self, held: Collection[TaskId]) -> set[TaskId]:
        """Give back nothing: a lease whose answer was lost is given again when it is asked for again."""
        return set()

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a task aside for good, and its message with the reason; False when its lease was lost."""
        is_ours = await self._ledger.dead_letter(message, reason)
        if is_ours and (arrival := self._let_go(message)):
            await self._set_aside(arrival.queue, arrival.received, SET_ASIDE, reason)
        self.release(message, is_lost=not is_ours)
        return is_ours

    def release(self, message: TaskMessage, *, is_lost: bool = False) -> None:
        """End the message of a task that has ended; where the lease was lost, let someone ask the rows once more.

        The task is another's then, or withdrawn, or waits: a server that crashes may forget that it gave the lease, and
        what its row says was sent is not sent again.
        """
        if arrival := self._let_go(message):
            (arrival.queue.give_up if is_lost else arrival.queue.complete)(arrival.received)

    def _holds(self, task_id: TaskId, delivery_count: int) -> bool:
        return task_id in self._held and self._held[task_id][0] == delivery_count

    def _let_go(self, message: TaskMessage) -> Arrival | None:
        """Give what brought a task, and hold it no longer; nothing when another lease of it is held by now."""
        if not self._holds(message.task_id, message.delivery_count):
            return None
        return self._held.pop(message.task_id)[1]

    async def _read(self, queue: InboundQueue, received: ServiceBusReceivedMessage) -> Arrival | None:
        """Read a message; one that is no task is set aside, for it never will be."""
        try:
            return Arrival(received, named_task(received), queue)
        except InvalidInput as error:
            await self._set_aside(queue, received, MALFORMED, error.message)
            return None

    async def _leased(self, arrivals: Sequence[Arrival]) -> list[TaskMessage]:
        """Ask for the leases, and give the tasks that we got; all other messages are surplus.

        Also for those that we seem to hold: a lease that ran out is given anew, and then the older message is surplus.
        """
        wanted = {each.task_id: each for each in arrivals}
        surplus = [each for each in arrivals if wanted[each.task_id] is not each]
        taken = await self._ledger.take(list(wanted)) if wanted else {}
        messages = []
        for task_id, arrival in wanted.items():
            if task_id not in taken:
                await self._set_aside(arrival.queue, arrival.received, UNKNOWN, f"There is no task {task_id}.")
            elif not taken[task_id].is_held or self._holds(task_id, taken[task_id].delivery_count):
                surplus.append(arrival)
            else:
                if task_id in self._held:
                    surplus.append(self._held[task_id][1])
                self._held[task_id] = (taken[task_id].delivery_count, arrival)
                messages.append(_message(task_id, taken[task_id]))
        for arrival in surplus:
            arrival.queue.complete(arrival.received)
        return messages

    async def _handed_on(self, queue: InboundQueue, received: Sequence[ServiceBusReceivedMessage]) -> None:
        """Have tasks sent anew that nobody here has time for: to abandon a message counts against it."""
        arrivals = [arrival for each in received if (arrival := await self._read(queue, each))]
        await self.abandon(await self._leased(arrivals), counts=False)

    async def _set_aside(
        self, queue: InboundQueue, received: ServiceBusReceivedMessage, reason: str, description: str
    ) -> None:
        _log.warning("a message is set aside", queue=queue.name, reason=reason, description=description)
        try:
            await queue.dead_letter(received, reason, description)
        except GraticuleError as error:  # it comes again when its lock runs out
            _log.warning("a message could not be set aside", queue=queue.name, error=str(error))


def _message(task_id: TaskId, taken: TakenTask) -> TaskMessage:
    return TaskMessage(
        task_id=task_id,
        job_id=taken.job_id,
        node_id=taken.node_id,
        handler=taken.handler,
        params=taken.params or {},
        queue=taken.queue,
        timeout_seconds=taken.timeout_seconds,
        retry_count=taken.retry_count,
        traceparent=taken.traceparent,
        priority=taken.priority,
        delivery_count=taken.delivery_count,
        max_deliveries=taken.max_deliveries,
        waited_seconds=taken.waited_seconds,
        sources=taken.sources,
    )
