"""What clients meet when the broker or the way to it fails; a real namespace cannot be made to."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusServerBusyError
from tests.integration.servicebus.bus import Bus, EmulatedBus
from tests.integration.servicebus.clients import Clients, gets_nothing, one, some
from tests.servicebus_emulator import Queue, QueueOptions
from tests.servicebus_emulator.faults import Faults
from tests.sockets import left_sockets_closed


@pytest.fixture
def emulated(bus: Bus) -> Iterator[EmulatedBus]:
    emulated = bus.emulated("it does not fail on demand")
    with left_sockets_closed():
        yield emulated
        emulated.do(lambda emulator: emulator.faults.stop())


@pytest.fixture
def queue(emulated: EmulatedBus) -> str:
    return emulated.new_queue(QueueOptions(duplicate_seconds=60))


@pytest.fixture
def fail(emulated: EmulatedBus) -> Callable[[Callable[[Faults], None]], None]:
    """Let a fault begin."""
    return lambda fault: emulated.do(lambda emulator: fault(emulator.faults))


Fail = Callable[[Callable[[Faults], None]], None]


def _cuts(emulated: EmulatedBus) -> int:
    return emulated.do(lambda emulator: emulator.faults.cuts)


def _queue(emulated: EmulatedBus, name: str) -> Queue:
    return emulated.do(lambda emulator: emulator.queues[name])


async def test_clients_recover_from_a_cut(clients: Clients, emulated: EmulatedBus, queue: str, fail: Fail) -> None:
    async with clients.links(queue) as (sender, receiver):
        fail(lambda faults: faults.cut())
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        await receiver.complete_message(message)
    assert _queue(emulated, queue).messages == []


async def test_a_client_that_waits_recovers_from_a_cut(clients: Clients, queue: str, fail: Fail) -> None:
    async with clients.links(queue) as (sender, receiver):
        waiting = asyncio.create_task(one(receiver))
        await asyncio.sleep(0.1)
        fail(lambda faults: faults.cut())
        await sender.send_messages(ServiceBusMessage("x"))
        assert str(await waiting) == "x"


async def test_a_lock_outlives_its_connection(clients: Clients, emulated: EmulatedBus, queue: str, fail: Fail) -> None:
    """What was received before a cut is settled after it: the client asks the management of the queue to do it."""
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage("done"), ServiceBusMessage("dead"), ServiceBusMessage("again")])
        done, dead, again = await some(receiver, 3)
        fail(lambda faults: faults.cut())
        await receiver.complete_message(done)
        await receiver.dead_letter_message(dead, reason="why")
        await receiver.abandon_message(again)
        assert (await one(receiver)).delivery_count == 1
    assert [entry.reason for entry in _queue(emulated, queue).dead_letters.messages] == ["why"]  # type: ignore[union-attr]


async def test_a_message_whose_answer_was_lost_is_sent_again_and_discarded(
    clients: Clients, emulated: EmulatedBus, queue: str, fail: Fail
) -> None:
    before = _cuts(emulated)
    async with clients.links(queue) as (sender, _):
        fail(lambda faults: faults.cut_after(1))
        await sender.send_messages(ServiceBusMessage("x", message_id="1"))
    assert [entry.id for entry in _queue(emulated, queue).messages] == ["1"]
    assert _cuts(emulated) == before + 1


async def test_a_completion_whose_answer_was_lost_is_done(
    clients: Clients, emulated: EmulatedBus, queue: str, fail: Fail
) -> None:
    """The client asks again and hears that the lock is gone: what "lost" means here cannot be told from outside."""
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        fail(lambda faults: faults.cut_after(1))
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(message)
    assert _queue(emulated, queue).messages == []


async def test_nothing_is_lost_when_connections_are_cut_at_random(emulated: EmulatedBus, fail: Fail) -> None:
    queue = emulated.new_queue(QueueOptions(lock_seconds=3, duplicate_seconds=60))
    sent = [str(number) for number in range(20)]
    seen = set()
    before = _cuts(emulated)
    async with Clients(emulated, is_aio=True, retry_total=20).links(queue) as (sender, receiver):
        fail(lambda faults: faults.cut_at_random(0.03, seed=1))
        for name in sent:
            await sender.send_messages(ServiceBusMessage("x", message_id=name))
        while _queue(emulated, queue).messages:
            for message in await receiver.receive_messages(max_message_count=5, max_wait_time=6):
                seen.add(message.message_id)
                with suppress(MessageLockLostError):  # it is done, or it comes again
                    await receiver.complete_message(message)
        fail(lambda faults: faults.stop())
    assert _cuts(emulated) > before
    assert (seen, _queue(emulated, queue).dead) == (set(sent), 0)


async def test_a_busy_broker_is_asked_again(clients: Clients, queue: str, fail: Fail) -> None:
    async with clients.links(queue) as (sender, receiver):
        fail(lambda faults: faults.busy(1))
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        fail(lambda faults: faults.busy(1))
        await receiver.complete_message(message)
        assert await gets_nothing(receiver, clients.bus)


async def test_a_broker_that_stays_busy_is_told(clients: Clients, queue: str, fail: Fail) -> None:
    async with clients.sender(queue, retry_total=0) as sender:
        fail(lambda faults: faults.busy(seconds=60))
        with pytest.raises(ServiceBusServerBusyError):
            await sender.send_messages(ServiceBusMessage("x"))


async def test_a_lock_that_ends_early_is_told(clients: Clients, emulated: EmulatedBus, queue: str, fail: Fail) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        fail(lambda faults: faults.expire_locks(queue))
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(message)
        assert (await one(receiver)).delivery_count == 1


async def test_words_of_the_broker_come_late(clients: Clients, queue: str, fail: Fail) -> None:
    async with clients.links(queue) as (sender, _):
        fail(lambda faults: faults.delay(0.3))
        begin = monotonic()
        await sender.send_messages(ServiceBusMessage("x"))
        assert monotonic() - begin >= 0.3
        fail(lambda faults: faults.stop())
