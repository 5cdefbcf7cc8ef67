"""Tasks that come by the broker: the rows say who has one, and a message too many does no harm."""

import json
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs
from tests.integration.messaging.bus import QUEUE, Bus, dead_letters, discarded, failing, put, received, twice, until
from tests.servicebus_emulator.message import Section

from graticule.core import fault_points
from graticule.core.errors import Unavailable
from graticule.core.fault_points import Commit, Moment
from graticule.core.ids import WorkerId
from graticule.core.states import MessageStatus
from graticule.messaging.ledger import DatabaseLedger
from graticule.messaging.servicebus.documents import LARGEST_BODY_BYTES
from graticule.messaging.servicebus.namespace import Namespace
from graticule.repositories.database import Connection
from graticule.repositories.processes import WorkerRepository
from graticule.repositories.tasks import LeaseState
from graticule.worker.presence import worker_row

TASK: dict[str, Any] = {"task_id": "t", "job_id": "job", "node_id": "node", "handler": "echo", "queue": QUEUE}


async def test_a_duplicate_is_discarded_whoever_gets_it(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker(), bus.receiver() as queue:
        (message,) = await received(queue, 1)
        twice(bus.queue, "t")
        async with bus.receiver("other") as other:
            await discarded(other, bus.queue, left=1)
        twice(bus.queue, "t")
        await discarded(queue, bus.queue, left=1)
        assert await queue.renew([message]) == {"t": LeaseState.HELD}
        queue.release(message)
        await until(lambda: not bus.queue.messages)


async def test_two_of_a_kind_that_come_together_are_one_task(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker():
        await until(lambda: bus.queue.messages)
        twice(bus.queue, "t")
        twice(bus.queue, "t")
    async with bus.receiver() as queue:
        await received(queue, 1)
        await discarded(queue, bus.queue, left=1)


async def test_what_a_dead_worker_had_received_and_not_taken_is_sent_anew(bus: Bus, connection: Connection) -> None:
    await bus.give("t", "elsewhere")
    times = {"worker_lease_seconds": 0.4, "heartbeat_interval_seconds": 0.2}
    async with bus.broker(**times), Namespace(bus.settings) as namespace:
        dead = namespace.receiver(QUEUE)
        assert len(await dead.receive_messages(2, 10)) == 2
        await bus.until_sent("t", "elsewhere")
        await connection.execute("UPDATE dagapp.dag_tasks SET queue = 'elsewhere' WHERE task_id = 'elsewhere'")
        await WorkerRepository(connection).announce(
            worker_row(WorkerId("dead"), [QUEUE], ["echo"], 1), datetime.now(UTC)
        )
        async with bus.receiver("other") as other:
            assert [message.task_id for message in await received(other, 1)] == ["t"]
        assert (await bus.task("elsewhere")).sent_at is not None
        await dead.close()


async def test_a_task_whose_lease_ran_out_is_sent_anew_and_its_old_message_discarded(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker() as broker, bus.receiver() as silent, bus.receiver("other") as other:
        (lost,) = await received(silent, 1)
        await bus.reap()
        broker.announce()
        (held,) = await received(other, 1)
        assert (held.task_id, held.delivery_count, bus.queue.locked) == ("t", 2, 2)
        assert await silent.renew([lost]) == {"t": LeaseState.LOST}
        assert await silent.abandon([lost]) == set()
        await discarded(silent, bus.queue, left=1)
        other.release(held)
        await until(lambda: not bus.queue.messages)


async def test_a_worker_that_lost_a_task_may_have_it_again(bus: Bus) -> None:
    """It does not know yet that it lost it: what comes is not the duplicate that it seems to be."""
    await bus.give("t")
    async with bus.broker() as broker, bus.receiver() as queue:
        (lost,) = await received(queue, 1)
        await bus.reap()
        broker.announce()
        (held,) = await received(queue, 1)
        assert (held.task_id, held.delivery_count) == ("t", 2)
        await until(lambda: len(bus.queue.messages) == 1)
        queue.release(lost)
        assert await queue.abandon([lost]) == set()
        assert await queue.renew([held]) == {"t": LeaseState.HELD}
        twice(bus.queue, "t")
        await discarded(queue, bus.queue, left=1)
        queue.release(held)
        await until(lambda: not bus.queue.messages)


async def test_what_is_given_back_is_sent_anew_and_no_delivery_counted(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker() as broker, bus.receiver() as queue:
        assert await queue.abandon(await received(queue, 1), counts=False) == {"t"}
        broker.announce()
        (again,) = await received(queue, 1)
        assert again.delivery_count == 1
        (entry,) = bus.queue.messages
        assert entry.deliveries == 0, "neither here nor there"
        assert await queue.abandon([again]) == {"t"}
        broker.announce()
        assert [message.delivery_count for message in await received(queue, 1)] == [2]


async def test_what_is_given_back_for_later_waits_at_the_broker(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker() as broker, bus.receiver() as queue:
        assert await queue.abandon(await received(queue, 1), delay_seconds=60) == {"t"}
        broker.announce()
        await until(lambda: bus.queue.scheduled == 1 and len(bus.queue.messages) == 1)


async def test_a_lost_answer_to_the_question_for_a_lease_is_asked_for_again(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.give("t")
    async with bus.broker(), bus.receiver() as queue:
        monkeypatch.setattr(fault_points, "_watchers", [failing(Commit.CLAIM, Moment.AFTER)])
        with pytest.raises(Exception, match="cannot be reached"):
            await received(queue, 1)
        assert (await bus.task("t")).delivery_count == 1
        assert await queue.abandon_all_but([]) == set()
        assert [message.delivery_count for message in await queue.receive(QUEUE, 1)] == [1]


async def test_what_is_only_for_some_handlers_is_not_received_at_all(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker(), bus.receiver() as queue:
        await bus.until_sent("t")
        assert await queue.receive(QUEUE, 5, without=["raster"]) == []
        assert (bus.queue.active, bus.queue.locked) == (1, 0)


async def test_a_task_that_is_set_aside_is_a_dead_letter_here_and_there(bus: Bus) -> None:
    await bus.give("t", "u")
    async with bus.broker(), bus.receiver() as queue:
        first, second = sorted(await received(queue, 2), key=lambda message: message.task_id)
        assert await queue.dead_letter(first, "nobody can run it: " + "é" * 5000)
        (entry,) = dead_letters(bus.queue)
        assert (entry.id, entry.reason) == ("t", "set-aside")
        assert entry.description.startswith("nobody can run it: é")
        assert (await bus.task("t")).status is MessageStatus.DEAD
        await bus.reap()
        assert not await queue.dead_letter(second, "too late")
        (again,) = await received(queue, 1)
        assert (again.task_id, again.delivery_count) == ("u", 2), "it waits, and is not set aside"
        assert len(dead_letters(bus.queue)) == 1


MALFORMED: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"<task/>", "The message is not a task: body: Invalid JSON"),
    "nothing": (b"", "The message is not a task: body: Invalid JSON"),
    "bad text": (b'{"task_id": "\xff"}', "The message is not a task: body: Invalid JSON"),
    "a list": (b"[]", "The message is not a task: body: Input should be"),
    "empty": (b"{}", "The message is not a task: task_id: Field required."),
    "wrong type": (json.dumps({**TASK, "task_id": ["t"]}).encode(), "task_id: Input should be a valid string"),
    "too long": (json.dumps({**TASK, "task_id": "t" * 225}).encode(), "task_id: String should have at most 224"),
    "nul": (json.dumps({**TASK, "task_id": "t\0"}).encode(), "task_id"),
    "deep": (b'{"params": ' + b'{"a":' * 1000 + b"1" + b"}" * 1001, "The message is not a task"),
    "too large": (b" " * (LARGEST_BODY_BYTES + 1), "The message has more than 1,048,576 bytes."),
}


async def test_what_is_no_task_becomes_a_dead_letter_with_its_reason_and_the_rest_goes_on(bus: Bus) -> None:
    for name, (body, _) in MALFORMED.items():
        put(bus.queue, body, name)
    put(bus.queue, b"not bytes", "a value", section=Section.VALUE)
    put(bus.queue, json.dumps({**TASK, "task_id": "gone"}).encode(), "unknown")
    await bus.give("t")
    with capture_logs() as logged:
        async with bus.broker(), bus.receiver() as queue:
            assert [message.task_id for message in await received(queue, 1)] == ["t"]
            await until(lambda: len(bus.queue.messages) == 1)
    found = {entry.id: entry for entry in dead_letters(bus.queue)}
    assert found.keys() == {*MALFORMED, "a value", "unknown"}
    assert (found["unknown"].reason, found["unknown"].description) == ("unknown-task", "There is no task gone.")
    assert found["a value"].description == "The message does not carry bytes."
    for name, (_, description) in MALFORMED.items():
        assert found[name].reason == "malformed"
        assert description in found[name].description, name
        assert len(found[name].description) <= 4000
    assert [line["event"] for line in logged] == ["a message is set aside"] * len(found)


async def test_the_row_says_what_is_to_be_done_whatever_the_message_says(bus: Bus, connection: Connection) -> None:
    await bus.give("t", params={"a": 1})
    async with bus.broker(), bus.receiver() as queue:
        await bus.until_sent("t")
        changed = "SET params = '{\"changed\": true}', handler = 'sleep', timeout_seconds = 7"
        await connection.execute(f"UPDATE dagapp.dag_tasks {changed}".encode())
        (message,) = await received(queue, 1)
    assert (message.params, message.handler, message.timeout_seconds) == ({"changed": True}, "sleep", 7)


async def test_a_message_is_believed_only_which_task_it_names(bus: Bus, connection: Connection) -> None:
    await bus.give("t", params={"a": 1})
    await connection.execute("UPDATE dagapp.dag_tasks SET sent_at = now()")  # another has sent it
    put(bus.queue, json.dumps({"task_id": "t", "params": [1], "timeout_seconds": 0}).encode(), "t")
    async with bus.receiver() as queue:
        (message,) = await received(queue, 1)
    assert (message.params, message.handler, message.timeout_seconds) == ({"a": 1}, "echo", 3600)


async def test_a_message_that_could_not_be_given_back_is_let_go(bus: Bus) -> None:
    await bus.give("t")
    async with bus.broker(), bus.receiver() as queue:
        (message,) = await received(queue, 1)
        with patch.object(DatabaseLedger, "give_back", side_effect=Unavailable("away")), pytest.raises(Unavailable):
            await queue.abandon([message])
    async with bus.receiver("other") as other:
        await discarded(other, bus.queue, left=0)  # the lease runs out, and the task is sent anew


FORGOTTEN_LEASE = """
    UPDATE dagapp.dag_tasks
    SET status = 'queued', delivery_count = 0, leased_by = NULL, lease_expires_at = NULL, sent_at = now()
"""


async def test_a_task_whose_lease_the_database_forgot_is_brought_to_someone_else(bus: Bus) -> None:
    """A server that crashes may lose the last leases: the row waits and says that it was sent, so nobody sends it."""
    await bus.give("t")
    async with bus.broker(), bus.receiver() as queue, bus.receiver("other") as other:
        (lost,) = await received(queue, 1)
        async with bus.orchestrators.connection() as connection:
            await connection.execute(FORGOTTEN_LEASE)
        queue.release(lost, is_lost=True)
        await queue.stop_receiving()
        (held,) = await received(other, 1)
        assert (held.task_id, held.delivery_count) == ("t", 1)
