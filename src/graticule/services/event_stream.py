"""Events as they are written, live and complete: nothing is lost, nothing comes twice.

Event ids are given out before their transactions commit, so a lower id can appear after a higher one.
Ids are therefore handed on only when they are settled: when every transaction that was writing events
at the time the newest id was read has ended. Only writers of events are waited for, and those are short.

One hub serves all followers of a process, and asks the database only while there are any.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from graticule.core.cancellation import end_tasks
from graticule.core.ids import JobId
from graticule.core.models import Event
from graticule.core.models.engine import EventType
from graticule.logs import get_logger
from graticule.repositories.database import Database
from graticule.repositories.events import EventRepository
from graticule.repositories.listener import Listener, listening

JOB_ENDS: Final = frozenset({EventType.JOB_COMPLETED, EventType.JOB_FAILED, EventType.JOB_CANCELLED})

PAGE_EVENTS: Final = 500
MOST_WAITING_EVENTS: Final = 5000
PAUSE_SECONDS: Final = 0.02  # under load, the events of so long are read in one go
FIRST_RECHECK_SECONDS: Final = 0.002
LONGEST_RECHECK_SECONDS: Final = 0.05
RECOVERY_SECONDS: Final = 1.0
CONNECT_SECONDS: Final = 2.0

Batches = AsyncGenerator[list[Event], None]

_log = get_logger(__name__)


class _Follower:
    """One reader's place in the hub: what was handed on to it and not yet taken."""

    def __init__(self, job_id: JobId | None) -> None:
        self.job_id = job_id
        self.joined: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting: list[Event] = []
        self._arrived = asyncio.Event()
        self._fell_behind = False

    def offer(self, events: list[Event]) -> None:
        """Hand events on; to a reader that is too slow nothing more, it has to read what is stored."""
        wanted = events if self.job_id is None else [event for event in events if event.job_id == self.job_id]
        if not wanted:
            return
        if len(self._waiting) + len(wanted) > MOST_WAITING_EVENTS:
            self._fell_behind = True
            self._waiting.clear()
        if not self._fell_behind:
            self._waiting.extend(wanted)
        self._arrived.set()

    async def take(self) -> list[Event] | None:
        """Wait for events and give all that are there; None when the reader fell behind."""
        await self._arrived.wait()
        self._arrived.clear()
        taken, self._waiting = self._waiting, []
        return None if self._fell_behind else taken


class _Hub:
    """Reads new events once and hands them on to all followers. It works until it is ended."""

    def __init__(self, database: Database, listener: Listener, poll_seconds: float) -> None:
        self._database = database
        self._listener = listener
        self._poll_seconds = poll_seconds
        self._joining: set[_Follower] = set()
        self._members: set[_Follower] = set()
        self._woken = asyncio.Event()
        self._position: int | None = None  # all up to here was handed on
        self._listens = asyncio.Event()
        self._ended = False
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._feed())]

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody follows."""
        return not self._joining and not self._members

    def join(self, follower: _Follower) -> None:
        """Give a follower all events from a position on that it will be told."""
        self._joining.add(follower)
        self._woken.set()

    def leave(self, follower: _Follower) -> None:
        """Give a follower nothing more."""
        self._joining.discard(follower)
        self._members.discard(follower)

    async def end(self) -> None:
        """Stop working."""
        self._ended = True
        # A connection that is broken off half-way keeps its session on the server for a minute.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._listens.wait()
        await end_tasks(*self._tasks)

    async def _listen(self) -> None:
        while not self._ended:
            with _survived("the notifications of events cannot be heard now"):
                async with listening(self._listener) as heard:
                    async for _ in heard:
                        self._listens.set()
                        self._woken.set()
            await asyncio.sleep(RECOVERY_SECONDS)

    async def _feed(self) -> None:
        """Hand on what is new whenever something was notified, and now and then in case that was lost."""
        while not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    await self._woken.wait()
            self._woken.clear()
            through = False
            with _survived("the events cannot be read now"):
                await self._round()
                through = True
            if not through:
                self._woken.set()
            await asyncio.sleep(PAUSE_SECONDS if through else RECOVERY_SECONDS)

    async def _round(self) -> None:
        """Hand on all events up to the newest that is settled."""
        newest = await self._settled()
        if self._position is None:
            self._position = newest
        while self._position < newest:
            await self._hand_on_page(self._position, newest)
        self._admit(self._position)

    async def _hand_on_page(self, after: int, up_to: int) -> None:
        wanted = {member.job_id for member in self._members}
        job_ids = None if None in wanted else [job_id for job_id in wanted if job_id is not None]
        async with self._database.connection() as connection:
            events = await EventRepository(connection).between(after, up_to, job_ids=job_ids, limit=PAGE_EVENTS)
        # Nothing is awaited from here on: whoever joins is given either these events or a position after them.
        for member in self._members:
            member.offer(events)
        self._position = _id(events[-1]) if len(events) == PAGE_EVENTS else up_to
        self._admit(self._position)

    def _admit(self, position: int) -> None:
        """Let those who wait join: they are given all events after this position."""
        for follower in self._joining:
            if not follower.joined.done():
                follower.joined.set_result(position)
        self._members |= self._joining
        self._joining.clear()

    async def _settled(self) -> int:
        """Give the newest event id, when no lower one can appear any more."""
        async with self._database.connection() as connection:
            horizon = await EventRepository(connection).horizon()
        if horizon.newest == self._position:
            return horizon.newest
        pause = FIRST_RECHECK_SECONDS
        while horizon.writers and await self._any_writing(horizon.writers):
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_RECHECK_SECONDS)
        return horizon.newest

    async def _any_writing(self, writers: tuple[str, ...]) -> bool:
        async with self._database.connection() as connection:
            return await EventRepository(connection).any_writing(writers)


class EventStream:
    """Gives events to any number of followers."""

    def __init__(self, database: Database, listener: Listener, *, poll_seconds: float = 5.0) -> None:
        self._database = database
        self._listener = listener
        self._poll_seconds = poll_seconds
        self._hub: _Hub | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def follow(self, *, after: int | None = None, job_id: JobId | None = None) -> Batches:
        """Give events after an event id (None: from now on), of all jobs or of one, first stored then live ones.

        Each time the stored ones are through, an empty batch tells so.
        """
        last = after
        while True:
            with self._place(job_id) as follower:
                position = await follower.joined
                last = position if last is None else last
                async for events in self._stored(last, position, job_id):
                    yield events
                last = max(last, position)
                yield []
                while (taken := await follower.take()) is not None:
                    if events := [event for event in taken if _id(event) > last]:
                        last = _id(events[-1])
                        yield events

    async def follow_job(self, job_id: JobId, after: int = 0) -> Batches:
        """Give the events of a job after an event id, and end when the job's end was among them or before."""
        last = after
        async with contextlib.aclosing(self.follow(after=after, job_id=job_id)) as batches:
            async for events in batches:
                yield events
                last = _id(events[-1]) if events else last
                may_have_ended = not events or any(event.event_type in JOB_ENDS for event in events)
                if may_have_ended and await self._has_ended(job_id, last):
                    return

    async def close(self) -> None:
        """End all work; the followers are to be gone by then."""
        self._end_hub()
        await asyncio.gather(*self._ending)

    async def _has_ended(self, job_id: JobId, last: int) -> bool:
        """Tell whether the job has ended by event `last`, and was not resumed since."""
        async with self._database.connection() as connection:
            found = await EventRepository(connection).last_of_types(job_id, {*JOB_ENDS, EventType.JOB_RESUMED})
        return found is not None and found.event_type in JOB_ENDS and _id(found) <= last

    async def _stored(self, after: int, up_to: int, job_id: JobId | None) -> Batches:
        job_ids = None if job_id is None else [job_id]
        while after < up_to:
            async with self._database.connection() as connection:
                events = await EventRepository(connection).between(after, up_to, job_ids=job_ids, limit=PAGE_EVENTS)
            if events:
                yield events
            after = _id(events[-1]) if len(events) == PAGE_EVENTS else up_to

    @contextlib.contextmanager
    def _place(self, job_id: JobId | None) -> Iterator[_Follower]:
        follower = _Follower(job_id)
        hub = self._hub = self._hub or self._new_hub()
        hub.join(follower)
        try:
            yield follower
        finally:
            hub.leave(follower)
            if hub.is_idle and hub is self._hub:
                self._end_hub()

    def _new_hub(self) -> _Hub:
        return _Hub(self._database, self._listener, self._poll_seconds)

    def _end_hub(self) -> None:
        if self._hub is not None:
            ending = asyncio.create_task(self._hub.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            self._hub = None


@contextlib.contextmanager
def _survived(what: str) -> Iterator[None]:
    """Log an error and go on: followers wait for a hub, which therefore has to live as long as they do."""
    try:
        yield
    except Exception as error:
        _log.warning(what, error=str(error), detail=getattr(error, "detail", None))


def _id(event: Event) -> int:
    """Give the id that the database has given an event."""
    if event.event_id is None:
        raise ValueError("The event was not read from the database.")
    return event.event_id
