"""Several consumers share a queue, and one consumer has several messages at hand."""

import asyncio

import pytest
from azure.servicebus import ServiceBusMessage
from tests.integration.servicebus.bus import Bus
from tests.integration.servicebus.clients import Clients, one, some
from tests.servicebus_emulator import QueueOptions

QUIET = 2  # seconds without a message after which there are no more


@pytest.fixture
def queue(bus: Bus) -> str:
    return bus.new_queue(QueueOptions())


async def test_messages_are_iterated_over(clients: Clients, queue: str) -> None:
    async with clients.links(queue, prefetch_count=10, max_wait_time=QUIET) as (sender, receiver):
        await sender.send_messages([ServiceBusMessage(str(number)) for number in range(30)])
        seen = []
        async for message in receiver:
            seen.append(str(message))
            await receiver.complete_message(message)
        assert seen == [str(number) for number in range(30)]


async def test_each_message_goes_to_one_of_many_consumers(clients: Clients, queue: str) -> None:
    seen: list[list[str]] = []

    async def consume(receiver: object) -> None:
        mine: list[str] = []
        seen.append(mine)
        async for message in receiver:  # type: ignore[attr-defined]
            mine.append(str(message))
            await receiver.complete_message(message)  # type: ignore[attr-defined]

    async with clients.links(queue, receivers=3, prefetch_count=5, max_wait_time=QUIET) as (sender, *receivers):
        await sender.send_messages([ServiceBusMessage(str(number)) for number in range(60)])
        await asyncio.gather(*(consume(receiver) for receiver in receivers))
        assert sorted(int(each) for mine in seen for each in mine) == list(range(60))
        assert all(seen)


async def test_messages_are_settled_at_the_same_time(bus: Bus, queue: str) -> None:
    clients = Clients(bus, is_aio=True)  # the other client is not made for several threads
    async with clients.links(queue, prefetch_count=50, dead_letters=True) as (sender, receiver, dead_letters):
        await sender.send_messages([ServiceBusMessage(str(number)) for number in range(200)])
        messages = await some(receiver, 200)
        settle = (receiver.complete_message, receiver.dead_letter_message)
        await asyncio.gather(*(settle[number % 2](message) for number, message in enumerate(messages)))
        assert {int(str(dead)) for dead in await some(dead_letters, 100)} == set(range(1, 200, 2))
        assert await receiver.peek_messages(sequence_number=1) == []


async def test_messages_that_nobody_asked_for_go_back(clients: Clients, queue: str) -> None:
    """A client that closes gives back what it has prefetched; the next one gets it as if for the first time."""
    async with clients.links(queue) as (sender, other):
        async with clients.links(queue, prefetch_count=5) as (_, receiver):
            await sender.send_messages([ServiceBusMessage(str(number)) for number in range(3)])
            assert str(await one(receiver)) == "0"
        rest = await some(other, 2)
        assert [(str(message), message.delivery_count) for message in rest] == [("1", 0), ("2", 0)]
