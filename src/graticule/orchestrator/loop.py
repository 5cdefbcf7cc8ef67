"""The loop: what has happened is found by notification, and each job that it concerns takes a step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from graticule.config import Settings
from graticule.core.cancellation import end_tasks
from graticule.core.channels import OF_THE_DEAD, ORPHANS, OUTBOX, WORKFLOWS, owner_channel, queue_channel
from graticule.core.errors import PASSING, GraticuleError
from graticule.core.fault_points import Commit
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.logs import get_logger
from graticule.orchestrator.alarms import Alarms
from graticule.orchestrator.inbox import Inbox
from graticule.orchestrator.intake import COURTESY_SECONDS, Intake
from graticule.orchestrator.membership import Membership
from graticule.orchestrator.metrics import OrchestratorMetrics, WakeReason
from graticule.orchestrator.parts import persistently, signal
from graticule.repositories.database import Database
from graticule.repositories.listener import Heard, Listener, listening
from graticule.repositories.messages import MessageRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.tasks import TaskRepository
from graticule.services.jobs import JobService
from graticule.services.readiness import ReadinessService
from graticule.services.step_reading import Wake
from graticule.services.steps import StepService
from graticule.services.unserved_queues import WaitingNodes
from graticule.services.workflow_sharing import WorkflowSharing

_log = get_logger(__name__)
JOBS_PER_STEP: Final = 50
STEPS_AT_ONCE: Final = 2  # while one waits for the database, the other decides
REAP_EVERY_SECONDS: Final = 2.0
NOTE_WAITING_EVERY_SECONDS: Final = 15.0
LATE_RESULT_SECONDS: Final = 1.0  # longer than it takes to write results


class OrchestratorLoop:
    """Advances the jobs of one instance for as long as it runs."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        url: str,
        steps: StepService,
        jobs: JobService,
        *,
        sharing: WorkflowSharing | None = None,
        on_tasks: Callable[[], None] | None = None,
        metrics: OrchestratorMetrics | None = None,
    ) -> None:
        """`sharing` announces workflows, where there are files of them.

        `on_tasks` is called when a broker may have to be given tasks; without one, workers take the rows.
        """
        self._settings = settings
        self._metrics = metrics or OrchestratorMetrics()
        self._on_tasks = on_tasks
        self._sharing = sharing
        self._share_now = asyncio.Event()
        self._database = database
        self._steps = steps
        self._inbox = Inbox()
        self._alarms = Alarms(database.now)
        self._intake = Intake(settings, database, jobs, steps.owner_id, self._metrics)
        self._messages_wait = asyncio.Event()
        self._member = Membership(database, steps.owner_id, settings, self._metrics)
        self._listener = Listener(
            url,
            DatabaseRole.ORCHESTRATOR,
            [
                owner_channel(steps.owner_id),
                queue_channel(settings.job_queue_name),
                ORPHANS,
                WORKFLOWS,
                *([OUTBOX] if on_tasks else []),
            ],
            name="graticule-orchestrator-listener",
            lock_key=self._member.lock_key,
        )
        self._listening = asyncio.Event()
        self._joined = asyncio.Event()
        self._look = asyncio.Event()
        self._orphans_wait = asyncio.Event()
        self._told_of_death = False
        self._waiting_nodes = WaitingNodes(
            database, steps.owner_id, threshold_seconds=settings.orphan_threshold_seconds
        )
        self._readiness = ReadinessService(database)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run beside the caller; at the end, hand all jobs over."""
        tasks = [asyncio.create_task(persistently(part), name=part.__name__) for part in self._parts()]
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
            self._share_workflows,
            self._beat,
            self._recover,
            self._note_waiting,
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
                self._take_notice(notification)

    def _take_notice(self, heard: Heard) -> None:
        """Note what was heard, and no more: an error here would end the session, and others would take our jobs."""
        if heard.channel is None:
            self._listening.set()
            self._look.set()
            self._share_now.set()
        elif heard.channel == ORPHANS:
            self._told_of_death |= heard.payload == OF_THE_DEAD
            self._orphans_wait.set()
        elif heard.channel == owner_channel(self._steps.owner_id):
            self._wake(WakeReason.NOTIFICATION, JobId(heard.payload))
        elif heard.channel == WORKFLOWS:
            self._share_now.set()
        elif heard.channel == OUTBOX:
            self._tell_of_tasks(heard.payload)
        else:
            self._messages_wait.set()

    def _tell_of_tasks(self, owner_id: str = "") -> None:
        if self._on_tasks is not None and owner_id in {"", self._steps.owner_id}:
            self._on_tasks()

    async def _poll(self) -> None:
        """Look around when the listening began, and now and then: notifications may have been lost.

        It begins with a look, so that one that failed is repeated at once.
        """
        while True:
            await self._look_around()
            self._messages_wait.set()
            await signal(self._look, self._settings.orchestrator_poll_interval)

    async def _look_around(self) -> None:
        async with self._database.connection() as connection:
            await self._database.clock.set_by(connection)
            now, owner_id = self._database.now(), self._steps.owner_id
            horizon = now + timedelta(seconds=2 * self._settings.orchestrator_poll_interval)
            ownership = OwnershipRepository(connection)
            waiting = await ownership.waiting_jobs(owner_id)
            self._alarms.add(await ownership.due_nodes(owner_id, horizon))
            expired = await ownership.expired_nodes(owner_id, now)
        for job_id in waiting:
            self._wake(WakeReason.POLL, job_id)
        for job_id, node_id, taken in expired:
            self._wake(WakeReason.DEADLINE, job_id, Wake(expired={node_id: taken}))

    def _wake(self, reason: WakeReason, job_id: JobId, wake: Wake | None = None) -> None:
        self._inbox.add(job_id, wake)
        self._metrics.woken(reason)

    async def _take_messages(self) -> None:
        await self._joined.wait()
        while True:
            await self._intake.take()
            await signal(self._messages_wait, COURTESY_SECONDS if self._intake.leaves_some else None)

    async def _share_workflows(self) -> None:
        """Announce this instance's workflows and take over the others', when told to and now and then."""
        await self._joined.wait()
        while self._sharing is not None:
            if await self._sharing.share():
                self._messages_wait.set()  # some may have waited for a workflow
            await signal(self._share_now, self._settings.heartbeat_interval_seconds)
        await asyncio.Event().wait()

    async def _ring(self) -> None:
        while True:
            for _, job_id, node_id in await self._alarms.due():
                self._wake(WakeReason.ALARM, job_id, Wake(due={node_id}))

    # What follows

    async def _advance(self) -> None:
        while True:
            wakes = await self._inbox.take(JOBS_PER_STEP)
            try:
                await self._step(wakes)
            except PASSING:
                for job_id, wake in wakes.items():
                    self._inbox.add(job_id, wake)
                self._look.set()  # what was written, and not answered, may have set alarms
                raise
            finally:
                self._inbox.release(set(wakes))

    async def _step(self, wakes: dict[JobId, Wake]) -> None:
        """Take a step of each job; when that fails, of each alone, so that one cannot hold up the others."""
        try:
            outcome = await self._steps.advance(wakes)
        except PASSING:
            raise
        except Exception as error:
            if len(wakes) > 1:
                for job_id, wake in wakes.items():
                    await self._step({job_id: wake})
            else:
                await self._give_up(next(iter(wakes)), error)
        else:
            self._alarms.add(outcome.retries)
            for job_id in outcome.unfinished:
                self._inbox.add(job_id)
            if outcome.some_ended and self._intake.is_full:
                self._messages_wait.set()

    async def _give_up(self, job_id: JobId, error: Exception) -> None:
        """Fail a job whose step cannot be taken; one that cannot even be read must not hold up the others."""
        _log.error("the step of a job cannot be taken, and the job is failed", job_id=job_id, exc_info=error)
        try:
            await self._steps.give_up(job_id, error)
        except PASSING:
            raise
        except Exception:
            _log.exception("a job can be neither advanced nor failed", job_id=job_id)

    # The instance

    async def _beat(self) -> None:
        """Join when the session has its lock, again after each new session, and beat from then on."""
        if not self._joined.is_set():
            await self._listening.wait()
        while True:
            if self._listening.is_set():
                await self._join()
            else:
                await self._member.beat()
            await signal(self._listening, self._settings.heartbeat_interval_seconds, clear=False)

    async def _join(self) -> None:
        """Become a member, but not on a schema that is older than this program: the others can use it, we cannot."""
        self._listening.clear()
        try:
            await self._readiness.schema()
            await self._member.join()
        except BaseException:
            self._listening.set()  # it is still to be done
            raise
        self._joined.set()

    async def _recover(self) -> None:
        await self._joined.wait()
        while True:
            is_told, self._told_of_death = self._told_of_death, False
            await self._take_orphans(is_told=is_told)
            await signal(self._orphans_wait, self._member.next_look_seconds)

    async def _take_orphans(self, *, is_told: bool) -> None:
        while taken := await self._member.take_orphans(is_told=is_told):
            for job_id in taken:
                self._wake(WakeReason.TAKEN_OVER, job_id)
            self._tell_of_tasks()
            await self._look_around()
            # A result that was being written meanwhile is announced to the former owner only.
            asyncio.get_running_loop().call_later(LATE_RESULT_SECONDS, self._look.set)

    async def _note_waiting(self) -> None:
        """Write into the history of jobs that their nodes wait for a worker that is not there."""
        while True:
            await asyncio.sleep(NOTE_WAITING_EVERY_SECONDS)
            await self._waiting_nodes.note()

    async def _reap(self) -> None:
        """Give what silent workers and orchestrators hold to others, whoever owns the jobs."""
        while True:
            await asyncio.sleep(REAP_EVERY_SECONDS)
            async with self._database.committing(Commit.REAP_TASKS) as connection:
                tasks = await TaskRepository(connection).reap_expired()
            self._metrics.tasks_reaped(tasks)
            async with self._database.committing(Commit.REAP_MESSAGES) as connection:
                messages = await MessageRepository(connection).reap_expired()
            self._metrics.messages_returned(messages)
