"""Both transports keep the promises of the protocol; what only the table of tasks promises stands at the end."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.messaging.bus import QUEUE, Bus, received
from tests.integration.messaging.conftest import JOB
from tests.integration.messaging.heard import ear

from graticule.config import Transport
from graticule.core.channels import queue_channel
from graticule.core.ids import NodeId, TaskId, WorkerId
from graticule.core.states import MessageStatus
from graticule.core.table import DatabaseRole
from graticule.messaging.postgres import PostgresTaskQueue, without_waiting_for_disk
from graticule.messaging.protocol import TaskMessage, TaskQueue
from graticule.messaging.servicebus.tasks import ServiceBusTaskQueue
from graticule.repositories.database import Connection, Database
from graticule.repositories.tasks import LeaseState, TaskRepository


def message(task_id: str, **changes: int) -> TaskMessage:
    sent = TaskMessage(TaskId(task_id), JOB, NodeId("node"), "echo", {"a": 1}, QUEUE)
    return replace(sent, **changes)  # type: ignore[arg-type]


def queue_of(database: Database, worker: str = "me") -> PostgresTaskQueue:
    return PostgresTaskQueue(database, database, WorkerId(worker), 60)


@dataclass(frozen=True)
class Carriage:
    """A transport in use: one who sends, and two workers."""

    one: TaskQueue
    other: TaskQueue
    resend: Callable[[], None]
    orchestrators: Database

    async def send(self, *messages: TaskMessage) -> None:
        await queue_of(self.orchestrators).send_batch(messages)
        self.resend()

    async def reap(self) -> None:
        """End the leases, and let what was held be received again."""
        async with self.orchestrators.connection() as connection:
            await connection.execute(
                "UPDATE dagapp.dag_tasks SET lease_expires_at = '2000-01-01' WHERE status = 'leased'"
            )
            await TaskRepository(connection).reap_expired()
        self.resend()


@pytest.fixture(params=list(Transport))
async def carriage(
    request: pytest.FixtureRequest, bus: Bus, pool: Database, workers: Database
) -> AsyncIterator[Carriage]:
    if request.param is Transport.POSTGRES:
        yield Carriage(queue_of(workers), queue_of(workers, "other"), lambda: None, pool)
        return
    async with bus.broker() as broker, bus.receiver() as one, bus.receiver("other") as other:
        yield Carriage(one, other, broker.announce, pool)


async def taken(queue: TaskQueue, count: int) -> list[TaskMessage]:
    """Receive so many messages, wherever they come from."""
    if isinstance(queue, ServiceBusTaskQueue):
        return await received(queue, count)
    return await queue.receive(QUEUE, count)


async def test_what_is_sent_is_received_once_with_its_delivery(carriage: Carriage) -> None:
    await carriage.send(message("a"), message("b"))
    found = await taken(carriage.one, 2)
    assert sorted(found, key=lambda each: each.task_id) == [
        message("a", delivery_count=1),
        message("b", delivery_count=1),
    ]
    assert await carriage.one.receive(QUEUE, 10) == []
    assert await carriage.other.receive(QUEUE, 10) == []


async def test_only_who_holds_a_message_decides_on_it(carriage: Carriage) -> None:
    await carriage.send(message("a"))
    (held,) = await taken(carriage.one, 1)
    assert await carriage.other.renew([held]) == {"a": LeaseState.LOST}
    assert await carriage.other.abandon([held]) == set()
    assert await carriage.other.complete([held]) == set()
    assert not await carriage.other.dead_letter(held, "r")
    assert await carriage.one.renew([held]) == {"a": LeaseState.HELD}


async def test_a_message_that_is_given_back_or_set_aside_is_held_no_more(
    carriage: Carriage, connection: Connection
) -> None:
    await carriage.send(message("b"), message("c"))
    b, c = sorted(await taken(carriage.one, 2), key=lambda each: each.task_id)
    assert set((await carriage.one.renew([b, c])).values()) == {LeaseState.HELD}
    assert await carriage.one.abandon([b], counts=False) == {"b"}
    assert await carriage.one.dead_letter(c, "r")
    assert set((await carriage.one.renew([b, c])).values()) == {LeaseState.LOST}
    assert (await TaskRepository(connection).get(task_id="c")).status is MessageStatus.DEAD
    carriage.resend()
    assert await taken(carriage.other, 1) == [b]


async def test_a_lease_that_ran_out_is_anothers(carriage: Carriage) -> None:
    await carriage.send(message("a"))
    (lost,) = await taken(carriage.one, 1)
    await carriage.reap()
    (held,) = await taken(carriage.other, 1)
    assert (held.task_id, held.delivery_count) == ("a", 2)
    assert await carriage.one.renew([lost]) == {"a": LeaseState.LOST}
    assert await carriage.one.abandon([lost]) == set()
    assert await carriage.other.renew([held]) == {"a": LeaseState.HELD}


async def test_a_message_for_later_is_not_received_now(carriage: Carriage) -> None:
    await carriage.send(message("a"))
    (held,) = await taken(carriage.one, 1)
    assert await carriage.one.abandon([held], delay_seconds=60) == {"a"}
    carriage.resend()
    await carriage.send(message("b"))
    assert [each.task_id for each in await taken(carriage.other, 1)] == ["b"]
    assert await carriage.other.receive(QUEUE, 1) == []


# What only the table of tasks promises


async def test_those_who_wait_are_told_and_the_most_urgent_comes_first(
    database: TestDatabase, pool: Database, workers: Database
) -> None:
    sender, receiver = queue_of(pool), queue_of(workers)
    async with ear(database, queue_channel(QUEUE)) as listening:
        await sender.send(message("a"))
        await sender.send_batch([message("b", priority=3), message("c")])
        assert await listening.so_far() == [(queue_channel(QUEUE), "")] * 2
    assert await receiver.receive(QUEUE, 10) == [
        message("b", priority=3, delivery_count=1),
        message("a", delivery_count=1),
        message("c", delivery_count=1),
    ]


async def test_a_message_that_is_completed_is_held_no_more(pool: Database, workers: Database) -> None:
    queue = queue_of(workers)
    await queue_of(pool).send(message("a"))
    held = await queue.receive(QUEUE, 1)
    assert await queue.complete(held) == {"a"}
    assert await queue.renew(held) == {"a": LeaseState.LOST}
    assert await queue.complete(held) == set()


async def test_claims_do_not_wait_for_the_disk_and_the_rest_does(
    database: TestDatabase, connection: Connection
) -> None:
    url = without_waiting_for_disk(database.url(DatabaseRole.WORKER))
    async with Database(url, DatabaseRole.WORKER) as leases, leases.connection() as opened:
        cursor = await opened.execute("SELECT current_setting('synchronous_commit') AS s, current_user::text AS u")
        assert await cursor.fetchone() == {"s": "off", "u": "graticule_worker"}
    given = psycopg.conninfo.make_conninfo(database.url(), options="-c statement_timeout=7s")
    async with await psycopg.AsyncConnection.connect(without_waiting_for_disk(given)) as opened:
        for name, value in (("statement_timeout", "7s"), ("synchronous_commit", "off")):
            row = await (await opened.execute("SELECT current_setting(%s)", [name])).fetchone()
            assert row == (value,)
