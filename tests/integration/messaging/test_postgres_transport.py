"""The transport over the table of tasks keeps the promises of the protocol."""

from dataclasses import replace

import psycopg
from tests.conftest import TestDatabase
from tests.integration.messaging.conftest import JOB
from tests.integration.messaging.heard import ear

from graticule.core.channels import queue_channel
from graticule.core.ids import NodeId, TaskId, WorkerId
from graticule.core.table import DatabaseRole
from graticule.messaging.postgres import PostgresTaskQueue, without_waiting_for_disk
from graticule.messaging.protocol import TaskMessage, TaskQueue
from graticule.repositories.database import Connection, Database
from graticule.repositories.tasks import LeaseState


def message(task_id: str, **changes: int) -> TaskMessage:
    sent = TaskMessage(TaskId(task_id), JOB, NodeId("node"), "echo", {"a": 1}, "q")
    return replace(sent, **changes)  # type: ignore[arg-type]


def queue_of(database: Database, worker: str = "me") -> TaskQueue:
    return PostgresTaskQueue(database, database, WorkerId(worker), 60)


async def test_what_is_sent_is_received_with_its_delivery(
    database: TestDatabase, pool: Database, workers: Database
) -> None:
    sender, receiver = queue_of(pool), queue_of(workers)
    async with ear(database, queue_channel("q")) as listening:
        await sender.send(message("a"))
        await sender.send_batch([message("b", priority=3), message("c")])
        assert await listening.so_far() == [(queue_channel("q"), "")] * 2
    received = await receiver.receive("q", 10)
    assert received == [
        message("b", priority=3, delivery_count=1),
        message("a", delivery_count=1),
        message("c", delivery_count=1),
    ]
    assert await receiver.receive("q", 10) == []


async def test_a_message_is_renewed_completed_given_back_and_set_aside(pool: Database, workers: Database) -> None:
    queue = queue_of(workers)
    await queue_of(pool).send_batch([message(name) for name in "abc"])
    a, b, c = await queue.receive("q", 3)
    assert set((await queue.renew([a, b, c])).values()) == {LeaseState.HELD}
    assert await queue.complete([a]) == {"a"}
    assert await queue.abandon([b], counts=False) == {"b"}
    assert await queue.dead_letter(c, "r")
    assert set((await queue.renew([a, b, c])).values()) == {LeaseState.LOST}
    assert await queue.receive("q", 3) == [b]


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
