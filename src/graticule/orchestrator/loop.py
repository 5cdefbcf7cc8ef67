"""The loop: what has happened is found by notification, and each job that it concerns takes a step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from graticule.config import Settings
from graticule.core.cancellation import end_tasks
from graticule.core.channels import ORPHANS, owner_channel, queue_channel
from graticule.core.errors import GraticuleError, OwnershipLost, TransactionAborted, Unavailable
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.logs import get_logger
from graticule.orchestrator.alarms import Alarms
from graticule.orchestrator.inbox import Inbox
from graticule.orchestrator.intake import Intake
from graticule.orchestrator.membership import Membership
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener, listening
from graticule.repositories.messages import MessageRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.tasks import TaskRepository
from graticule.services.jobs import JobService
from graticule.services.step_reading import Wake
from graticule.services.steps import StepService

_log = get_logger(__name__)
JOBS_PER_STEP: Final = 50
STEPS_AT_ONCE: Final = 2  # while one waits for the database, the other decides
REAP_EVERY_SECONDS: Final = 2.0
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0


class OrchestratorLoop:
    """Advances the jobs of one instance for as long as it runs."""

    def __init__(self, settings: Settings, database: Database, url: str, steps: StepService, jobs: JobService) -> None:
        self._settings = settings
        self._database = database
        self._steps = steps
        self._inbox = Inbox()
        self._alarms = Alarms()
        self._intake = Intake(settings, database, jobs, steps.owner_id)
        self._messages_wait = asyncio.Event()
        self._member = Membership(database, steps.owner_id, orphan_threshold_seconds=settings.orphan_threshold_seconds)
        self._listener = Listener(
            url,
            DatabaseRole.ORCHESTRATOR,
            [owner_channel(steps.owner_id), queue_channel(settings.job_queue_name), ORPHANS],
            name="graticule-orchestrator-listener",
            lock_key=self._member.lock_key,
        )
        self._joined = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run beside the caller; at the end, hand all jobs over."""
        tasks = [asyncio.create_task(_persistently(part), name=part.__name__) for part in self._parts()]
        try:
            yield
        finally:
            await end_tasks(*tasks)
            await self._leave()

    def _parts(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._listen,
            *[self._advance] * STEPS_AT_ONCE,
            self._ring,
            self._poll,
            self._take_messages,
            self._beat,
            self._recover,
            self._reap,
        ]

    async def _leave(self) -> None:
        if self._joined.is_set():
            try:
                await self._member.leave()
            except GraticuleError as error:
                _log.warning("the jobs could not be handed over; the others find them", error=error.message)

    # What has happened

    async def _listen(self) -> None:
        async with listening(self._listener) as heard:
            async for notification in heard:
                if notification.channel is None:
                    await self._member.join()
                    self._joined.set()
                    await self._look_around()
                elif notification.channel == ORPHANS:
                    await self._take_orphans()
                elif notification.channel == owner_channel(self._steps.owner_id):
                    self._inbox.add(JobId(notification.payload))
                else:
                    self._messages_wait.set()

    async def _poll(self) -> None:
        """Look around now and then: the safety net for notifications that were lost."""
        while True:
            await asyncio.sleep(self._settings.orchestrator_poll_interval)
            await self._look_around()
            self._messages_wait.set()

    async def _look_around(self) -> None:
        now, owner_id = datetime.now(UTC), self._steps.owner_id
        horizon = now + timedelta(seconds=2 * self._settings.orchestrator_poll_interval)
        async with self._database.connection() as connection:
            ownership = OwnershipRepository(connection)
            waiting = await ownership.waiting_jobs(owner_id)
            self._alarms.add(await ownership.due_nodes(owner_id, horizon))
            expired = await ownership.expired_nodes(owner_id, now)
        for job_id in waiting:
            self._inbox.add(job_id)
        for job_id, node_id, taken in expired:
            self._inbox.add(job_id, Wake(expired={node_id: taken}))

    async def _take_messages(self) -> None:
        await self._joined.wait()
        while True:
            await self._intake.take()
            await self._messages_wait.wait()
            self._messages_wait.clear()

    async def _ring(self) -> None:
        while True:
            for _, job_id, node_id in await self._alarms.due():
                self._inbox.add(job_id, Wake(due={node_id}))

    # What follows

    async def _advance(self) -> None:
        while True:
            wakes = await self._inbox.take(JOBS_PER_STEP)
            try:
                await self._step(wakes)
            except (Unavailable, TransactionAborted):
                for job_id, wake in wakes.items():
                    self._inbox.add(job_id, wake)
                raise
            finally:
                self._inbox.release(set(wakes))

    async def _step(self, wakes: dict[JobId, Wake]) -> None:
        """Take a step of each job; when that fails, of each alone, so that one cannot hold up the others."""
        try:
            outcome = await self._steps.advance(wakes)
        except (Unavailable, TransactionAborted):
            raise
        except OwnershipLost as error:
            if len(wakes) == 1:
                _log.info("a job is no longer ours", job_id=next(iter(wakes)), reason=error.message)
                return
            await self._step_alone(wakes)
        except Exception as error:
            if len(wakes) > 1:
                await self._step_alone(wakes)
            else:
                (job_id,) = wakes
                _log.exception("the step of a job cannot be written, and the job is failed", job_id=job_id)
                await self._steps.give_up(job_id, error)
        else:
            self._alarms.add(outcome.retries)
            for job_id in outcome.unfinished:
                self._inbox.add(job_id)

    async def _step_alone(self, wakes: dict[JobId, Wake]) -> None:
        for job_id, wake in wakes.items():
            await self._step({job_id: wake})

    # The instance

    async def _beat(self) -> None:
        await self._joined.wait()
        while True:
            await asyncio.sleep(self._settings.heartbeat_interval_seconds)
            await self._member.beat()

    async def _recover(self) -> None:
        await self._joined.wait()
        while True:
            await self._take_orphans()
            await asyncio.sleep(self._settings.orphan_scan_interval_seconds)

    async def _take_orphans(self) -> None:
        while taken := await self._member.take_orphans():
            for job_id in taken:
                self._inbox.add(job_id)
            await self._look_around()

    async def _reap(self) -> None:
        """Give what silent workers and orchestrators hold to others, whoever owns the jobs."""
        while True:
            await asyncio.sleep(REAP_EVERY_SECONDS)
            async with self._database.connection() as connection:
                await TaskRepository(connection).reap_expired()
                await MessageRepository(connection).reap_expired()


async def _persistently(part: Callable[[], Awaitable[None]]) -> None:
    """Run a part for ever: an error is logged, and after a pause it goes on from the rows."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await part()
        except (Unavailable, TransactionAborted) as error:
            _log.warning("the loop waits for the database", part=part.__name__, error=error.message)
        except Exception:
            _log.exception("a part of the loop failed and is begun anew", part=part.__name__)
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE_SECONDS:
            pause = FIRST_PAUSE_SECONDS
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
