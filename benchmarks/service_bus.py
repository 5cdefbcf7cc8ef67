"""The engine over Service Bus, beside a bare client that only receives and completes as many messages.

The broker is the emulator of the tests, in a process of its own. The bare client does it in the two ways that the
client library offers, one message after the other and many at once. It has nothing else to do: no row, no result, no
decision. Ours is timed from the submission of the job to its end.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from tests.servicebus_emulator.process import running_emulator
from tests.servicebus_emulator.queue import QueueOptions

from benchmarks.installation import Installation, deploy, installation, private_cluster
from benchmarks.report import Line
from benchmarks.workloads import FULL, Figure
from graticule.config import Settings, Transport
from graticule.worker.app import DEFAULT_QUEUES

TASKS: Final = 5_000
WARM_UP: Final = 200
LEAST_RATIO: Final = 0.7
AT_ONCE: Final = 100
SENT_AT_ONCE: Final = 500
QUEUE: Final = "bare"
BODY: Final = b"x" * 300  # about as long as the message of a no-op task
Announce = Callable[[str], None]


async def lines(rounds: int, announce: Announce) -> list[Line]:
    """Measure all in turn, and give the lines of the table."""
    queues = [QUEUE, Settings().job_queue_name, *DEFAULT_QUEUES]
    with running_emulator(dict.fromkeys(queues, QueueOptions(lock_seconds=300))) as emulator:
        environment = {
            "GRATICULE_TRANSPORT": Transport.SERVICEBUS.value,
            "GRATICULE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
        }
        async with private_cluster() as place:
            await deploy(place)
            async with installation(place, FULL, environment) as ours:
                await ours.fan_out_seconds(WARM_UP)
                one_by_one, at_once, taken = await _best(ours, emulator.connection_string, rounds, announce)
    return [_line("one after the other", one_by_one, taken), _line(f"{AT_ONCE} at once", at_once, taken)]


async def _best(ours: Installation, connection_string: str, rounds: int, announce: Announce) -> list[float]:
    """Run each in turn, round after round, and give the best time of each: the least disturbed."""
    taken = []
    for number in range(1, rounds + 1):
        announce(f"{TASKS:,} tasks: round {number} of {rounds}")
        bare = [await bare_seconds(connection_string, at_once=at_once) for at_once in (False, True)]
        taken.append([*bare, await ours.fan_out_seconds(TASKS)])
    return [min(times) for times in zip(*taken, strict=True)]


async def bare_seconds(connection_string: str, *, at_once: bool) -> float:
    """Give the time that a bare client takes to receive and complete the messages of a queue."""
    async with ServiceBusClient.from_connection_string(connection_string) as client:
        async with client.get_queue_sender(QUEUE) as sender:
            for first in range(0, TASKS, SENT_AT_ONCE):
                ids = range(first, min(first + SENT_AT_ONCE, TASKS))
                await sender.send_messages([ServiceBusMessage(BODY, message_id=str(each)) for each in ids])
        async with client.get_queue_receiver(QUEUE, prefetch_count=0 if at_once else 3 * AT_ONCE) as receiver:
            began = time.perf_counter()
            await _received(receiver, at_once=at_once)
            return time.perf_counter() - began


async def _received(receiver: ServiceBusReceiver, *, at_once: bool) -> None:
    left = TASKS
    while left:
        messages = await receiver.receive_messages(min(AT_ONCE, left), max_wait_time=30)
        left -= len(messages)
        if at_once:
            await asyncio.gather(*map(receiver.complete_message, messages))
        else:
            for message in messages:
                await receiver.complete_message(message)


def _line(way: str, bare: float, taken: float) -> Line:
    ratio = bare / taken
    return Line(
        f"fan-out of {TASKS:,} no-op tasks to the fan-in, beside a client that completes {way}",
        str(Figure(TASKS / bare, "messages/s")),
        str(Figure(TASKS / taken, "tasks/s")),
        f"{ratio:.2f}",
        f"at least {LEAST_RATIO:g} x the bare client",
        ratio >= LEAST_RATIO,
    )
