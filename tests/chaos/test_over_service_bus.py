"""Jobs over Service Bus, while connections to the broker are cut at random: nothing is lost, and nothing is doubled."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import orjson
import pytest
from azure.core.exceptions import AzureError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from tests.chaos import client as asking
from tests.chaos import handlers
from tests.chaos.client import BrokerPost, Client
from tests.chaos.history import History, read_history
from tests.chaos.installation import OPERATOR_KEY, QUICK, Crew, crew_at_work, settled
from tests.chaos.rules import report, violations
from tests.chaos.workflows import LATE_ID, late_workflow, many_workflow, one_workflow, retry_workflow
from tests.conftest import TestDatabase
from tests.given_away import all_rows, given_away
from tests.servicebus_emulator import Emulator, QueueOptions
from tests.servicebus_emulator.emulator import DEFAULT_KEYS
from tests.sockets import left_sockets_closed

from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus

SEED: Final = 20261116
OF_EACH: Final = 3
CALM_SECONDS: Final = 60.0
LEAST_CUTS: Final = 10


@pytest.fixture
def own_sockets() -> Iterator[None]:
    with left_sockets_closed():
        yield


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("own_sockets")
async def test_nothing_is_lost_or_doubled_when_connections_are_cut(
    emptied_database: TestDatabase, tmp_path: Path
) -> None:
    echo, fan_out, retry, late = one_workflow(), many_workflow(), retry_workflow(), late_workflow()
    queues = {name: QueueOptions(lock_seconds=5) for name in (handlers.QUEUE, asking.QUEUE)}
    async with Emulator(queues) as emulator, _post(emulator.connection_string) as post:
        crew = Crew(tmp_path, emptied_database, QUICK | _environment(emulator))
        crew.write([echo, fan_out, retry, late])
        client = Client(crew, [echo, fan_out, retry, late], Random(SEED), post)
        async with crew_at_work(crew), client.open():
            crew.hire(orchestrators=2, workers=2)
            emulator.faults.cut_at_random(0.04, SEED)
            for _ in range(OF_EACH):
                await client.submit(echo, {})
                await client.submit(fan_out, {"tasks": 12, "seconds": 0.05})
                await client.submit(retry, {})
                await client.submit(late, {})
                await client.send(echo)
            for job_id in [await client.submit(echo, {"seconds": 50}) for _ in range(OF_EACH)]:
                await client.cancel(job_id)
            is_settled = await settled(emptied_database, CALM_SECONDS)
            cuts = emulator.faults.cuts
            emulator.faults.stop()
            await _emptied(emulator)
            await _workers_leave(crew)
            is_settled &= await settled(emptied_database, CALM_SECONDS)
    history = await read_history(emptied_database.url(), crew.ledger, client.submitted)
    found = violations(history)
    assert (is_settled, found, crew.mishaps, client.problems) == (True, [], [], []), report(history, found)
    assert cuts >= LEAST_CUTS
    assert _outcomes(history) == {
        JobStatus.COMPLETED: 4 * OF_EACH,
        JobStatus.CANCELLED: OF_EACH,
        JobStatus.FAILED: OF_EACH,
    }
    assert {job.workflow_id for job in history.jobs if job.status is JobStatus.FAILED} == {LATE_ID}
    assert sum(event.event_type is EventType.NODE_RETRY for event in history.events) == 3 * OF_EACH
    assert {name: queue.dead for name, queue in emulator.queues.items()} == dict.fromkeys(queues, 0)
    logs = {file.name: file.read_text() for file in (tmp_path / "logs").glob("*.log")}
    assert len(logs) == 4
    assert all(logs.values()), "there was nothing to search"
    assert given_away(logs | await all_rows(emptied_database), [*DEFAULT_KEYS.values(), OPERATOR_KEY]) == set()


async def _workers_leave(crew: Crew) -> None:
    """End the workers in order: what they have still to tell, of cancelled tasks too, is told then."""
    for post in crew.workers:
        member, post.is_kept = post.fill(), False
        member.send(signal.SIGTERM)
        await asyncio.to_thread(member.wait)


async def _emptied(emulator: Emulator) -> None:
    """Wait until the broker has nothing left: what was kept from being settled comes again, and is surplus."""
    async with asyncio.timeout(CALM_SECONDS):
        while any(each.active + each.locked + each.scheduled for each in emulator.queues.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def _outcomes(history: History) -> dict[JobStatus, int]:
    statuses = [job.status for job in history.jobs]
    return {status: statuses.count(status) for status in set(statuses)}


def _environment(emulator: Emulator) -> dict[str, str]:
    return {
        "GRATICULE_LOG_LEVEL": "DEBUG",
        "GRATICULE_TRANSPORT": "servicebus",
        "GRATICULE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
    }


@asynccontextmanager
async def _post(connection_string: str) -> AsyncIterator[BrokerPost]:
    """Give the way on which a partner sends messages: again until the broker has it."""
    async with ServiceBusClient.from_connection_string(connection_string) as client:

        async def send(message_id: str, body: dict[str, Any]) -> None:
            while True:
                with contextlib.suppress(AzureError):
                    async with client.get_queue_sender(asking.QUEUE) as sender:
                        await sender.send_messages(ServiceBusMessage(orjson.dumps(body), message_id=message_id))
                        return

        yield send
