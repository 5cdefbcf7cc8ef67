"""The live stream: complete and in order, whatever the order in which transactions commit."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows

from graticule.core.channels import EVENTS
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.listener import Listener
from graticule.repositories.workflows import WorkflowRepository
from graticule.services import event_stream
from graticule.services.event_stream import Batches, EventStream, _Hub

LISTENER = "graticule-events-test"


class ObservedHub(_Hub):
    """Tells when it found writers that it has to wait for."""

    def __init__(self, database: Database, listener: Listener, waits: asyncio.Event) -> None:
        super().__init__(database, listener, poll_seconds=60.0)
        self._waits = waits

    async def _any_writing(self, writers: tuple[str, ...]) -> bool:
        found = await super()._any_writing(writers)
        if found:
            self._waits.set()
        return found


class ObservedStream(EventStream):
    """Tells when it has to wait for writers."""

    def __init__(self, database: Database, listener: Listener) -> None:
        super().__init__(database, listener)
        self.waits = asyncio.Event()

    def _new_hub(self) -> _Hub:
        return ObservedHub(self._database, self._listener, self.waits)


@pytest.fixture
async def stream(database: TestDatabase, pool: Database) -> AsyncIterator[ObservedStream]:
    url = database.url(DatabaseRole.ORCHESTRATOR)
    opened = ObservedStream(pool, Listener(url, DatabaseRole.ORCHESTRATOR, [EVENTS], name=LISTENER))
    yield opened
    await opened.close()


@pytest.fixture
async def writers(database: TestDatabase) -> AsyncIterator[Database]:
    """Give connections for the writers, apart from those of the readers."""
    url = database.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=6) as opened:
        yield opened


class Reader:
    """Reads a stream in the background."""

    def __init__(self, batches: Batches) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Condition()
        self._caught_up = asyncio.Event()
        self.task = asyncio.create_task(self._read(batches))

    async def _read(self, batches: Batches) -> None:
        async with aclosing(batches):
            async for events in batches:
                if not events:
                    self._caught_up.set()
                async with self._changed:
                    self.events += events
                    self._changed.notify_all()

    async def caught_up(self) -> None:
        async with asyncio.timeout(20):
            await self._caught_up.wait()

    async def ids(self, wanted: Callable[[list[int]], bool]) -> list[int]:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: wanted(_ids(self.events)))
        return _ids(self.events)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def reading(batches: Batches) -> AsyncIterator[Reader]:
    reader = Reader(batches)
    try:
        yield reader
    finally:
        await reader.close()


def _ids(events: list[Event]) -> list[int]:
    return [event.event_id or 0 for event in events]


async def write(connection: Connection, event_type: EventType = EventType.NODE_READY, job_id: str = "job") -> int:
    event = await EventRepository(connection).insert(rows.event(event_type=event_type, job_id=job_id))
    await connection.execute(f"NOTIFY {EVENTS}".encode())
    return event.event_id or 0


async def test_a_lower_id_that_commits_later_is_not_lost(stream: ObservedStream, writers: Database) -> None:
    async with reading(stream.follow(after=0)) as reader:
        await reader.caught_up()
        async with writers.connection() as late, late.transaction():
            first = await write(late)
            async with writers.connection() as early, early.transaction():
                second = await write(early)
            async with asyncio.timeout(20):
                await stream.waits.wait()
            assert reader.events == []
        assert await reader.ids(lambda ids: second in ids) == [first, second]


async def test_a_lower_id_that_is_rolled_back_holds_nothing_up(stream: ObservedStream, writers: Database) -> None:
    async with reading(stream.follow(after=0)) as reader:
        await reader.caught_up()
        async with writers.connection() as late, late.transaction():
            await write(late)
            async with writers.connection() as early, early.transaction():
                second = await write(early)
            await late.execute("ROLLBACK")
            await late.execute("BEGIN")
        assert await reader.ids(lambda ids: second in ids) == [second]


async def test_a_stored_event_is_not_taken_for_complete_history_while_a_lower_id_is_being_written(
    stream: ObservedStream, writers: Database
) -> None:
    """A client that connects just then reads stored events first: those must be settled, too."""
    async with writers.connection() as late, late.transaction():
        first = await write(late)
        async with writers.connection() as early, early.transaction():
            second = await write(early)
        async with reading(stream.follow(after=0)) as reader:
            async with asyncio.timeout(20):
                await stream.waits.wait()
            assert reader.events == []
            await late.execute("COMMIT")
            assert await reader.ids(lambda ids: second in ids) == [first, second]
            await late.execute("BEGIN")


async def test_a_long_transaction_that_writes_no_events_does_not_stall_the_stream(
    stream: ObservedStream, writers: Database
) -> None:
    async with writers.connection() as long, long.transaction():
        await WorkflowRepository(long).insert(rows.workflow())
        await EventRepository(long).of_job(JobId("job"))
        async with reading(stream.follow(after=0)) as reader:
            await reader.caught_up()
            async with writers.connection() as connection:
                written = await write(connection)
            assert await reader.ids(bool) == [written]


async def test_without_a_beginning_the_stream_gives_only_what_is_new(stream: ObservedStream, pool: Database) -> None:
    async with pool.connection() as connection:
        await write(connection)
        async with reading(stream.follow()) as reader:
            await reader.caught_up()
            new = await write(connection)
            assert await reader.ids(bool) == [new]


async def test_resuming_while_events_pour_in_loses_nothing_and_doubles_nothing(
    stream: ObservedStream, writers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "PAGE_EVENTS", 7)
    random_ = random.Random(20)
    written: list[int] = []

    async def pour(job_id: str) -> None:
        for _ in range(60):
            async with writers.connection() as connection, connection.transaction():
                ids = []
                for _ in range(random_.randint(1, 6)):
                    ids.append(await write(connection, job_id=job_id))
                    await asyncio.sleep(random_.choice([0, 0.001]))
            written.extend(ids)

    async def follow_with_breaks() -> list[int]:
        """Read a few batches, go away, come back with the last id, until a marker comes."""
        seen: list[Event] = []
        while not seen or seen[-1].event_type is not EventType.JOB_COMPLETED:
            last = _ids(seen)[-1] if seen else 0
            left = random_.randint(1, 5)
            async with aclosing(stream.follow(after=last)) as batches:
                async for events in batches:
                    seen += events
                    left -= 1
                    if left == 0 or (events and events[-1].event_type is EventType.JOB_COMPLETED):
                        break
        return _ids(seen)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(follow_with_breaks()) for _ in range(3)]
        async with asyncio.TaskGroup() as pouring:
            for number in range(4):
                pouring.create_task(pour(f"job-{number}"))
        async with writers.connection() as connection:
            written.append(await write(connection, EventType.JOB_COMPLETED))
    for follower in followers:
        assert follower.result() == sorted(written)


async def test_a_reader_that_falls_behind_reads_what_is_stored_and_misses_nothing(
    stream: ObservedStream, writers: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MOST_WAITING_EVENTS", 5)
    monkeypatch.setattr(event_stream, "PAGE_EVENTS", 4)
    async with reading(stream.follow()) as quick, aclosing(stream.follow()) as slow:
        await quick.caught_up()
        assert await anext(slow) == []
        async with writers.connection() as connection:
            written = [await write(connection) for _ in range(30)]
        assert await quick.ids(lambda ids: len(ids) >= 30) == written
        seen: list[int] = []
        async with asyncio.timeout(20):
            while len(seen) < 30:
                seen += _ids(await anext(slow))
        assert seen == written


async def test_a_follower_of_one_job_is_given_no_other_jobs_events(stream: ObservedStream, writers: Database) -> None:
    async with writers.connection() as connection:
        stored = await write(connection, job_id="mine")
        await write(connection, job_id="other")
        async with reading(stream.follow(after=0, job_id=JobId("mine"))) as mine, reading(stream.follow()) as every:
            await mine.caught_up()
            await every.caught_up()
            other = await write(connection, job_id="other")
            live = await write(connection, job_id="mine")
            assert await mine.ids(lambda ids: live in ids) == [stored, live]
            assert await every.ids(lambda ids: live in ids) == [other, live]


async def test_the_stream_of_a_job_ends_with_the_job(stream: ObservedStream, writers: Database) -> None:
    async with reading(stream.follow_job(JobId("job"))) as reader, writers.connection() as connection:
        await reader.caught_up()
        written = [await write(connection, kind) for kind in (EventType.JOB_CREATED, EventType.JOB_COMPLETED)]
        async with asyncio.timeout(20):
            await reader.task
        assert _ids(reader.events) == written


async def test_a_job_that_was_resumed_has_not_ended_with_its_first_failure(
    stream: ObservedStream, writers: Database
) -> None:
    kinds = [EventType.JOB_FAILED, EventType.JOB_RESUMED, EventType.NODE_READY]
    async with writers.connection() as connection:
        written = [await write(connection, kind) for kind in kinds]
        async with reading(stream.follow_job(JobId("job"))) as reader:
            await reader.caught_up()
            written.append(await write(connection, EventType.JOB_FAILED))
            async with asyncio.timeout(20):
                await reader.task
            assert _ids(reader.events) == written


@pytest.mark.parametrize("missed", [0, 1, 2])
async def test_the_stream_of_a_job_that_has_ended_gives_what_was_missed_and_ends(
    stream: ObservedStream, writers: Database, missed: int
) -> None:
    """What happened after the end, such as a callback, is not cut off."""
    async with writers.connection() as connection:
        written = [await write(connection, kind) for kind in (EventType.JOB_COMPLETED, EventType.CALLBACK_SENT)]
    after = [0, *written][2 - missed]
    async with asyncio.timeout(20), aclosing(stream.follow_job(JobId("job"), after)) as batches:
        seen = [event async for events in batches for event in events]
    assert _ids(seen) == written[2 - missed :]


async def test_the_hub_rests_when_nobody_follows(
    stream: ObservedStream, admin: psycopg.AsyncConnection, pool: Database
) -> None:
    async def listeners() -> int:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        row = await (await admin.execute(query, [LISTENER])).fetchone()
        return int(row[0]) if row else -1

    async with reading(stream.follow()) as reader:
        await reader.caught_up()
        async with pool.connection() as connection:
            await write(connection)
        await reader.ids(bool)
        assert await listeners() == 1
    await stream.close()
    async with asyncio.timeout(20):
        # The server ends a session a moment after its client has gone, and there is no signal of that.
        while await listeners():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with reading(stream.follow(after=0)) as reader:
        assert len(await reader.ids(bool)) == 1


async def test_a_listening_connection_that_is_lost_is_made_anew(
    stream: ObservedStream, admin: psycopg.AsyncConnection, writers: Database
) -> None:
    async with reading(stream.follow()) as reader, writers.connection() as connection:
        await reader.caught_up()
        written = [await write(connection)]
        await reader.ids(bool)
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [LISTENER]
        )
        written.append(await write(connection))
        assert await reader.ids(lambda ids: len(ids) == 2) == written


async def test_notifications_that_are_lost_delay_an_event_and_do_not_lose_it(
    database: TestDatabase, pool: Database
) -> None:
    url = database.url(DatabaseRole.ORCHESTRATOR)
    deaf = EventStream(pool, Listener(url, DatabaseRole.ORCHESTRATOR, ["elsewhere"]), poll_seconds=0.1)
    async with reading(deaf.follow()) as reader, pool.connection() as connection:
        await reader.caught_up()
        written = await write(connection)
        assert await reader.ids(bool) == [written]
    await deaf.close()


async def test_the_gateway_can_follow_with_its_read_only_role(database: TestDatabase, writers: Database) -> None:
    url = database.url(DatabaseRole.GATEWAY)
    async with Database(url, DatabaseRole.GATEWAY) as pool:
        stream = ObservedStream(pool, Listener(url, DatabaseRole.GATEWAY, [EVENTS]))
        async with reading(stream.follow(after=0)) as reader:
            await reader.caught_up()
            async with writers.connection() as late, late.transaction():
                first = await write(late)
                async with writers.connection() as early, early.transaction():
                    second = await write(early)
                async with asyncio.timeout(20):
                    await stream.waits.wait()
                assert reader.events == []
            assert await reader.ids(lambda ids: second in ids) == [first, second]
        await stream.close()
