"""Messages are sent, received and settled."""

import asyncio
import os
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode
from tests.integration.servicebus.bus import Bus
from tests.integration.servicebus.clients import Clients, gets_nothing, one, some
from tests.servicebus_emulator import QueueOptions


@pytest.fixture
def queue(bus: Bus) -> str:
    return bus.new_queue(QueueOptions(max_deliveries=3))


async def test_a_message_arrives_as_it_was_sent(clients: Clients, queue: str) -> None:
    sent: dict[str | bytes, Any] = {"whole": 1, "text": "é", "half": 1.5, "truth": True, "id": uuid.uuid4()}
    message = ServiceBusMessage(
        "a body",
        subject="s",
        message_id="an id",
        correlation_id="c",
        content_type="text/plain",
        application_properties=dict(sent),
    )
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(message)
        received = await one(receiver)
        assert (str(received), received.subject, received.message_id) == ("a body", "s", "an id")
        assert (received.correlation_id, received.content_type) == ("c", "text/plain")
        assert {_text(name): _text(value) for name, value in received.application_properties.items()} == sent
        assert received.delivery_count == 0
        assert received.sequence_number > 0
        assert received.enqueued_time_utc <= datetime.now(UTC) < received.locked_until_utc
        await receiver.complete_message(received)
        assert await gets_nothing(receiver, clients.bus)


async def test_batches_arrive_in_order(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        batch = await sender.create_message_batch()
        for number in range(50):
            batch.add_message(ServiceBusMessage(str(number), application_properties={"number": number}))
        await sender.send_messages(batch)
        await sender.send_messages([ServiceBusMessage(str(number)) for number in range(50, 55)])
        assert [str(message) for message in await some(receiver, 55)] == [str(number) for number in range(55)]


async def test_a_message_without_an_id_gets_one(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        assert (await one(receiver)).message_id


async def test_an_abandoned_message_comes_again(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage("first"), ServiceBusMessage("second")])
        await receiver.abandon_message(await one(receiver))
        again = await one(receiver)
        assert (str(again), again.delivery_count) == ("first", 1)


async def test_a_message_is_dead_lettered_with_a_reason(clients: Clients, queue: str) -> None:
    async with clients.links(queue, dead_letters=True) as (sender, receiver, dead_letters):
        await sender.send_messages(ServiceBusMessage("x", application_properties={"kept": 1}))
        await receiver.dead_letter_message(await one(receiver), reason="why", error_description="because")
        dead = await one(dead_letters)
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("why", "because")
        assert dead.application_properties[b"kept"] == 1
        assert dead.delivery_count == 0
        await dead_letters.complete_message(dead)
        assert await gets_nothing(dead_letters, clients.bus)


async def test_a_message_that_comes_too_often_is_dead_lettered(clients: Clients, queue: str) -> None:
    async with clients.links(queue, dead_letters=True) as (sender, receiver, dead_letters):
        await sender.send_messages(ServiceBusMessage("x"))
        for count in range(3):
            message = await one(receiver)
            assert message.delivery_count == count
            await receiver.abandon_message(message)
        assert (await one(dead_letters)).dead_letter_reason == "MaxDeliveryCountExceeded"
        assert await gets_nothing(receiver, clients.bus)


async def test_messages_can_be_looked_at(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage(name) for name in "abc"])
        await one(receiver)
        peeked = await receiver.peek_messages(max_message_count=10, sequence_number=1)
        assert [str(message) for message in peeked] == ["a", "b", "c"]
        after = await receiver.peek_messages(max_message_count=1, sequence_number=peeked[1].sequence_number)
        assert [str(message) for message in after] == ["b"]


async def test_a_deferred_message_is_received_by_its_number(clients: Clients, queue: str) -> None:
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        message = await one(receiver)
        await receiver.defer_message(message)
        assert await gets_nothing(receiver, clients.bus)
        [deferred] = await receiver.receive_deferred_messages([message.sequence_number])
        assert str(deferred) == "x"
        await receiver.complete_message(deferred)
        assert await receiver.peek_messages(sequence_number=1) == []


async def test_a_message_can_be_received_for_good(clients: Clients, queue: str) -> None:
    async with clients.links(queue, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage("x"))
        assert str(await one(receiver)) == "x"
        assert await receiver.peek_messages(sequence_number=1) == []


async def test_a_long_message_takes_several_frames(clients: Clients, queue: str) -> None:
    body = os.urandom(200_000)
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages(ServiceBusMessage(body))
        message = await one(receiver)
        assert b"".join(message.body) == body
        await receiver.complete_message(message)
        assert await gets_nothing(receiver, clients.bus)


async def test_a_message_whose_id_was_seen_is_discarded(clients: Clients) -> None:
    queue = clients.bus.new_queue(QueueOptions(duplicate_seconds=60))
    async with clients.links(queue) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage("a", message_id="1"), ServiceBusMessage("b", message_id="1")])
        message = await one(receiver)
        assert str(message) == "a"
        await receiver.complete_message(message)
        await sender.send_messages([ServiceBusMessage("c", message_id="1"), ServiceBusMessage("d", message_id="2")])
        assert str(await one(receiver)) == "d"


async def test_tls_carries_messages_and_settlements(tls_clients: Clients, queue: str) -> None:
    body = os.urandom(100_000)
    async with tls_clients.links(queue) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage(body), ServiceBusMessage("dead"), ServiceBusMessage("again")])
        first, second, third = await some(receiver, 3)
        assert b"".join(first.body) == body
        await receiver.renew_message_lock(first)
        await asyncio.gather(receiver.complete_message(first), receiver.abandon_message(third))
        await receiver.dead_letter_message(second, reason="why")
        again = await one(receiver)
        assert (str(again), again.delivery_count) == ("again", 1)


def _text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value
