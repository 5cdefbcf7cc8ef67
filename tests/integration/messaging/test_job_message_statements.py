"""Each statement of the queue of job messages."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.conftest import TestDatabase
from tests.integration.messaging.heard import ear
from tests.integration.repositories import rows

from graticule.core.channels import queue_channel
from graticule.core.ids import OwnerId
from graticule.core.models import JobMessage
from graticule.core.states import MessageStatus
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository

QUEUE = "orchestrator-jobs"
ME, OTHER = OwnerId("me"), OwnerId("other")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def message(message_id: str, **changes: Any) -> JobMessage:
    return rows.message(message_id, **{"available_at": LONG_AGO, **changes})


async def claim(connection: Connection, owner: OwnerId = ME, limit: int = 10) -> list[JobMessage]:
    return await MessageRepository(connection).claim(owner, QUEUE, limit, 60)


async def test_a_message_is_sent_once_and_told(database: TestDatabase, connection: Connection) -> None:
    messages = MessageRepository(connection)
    async with ear(database, queue_channel(QUEUE)) as listening:
        assert await messages.send(message("m", body={"workflow_id": "w"}))
        assert not await messages.send(message("m", body={"workflow_id": "another"}))
        assert await listening.so_far() == [(queue_channel(QUEUE), "")]
    (found,) = await claim(connection)
    assert (found.body, found.delivery_count, found.leased_by) == ({"workflow_id": "w"}, 1, ME)
    assert not await messages.send(message("m")), "also while someone works on it"


async def test_the_most_urgent_comes_first_and_each_goes_to_one_owner(connection: Connection) -> None:
    messages = MessageRepository(connection)
    for name, priority in (("a", 0), ("b", 5), ("c", 0)):
        await messages.send(message(name, priority=priority))
    await messages.send(message("later", available_at=datetime.now(UTC) + timedelta(hours=1)))
    assert [each.message_id for each in await claim(connection, limit=2)] == ["b", "a"]
    assert [each.message_id for each in await claim(connection, OTHER)] == ["c"]


async def test_whoever_lost_a_message_moves_nothing(connection: Connection) -> None:
    messages = MessageRepository(connection)
    await messages.send(message("m"))
    (lost,) = await claim(connection)
    assert len(await messages.reap_expired(datetime.now(UTC) + timedelta(hours=1))) == 1
    (held,) = await claim(connection, OTHER)
    assert not await messages.complete(lost)
    assert not await messages.abandon(lost, "r")
    assert not await messages.dead_letter(lost, "r")
    assert await messages.complete(held)
    assert not await messages.complete(held)
    assert (await messages.get(message_id="m")).status is MessageStatus.DONE


async def test_a_message_is_given_back_and_dies_when_that_happens_too_often(
    database: TestDatabase, connection: Connection
) -> None:
    messages = MessageRepository(connection)
    await messages.send(message("m", max_deliveries=2))
    (first,) = await claim(connection)
    async with ear(database, queue_channel(QUEUE)) as listening:
        assert await messages.abandon(first, "no room", counts=False)
        assert await listening.so_far() == [(queue_channel(QUEUE), "")]
    for _ in range(2):
        (found,) = await claim(connection)
        assert await messages.abandon(found, "the workflow cannot be read")
    (dead,) = await messages.dead()
    assert (dead.message_id, dead.delivery_count) == ("m", 2)
    assert dead.dead_reason == "given back 2 times; at last: the workflow cannot be read"
    assert await claim(connection) == []


async def test_a_message_that_ends_every_orchestrator_dies(connection: Connection) -> None:
    messages = MessageRepository(connection)
    await messages.send(message("m", max_deliveries=1))
    await claim(connection)
    (returned,) = await messages.reap_expired(datetime.now(UTC) + timedelta(hours=1))
    assert (returned.queue, returned.status) == (QUEUE, MessageStatus.DEAD)
    (dead,) = await messages.dead(QUEUE)
    assert dead.dead_reason == "poison message: delivered 1 times without an answer"


async def test_a_dead_message_is_listed_tried_again_or_discarded(
    database: TestDatabase, connection: Connection
) -> None:
    messages = MessageRepository(connection)
    for name in ("a", "b"):
        await messages.send(message(name))
    for claimed in await claim(connection):
        assert await messages.dead_letter(claimed, "unknown workflow")
    (newest,) = await messages.dead(limit=1)
    (older,) = await messages.dead(limit=5, before=(newest.created_at, newest.message_id))
    assert [newest.message_id, older.message_id] == ["b", "a"]
    async with ear(database, queue_channel(QUEUE)) as listening:
        assert await messages.requeue("a")
        assert not await messages.requeue("a")
        assert await listening.so_far() == [(queue_channel(QUEUE), "")]
    assert await messages.discard("b")
    assert not await messages.discard("a")
    (again,) = await claim(connection)
    assert (again.message_id, again.delivery_count) == ("a", 1)
