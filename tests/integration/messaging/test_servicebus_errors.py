"""What goes wrong with the broker: what passes is waited for, what does not is told, and no secret is."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.integration.messaging.bus import JOBS, QUEUE, Bus, received, until
from tests.servicebus_emulator import QueueOptions

from graticule.core.errors import ConfigurationError
from graticule.core.states import MessageStatus
from graticule.messaging.protocol import TaskMessage
from graticule.messaging.servicebus import inbound
from graticule.messaging.servicebus.namespace import Namespace
from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue
from graticule.orchestrator import broker as broker_module
from graticule.repositories.database import Connection

KEY = "an-emulated-key"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[EventDict]]:
    """Give what is logged, of which nothing may tell a secret."""
    caplog.set_level(logging.INFO)
    with capture_logs() as lines:
        yield lines
    told = f"{lines} {caplog.text}"
    assert KEY not in told
    assert "wrong-key" not in told
    assert "SharedAccessSignature" not in told


async def test_nothing_is_lost_or_doubled_while_connections_are_cut(
    bus: Bus, connection: Connection, logged: list[EventDict]
) -> None:
    cut = bus.emulator.namespace.create("cut", QueueOptions(lock_seconds=3, max_deliveries=1000))
    async with bus.broker() as broker, bus.receiver(queues=["cut"]) as one, bus.receiver("b", queues=["cut"]) as other:
        bus.emulator.faults.cut_at_random(0.05, seed=4)
        await bus.give(*(f"t{number}" for number in range(100)), queue="cut")
        broker.announce()
        ended = await ended_by([one, other], connection, 100)
        cuts = bus.emulator.faults.cuts
        bus.emulator.faults.stop()
        await until(lambda: nothing_more([one, other], cut.messages))
    assert cuts >= 3
    assert sorted(ended) == sorted(f"t{number}" for number in range(100))
    cursor = await connection.execute("SELECT DISTINCT status, delivery_count FROM dagapp.dag_tasks")
    assert await cursor.fetchall() == [{"status": MessageStatus.DONE, "delivery_count": 1}]
    assert cut.dead == 0
    assert {line["log_level"] for line in logged} <= {"info", "warning"}


async def ended_by(receivers: list[ServiceBusTaskQueue], connection: Connection, count: int) -> list[str]:
    """Do what workers do until so many tasks have ended: receive, write, release."""
    ended: list[str] = []

    async def work(queue: ServiceBusTaskQueue) -> None:
        while True:
            messages = await queue.receive("cut", 5)
            await end(connection, messages)
            ended.extend(message.task_id for message in messages)
            for message in messages:
                queue.release(message)
            if not messages:
                await anext(queue.heard())

    working = [asyncio.create_task(work(queue)) for queue in receivers]
    try:
        await until(lambda: len(ended) >= count, seconds=30)
    finally:
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    return ended


async def end(connection: Connection, messages: list[TaskMessage]) -> None:
    await connection.execute(
        "UPDATE dagapp.dag_tasks SET status = 'done', leased_by = NULL, lease_expires_at = NULL"
        " WHERE task_id = ANY (%s)",
        [[message.task_id for message in messages]],
    )


async def nothing_more(receivers: list[ServiceBusTaskQueue], messages: Sequence[object]) -> bool:
    for queue in receivers:
        assert await queue.receive("cut", 5) == []
    return not messages


async def test_what_is_held_when_the_connection_is_cut_is_settled_on_the_next_one(bus: Bus) -> None:
    await bus.give(*(f"t{number}" for number in range(20)))
    async with bus.broker() as broker, bus.receiver() as queue:
        held = await received(queue, 20)
        assert await queue.receive(QUEUE, 5) == []
        bus.emulator.faults.cut()
        for message in held:
            queue.release(message)
        await until(lambda: not bus.queue.messages)
        await bus.give("last")
        broker.announce()
        assert [message.task_id for message in await received(queue, 1)] == ["last"]


async def test_a_broker_that_is_busy_or_slow_is_waited_for(bus: Bus, logged: list[EventDict]) -> None:
    async with bus.broker() as broker, bus.receiver() as queue:
        bus.emulator.faults.busy(5)
        await bus.give("t", "u")
        broker.announce()
        messages = await received(queue, 2)
        bus.emulator.faults.busy(3)
        bus.emulator.faults.delay(0.05)
        for message in messages:
            queue.release(message)
        await until(lambda: not bus.queue.messages)
    assert {line["log_level"] for line in logged} <= {"info", "warning"}


async def test_a_missing_queue_is_told_once_in_a_while_and_does_not_hold_up_the_worker(
    bus: Bus, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (inbound, broker_module):
        monkeypatch.setattr(module, "PERMANENT_PAUSE_SECONDS", 1.0)
    await bus.give("t")
    await bus.give("u", queue="new")
    async with bus.broker(), bus.receiver(queues=["new", QUEUE]) as queue:
        assert await queue.receive("new", 1) == []
        assert [message.task_id for message in await received(queue, 1)] == ["t"]
        await until(lambda: [line for line in logged if line["event"] == "the broker refuses"])
        refused = [line for line in logged if line["event"] == "the broker refuses"]
        assert [(line["queue"], line["again_in"]) for line in refused] == [("new", 1.0)]
        assert refused[0]["error"] == "Service Bus has no queue 'new'. Make it: `graticule azure queues ensure`."
        bus.emulator.namespace.create("new", QueueOptions())
        assert [message.task_id for message in await received(queue, 1, "new")] == ["u"]


async def test_a_wrong_key_is_told_without_the_key_and_is_mended_where_it_is_wrong(
    bus: Bus, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (inbound, broker_module):
        monkeypatch.setattr(module, "PERMANENT_PAUSE_SECONDS", 0.5)
    wrong: dict[str, Any] = {
        "service_bus_connection_string": SecretStr(bus.emulator.connection_string.replace(KEY, "wrong-key"))
    }
    await bus.give("t")
    async with bus.broker(**wrong), bus.receiver(**wrong) as queue:
        assert await queue.receive(QUEUE, 1) == []
        await until(lambda: {line["event"] for line in logged} >= {"the broker refuses", "tasks cannot be sent"})
        assert {line["queue"] for line in logged if line["event"] == "the broker refuses"} == {QUEUE, JOBS}
        for line in logged:
            assert line["log_level"] == "error"
            assert "Service Bus refused to " in line["error"]
            assert "Check the key, or that the identity has the roles" in line["error"]
        bus.emulator._keys["RootManageSharedAccessKey"] = "wrong-key"
        assert [message.task_id for message in await received(queue, 1)] == ["t"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("Endpoint=sb://x.servicebus.windows.net/;SharedAccessKey=hidden-one", "is not a connection string"),
        ("hidden-one", "is not a connection string"),
        (None, "The namespace of Service Bus is not known."),
    ],
)
async def test_settings_that_cannot_be_are_told_without_what_they_are(bus: Bus, given: str | None, told: str) -> None:
    wrong = bus.settings.model_copy(update={"service_bus_connection_string": given and SecretStr(given)})
    with pytest.raises(ConfigurationError, match=told) as refused:
        Namespace(wrong)
    assert "hidden-one" not in f"{refused.value} {refused.value.detail} {refused.value.__cause__!r}"
    assert refused.value.hint is not None
