"""Tasks go to the broker from their rows, and a row says so only when the broker has said so."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tests.integration.messaging.bus import QUEUE, Bus, Gate, discarded, failing, received, refusing, until
from tests.integration.repositories import rows
from tests.servicebus_emulator import QueueOptions

from graticule.core import fault_points
from graticule.core.fault_points import Commit, Moment
from graticule.core.ids import WorkerId
from graticule.messaging.ledger import DatabaseLedger
from graticule.messaging.metrics import QueueMetrics
from graticule.messaging.servicebus.namespace import Namespace
from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue
from graticule.orchestrator import broker as broker_module
from graticule.orchestrator.broker import Broker
from graticule.repositories.database import Connection


async def test_a_message_says_what_its_task_is(bus: Bus, connection: Connection) -> None:
    long_id = "ä" * 224
    await bus.give("t", params={"a": [1, "ü"]}, retry_count=2, timeout_seconds=7, traceparent="00-a-b-01")
    await bus.give(long_id)
    async with bus.broker(service_bus_message_seconds=7200):
        await until(lambda: len(bus.queue.messages) == 2)
        first, second = sorted(bus.queue.messages, key=lambda entry: len(entry.id))
        assert (first.id, second.id) == ("t", sha256(long_id.encode()).hexdigest())
        assert json.loads(first.body) == {
            "task_id": "t",
            "job_id": "job",
            "node_id": "node",
            "handler": "echo",
            "params": {"a": [1, "ü"]},
            "queue": QUEUE,
            "timeout_seconds": 7,
            "retry_count": 2,
            "traceparent": "00-a-b-01",
        }
        assert first.message.ttl == 7200 * 1000
        assert json.loads(second.body)["task_id"] == long_id
        await bus.until_sent("t", long_id)


async def test_a_task_whose_time_has_not_come_waits_at_the_broker(bus: Bus) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=2.5)
    await bus.give("later", available_at=soon)
    await bus.give("now")
    async with bus.broker(), bus.receiver() as queue:
        assert [message.task_id for message in await received(queue, 1)] == ["now"]
        (scheduled,) = [entry for entry in bus.queue.messages if entry.id == "later"]
        assert bus.queue.scheduled == 1
        assert scheduled.message.scheduled == pytest.approx(soon.timestamp() * 1000, abs=1)
        assert await queue.seconds_to_next([QUEUE]) is None
        assert [message.task_id for message in await received(queue, 1)] == ["later"]
        assert datetime.now(UTC) >= soon


async def test_many_tasks_travel_in_batches_and_one_too_large_without_its_parameters(bus: Bus) -> None:
    many = await bus.give(*(f"t{number}" for number in range(300)), params={"text": "x" * 5000})
    large = {"text": "y" * 1_100_000, "é": None}
    await bus.give("large", params=large)
    async with bus.broker(), bus.receiver() as queue:
        await until(lambda: len(bus.queue.messages) == 301)
        (entry,) = [each for each in bus.queue.messages if each.id == "large"]
        assert json.loads(entry.body)["params"] is None
        messages = {message.task_id: message for message in await received(queue, 301)}
        assert messages.keys() == {*many, "large"}
        assert messages["large"].params == large  # type: ignore[index]
        assert messages[many[0]].params == {"text": "x" * 5000}


async def test_a_row_is_noted_only_after_the_brokers_answer(bus: Bus, connection: Connection) -> None:
    await bus.give("t")
    async with bus.broker():
        bus.emulator.faults.delay(0.2)  # whatever the broker says: that it has the message, too
        await until(lambda: bus.queue.messages)
        assert (await bus.task("t")).sent_at is None
        await bus.until_sent("t")


async def test_whoever_ends_before_it_is_noted_sends_again_and_it_is_run_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.give("t")
    with monkeypatch.context() as broken:
        broken.setattr(fault_points, "_watchers", [failing(Commit.SEND, Moment.BEFORE, times=1000)])
        async with bus.broker():
            await until(lambda: bus.queue.messages)
    assert (await bus.task("t")).sent_at is None
    async with bus.broker():
        await bus.until_sent("t")
        assert [entry.id for entry in bus.queue.messages] == ["t", "t"]
        async with bus.receiver() as queue:
            (message,) = await received(queue, 1)
            await discarded(queue, bus.queue, left=1)
            queue.release(message)
            await until(lambda: not bus.queue.messages)
            assert (await bus.task("t")).delivery_count == 1


async def test_a_late_note_does_not_hide_a_task_that_was_given_back_meanwhile(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is there before its row says so; who takes it and gives it back at once is faster than the note."""
    async with bus.receiver() as queue, bus.receiver("other") as other:
        gate = Gate(bus.orchestrators, Commit.SEND)
        monkeypatch.setattr(bus.orchestrators, "committing", gate.committing)
        await bus.give("t")
        async with bus.broker():
            await gate.reached.wait()
            assert await queue.abandon(await received(queue, 1), counts=False) == {"t"}
            gate.opened.set()
            assert [message.task_id for message in await received(other, 1)] == ["t"], "it is sent anew"


async def test_what_the_broker_has_dropped_is_sent_again(
    bus: Bus, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "AGAIN_SECONDS", 0.1)
    await bus.give("t", "fresh")
    await connection.execute("UPDATE dagapp.dag_tasks SET sent_at = now() - interval '2 h' WHERE task_id = 't'")
    await connection.execute("UPDATE dagapp.dag_tasks SET sent_at = now() WHERE task_id = 'fresh'")
    async with bus.broker(service_bus_message_seconds=3600), bus.receiver() as queue:
        assert [message.task_id for message in await received(queue, 1)] == ["t"]
        assert not bus.queue.active


async def test_a_queue_that_is_missing_is_told_once_and_holds_up_no_other(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "PERMANENT_PAUSE_SECONDS", 1.5)
    await bus.give("nowhere", queue="a-missing-one")
    with capture_logs() as logged:
        async with bus.broker():
            await bus.give("t")
            await bus.until_sent("t")
            await bus.give("u")
            await bus.until_sent("u")
            (told,) = [line for line in logged if line["log_level"] == "error"]
            assert told["queue"] == "a-missing-one"
            assert told["error"] == (
                "Service Bus has no queue 'a-missing-one'. Make it: `graticule azure queues ensure`."
            )
            assert (await bus.task("nowhere")).sent_at is None
            created = bus.emulator.namespace.create("a-missing-one", QueueOptions())
            await bus.until_sent("nowhere")
            assert [entry.id for entry in created.messages] == ["nowhere"]


async def test_a_queue_that_takes_nothing_for_now_holds_up_no_other(bus: Bus) -> None:
    full = bus.emulator.namespace.create("a-full-one", QueueOptions())
    await bus.give("waits", queue="a-full-one")
    await bus.give("t")
    with capture_logs() as logged:
        async with bus.broker():
            with refusing(full):
                await bus.until_sent("t")
                assert (await bus.task("waits")).sent_at is None
            await bus.until_sent("waits")
    assert {line["log_level"] for line in logged} == {"warning"}


async def test_what_the_broker_carries_and_what_it_does_not_is_counted(bus: Bus) -> None:
    registry = CollectorRegistry()
    metrics = QueueMetrics(registry)
    await bus.give("t", "u")
    await bus.give("v", queue="missing")
    ledger = DatabaseLedger(bus.workers, bus.workers, WorkerId("me"), 60)
    async with (
        Broker(bus.settings, bus.orchestrators, rows.OWNER, metrics).running(),
        Namespace(bus.settings, metrics) as namespace,
        ServiceBusTaskQueue(namespace, ledger, [QUEUE]) as queue,
    ):
        taken = await received(queue, 2)
        await until(lambda: registry.get_sample_value("graticule_broker_errors_total", {"queue": "missing"}))
    assert all(message.waited_seconds is not None for message in taken)
    of_queue = {"queue": QUEUE}
    assert registry.get_sample_value("graticule_broker_messages_sent_total", of_queue) == 2
    assert registry.get_sample_value("graticule_broker_messages_received_total", of_queue) == 2
    assert registry.get_sample_value("graticule_broker_errors_total", of_queue) is None
