"""Locks are kept while someone works on a message, and let go of when nobody does; the rows are written first."""

import asyncio
import time
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from tests.integration.messaging.bus import QUEUE, Bus, discarded, received, until
from tests.servicebus_emulator import QueueOptions

from graticule.core.errors import Unavailable
from graticule.core.states import MessageStatus, ResultStatus
from graticule.messaging.ledger import DatabaseLedger
from graticule.repositories.database import Connection
from graticule.worker import consumer

SHORT = "short"


async def test_a_message_is_ended_only_after_its_result_is_committed(
    bus: Bus, admin: psycopg.AsyncConnection, connection: Connection
) -> None:
    """The database takes its time with the result, and meanwhile the lock is renewed."""
    bus.emulator.namespace.create(SHORT, QueueOptions(lock_seconds=6))
    queue = bus.emulator.queues[SHORT]
    await bus.give("t", queue=SHORT, handler="chunk_processor", params={"seconds": 1.5})
    async with bus.broker(), bus.worker(queues=[SHORT]):
        await until(lambda: queue.locked)
        (entry,) = queue.messages
        async with admin.transaction():
            await admin.execute("LOCK TABLE dagapp.dag_task_results IN EXCLUSIVE MODE")
            await until(lambda: is_waiting_for_the_lock(connection))
            begun = entry.locked_until
            await until(lambda: entry.locked_until > begun)
            assert (entry.deliveries, queue.messages) == (0, [entry]), "nobody else had it"
            assert (await bus.task("t")).status is MessageStatus.LEASED
        await until(lambda: not queue.messages)
        cursor = await connection.execute("SELECT status FROM dagapp.dag_task_results WHERE status <> 'running'")
        assert await cursor.fetchall() == [{"status": ResultStatus.COMPLETED}]
        assert (await bus.task("t")).delivery_count == 1


async def is_waiting_for_the_lock(connection: Connection) -> bool:
    cursor = await connection.execute(
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'dagapp.dag_task_results'::regclass"
    )
    return await cursor.fetchone() is not None


async def test_a_lock_is_kept_over_a_cut_also_where_nothing_more_is_wanted(bus: Bus) -> None:
    """It is renewed after half of its time; the other half is for a new link, which takes a busy machine a while."""
    queue = bus.emulator.namespace.create(SHORT, QueueOptions(lock_seconds=10))
    await bus.give("t", queue=SHORT)
    async with bus.broker(), bus.receiver(queues=[SHORT]) as receiver:
        (message,) = await received(receiver, 1, SHORT)
        (entry,) = queue.messages
        begun = entry.locked_until
        bus.emulator.faults.cut()
        await until(lambda: entry.locked_until > begun)
        assert entry.deliveries == 0
        receiver.release(message)
        await until(lambda: not queue.messages)


async def test_what_nobody_has_time_for_is_sent_anew_for_the_others(bus: Bus) -> None:
    bus.emulator.namespace.create(SHORT, QueueOptions(lock_seconds=6))
    queue = bus.emulator.queues[SHORT]
    await bus.give("t", "u", queue=SHORT)
    async with bus.broker(), bus.receiver(queues=[SHORT]) as busy:
        assert await busy.receive(SHORT, 2) == []
        await until(lambda: queue.locked == 2)
        async with bus.receiver("other", queues=[SHORT]) as other:
            taken = await received(other, 2, SHORT)
            assert {message.task_id for message in taken} == {"t", "u"}
            assert {entry.deliveries for entry in queue.messages} == {0}, "a delivery was counted"
        assert {message.delivery_count for message in taken} == {1}


async def test_messages_are_kept_while_the_ledger_is_away(bus: Bus) -> None:
    bus.emulator.namespace.create(SHORT, QueueOptions(lock_seconds=2, max_deliveries=2))
    queue = bus.emulator.queues[SHORT]
    await bus.give("t", queue=SHORT)
    async with bus.broker(), bus.receiver(queues=[SHORT]) as receiver:
        with patch.object(DatabaseLedger, "take", side_effect=Unavailable("away")):
            heard = receiver.heard()
            assert await receiver.receive(SHORT, 2) == []
            await anext(heard)
            until_lost = time.monotonic() + 5
            while time.monotonic() < until_lost:  # several locks long
                with pytest.raises(Unavailable):
                    await receiver.receive(SHORT, 2)
                await asyncio.sleep(0.1)
        assert (queue.dead, {entry.deliveries for entry in queue.messages}) == (0, {0})
        (message,) = await receiver.receive(SHORT, 2)
    assert message.task_id == "t"


async def test_a_worker_that_stops_takes_no_more_while_its_handlers_end(bus: Bus) -> None:
    await bus.give("slow", handler="chunk_processor", params={"seconds": 3})
    async with bus.broker() as broker, bus.receiver("other") as other:
        stopping = bus.worker(worker_grace_seconds=10)
        await stopping.__aenter__()
        await until(lambda: _is_leased(bus, "slow"))
        ending = asyncio.create_task(stopping.__aexit__(None, None, None))
        await asyncio.sleep(0.3)  # it waits for its handler now
        await bus.give("next")
        broker.announce()
        assert [message.task_id for message in await received(other, 1)] == ["next"]
        assert not ending.done()
        await ending
    assert (await bus.task("slow")).status is MessageStatus.DONE


async def _is_leased(bus: Bus, task_id: str) -> bool:
    return (await bus.task(task_id)).status is MessageStatus.LEASED


async def test_whoever_stops_takes_nothing_along(bus: Bus) -> None:
    async with bus.broker() as broker:
        async with bus.receiver() as stopping:
            heard = stopping.heard()
            assert await stopping.receive(QUEUE, 5) == []
            await bus.give("arrived")
            broker.announce()
            await anext(heard)
        assert (bus.queue.active, bus.queue.locked) == (1, 0)
        await bus.give("later")
        broker.announce()
        async with bus.receiver("other") as other:
            assert {message.task_id for message in await received(other, 2)} == {"arrived", "later"}


async def test_what_was_ended_at_last_is_settled_before_the_link_is_closed(bus: Bus) -> None:
    await bus.give(*(f"t{number}" for number in range(30)))
    async with bus.broker():
        async with bus.receiver() as queue:
            for message in await received(queue, 30):
                queue.release(message)
        assert not bus.queue.messages


async def test_a_lock_that_was_lost_stops_nobody(bus: Bus, connection: Connection) -> None:
    await bus.give("t", "u", "v")
    async with bus.broker(), bus.receiver() as queue:
        messages = await received(queue, 2)
        bus.emulator.faults.expire_locks(QUEUE)
        for message in messages:
            queue.release(message)
        await connection.execute(
            "UPDATE dagapp.dag_tasks SET status = 'done', leased_by = NULL, lease_expires_at = NULL"
            " WHERE status = 'leased'"
        )
        assert len(await received(queue, 1)) == 1
        await discarded(queue, bus.queue, left=1)


async def test_an_idle_worker_asks_the_database_for_nothing_but_its_heartbeats(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = psycopg.AsyncConnection.execute

    async def noting(self: psycopg.AsyncConnection, query: Any, *given: Any, **more: Any) -> object:
        if self.info.get_parameters().get("application_name", "").startswith("graticule-worker"):
            asked.append(str(query))
        return await execute(self, query, *given, **more)

    monkeypatch.setattr(consumer, "POLL_SECONDS", 0.05)
    async with bus.worker(heartbeat_interval_seconds=0.3):
        await asyncio.sleep(1)
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", noting)
        await until(lambda: len(asked) >= 4)
        monkeypatch.undo()
    assert all("dag_workers" in query for query in asked), asked
