"""Locks end and are renewed, messages come when they are due, and go when their time is over."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError
from tests.integration.servicebus.bus import Bus
from tests.integration.servicebus.clients import Clients, gets_nothing, one
from tests.servicebus_emulator import QueueOptions


@pytest.fixture
def queue(bus: Bus) -> str:
    return bus.new_queue(QueueOptions())


async def test_a_lock_is_renewed(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        first = message.locked_until_utc
        await asyncio.sleep(0.2)
        assert await receiver.renew_message_lock(message) >= first + timedelta(seconds=0.2)


async def test_a_lock_is_renewed_as_long_as_it_takes(clients: Clients) -> None:
    lock = max(3, clients.bus.lock_seconds)  # the client looks at it each second, and renews it after its first half
    queue = clients.bus.new_queue(QueueOptions(lock_seconds=lock))
    async with clients.links(queue, receivers=2) as (sender, receiver, other):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        async with clients.renewing(receiver, message):
            assert await other.receive_messages(max_wait_time=1.2 * lock) == []
            assert message.auto_renew_error is None
            await receiver.complete_message(message)


async def test_a_message_comes_again_when_its_lock_ends(clients: Clients) -> None:
    queue = clients.bus.new_queue(QueueOptions(lock_seconds=clients.bus.lock_seconds))
    async with clients.links(queue, receivers=2) as (sender, receiver, other):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        again = await one(other)
        assert datetime.now(UTC) >= message.locked_until_utc
        assert again.delivery_count == 1
        with pytest.raises(MessageLockLostError):
            await receiver.renew_message_lock(message)
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(message)


async def test_a_lock_that_is_gone_is_not_renewed(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        await receiver.complete_message(message)
        message._settled = False  # so that the client asks the broker
        with pytest.raises(MessageLockLostError):
            await receiver.renew_message_lock(message)


async def test_scheduled_messages_come_when_they_are_due(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        due = datetime.now(UTC) + timedelta(seconds=1.5)
        by_call, cancelled = await sender.schedule_messages([ServiceBusMessage("1"), ServiceBusMessage("no")], due)
        await sender.send_messages(ServiceBusMessage("2", scheduled_enqueue_time_utc=due + timedelta(seconds=0.1)))
        await sender.cancel_scheduled_messages([cancelled])
        assert by_call < cancelled
        first = await one(receiver)
        assert datetime.now(UTC) >= due - timedelta(milliseconds=1)  # the wire tells milliseconds
        second = await one(receiver)
        assert (str(first), str(second)) == ("1", "2")
        assert await gets_nothing(receiver, clients.bus)


async def test_an_expired_message_becomes_a_dead_letter(clients: Clients) -> None:
    queue = clients.bus.new_queue(QueueOptions(dead_letter_on_expiry=True))
    async with clients.links(queue, dead_letters=True) as (sender, receiver, dead_letters):
        await sender.send_messages(ServiceBusMessage("x", time_to_live=timedelta(seconds=0.3)))
        dead = await one(dead_letters)
        assert (str(dead), dead.dead_letter_reason) == ("x", "TTLExpiredException")
        assert await gets_nothing(receiver, clients.bus)


async def test_an_expired_message_is_gone_without_dead_letters(clients: Clients) -> None:
    queue = clients.bus.new_queue(QueueOptions(ttl_seconds=1))
    async with clients.links(queue, dead_letters=True) as (sender, receiver, dead_letters):
        await sender.send_messages(ServiceBusMessage("x", time_to_live=timedelta(hours=1)))
        await asyncio.sleep(1.1)
        assert await receiver.peek_messages(sequence_number=1) == []
        assert await gets_nothing(dead_letters, clients.bus)
