"""The way to a broker and back, beside the loop: tasks go out from their rows, and messages that ask for jobs come in.

A row is noted as sent after the broker has said that it has the message; whoever fails in between sends it again, and
the receiver finds that it is one too many. The note waits a moment: most tasks are taken by then, and need none. A
message that asks for a job becomes a row, and is ended after that.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

from azure.servicebus import ServiceBusReceivedMessage

from graticule.config import Settings
from graticule.core.backoff import Backoff
from graticule.core.cancellation import end_tasks
from graticule.core.errors import ConfigurationError, GraticuleError, InvalidInput
from graticule.core.fault_points import Commit
from graticule.core.ids import OwnerId, TaskId, WorkerId
from graticule.core.models import JobMessage
from graticule.logs import get_logger
from graticule.messaging.metrics import QueueMetrics
from graticule.messaging.protocol import LARGEST_CLAIM
from graticule.messaging.servicebus.inbound import InboundQueue
from graticule.messaging.servicebus.jobs import job_message
from graticule.messaging.servicebus.namespace import PERMANENT_PAUSE_SECONDS, BrokerAway, Namespace
from graticule.messaging.servicebus.sending import TaskSender
from graticule.messaging.servicebus.tasks import MALFORMED
from graticule.orchestrator.parts import persistently, signal
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository
from graticule.repositories.processes import WorkerRepository
from graticule.repositories.tasks import TaskRepository, UnsentTask

TASKS_AT_ONCE: Final = 1000
JOBS_AT_ONCE: Final = 50
NOTE_SECONDS: Final = 1.0
LONGEST_LOCK_SECONDS: Final = 300.0  # that the broker allows
AGAIN_SECONDS: Final = 600.0  # between two looks at what the broker may have dropped

_log = get_logger(__name__)


class _Pause:
    """When a queue is tried again that took no tasks."""

    def __init__(self) -> None:
        self.until = 0.0
        self._backoff = Backoff()

    def begin(self, *, is_permanent: bool) -> float:
        """Wait, and give for how long: until someone may have mended it, or longer from one try to the next."""
        seconds = PERMANENT_PAUSE_SECONDS if is_permanent else self._backoff.next()
        self.until = asyncio.get_running_loop().time() + seconds
        return seconds


class Broker:
    """Sends the tasks of one owner's jobs, and takes messages that ask for jobs."""

    def __init__(
        self, settings: Settings, database: Database, owner_id: OwnerId, metrics: QueueMetrics | None = None
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._database = database
        self._owner_id = owner_id
        self._tasks_wait = asyncio.Event()
        self._jobs_wait = asyncio.Event()
        self._unnoted: dict[TaskId, UnsentTask] = {}  # the broker has them, and their rows do not say so yet
        self._some_unnoted = asyncio.Event()
        self._pauses: dict[str, _Pause] = {}  # of queues that took no tasks

    def announce(self) -> None:
        """Note that there may be tasks to send."""
        self._tasks_wait.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run beside the caller."""
        async with AsyncExitStack() as stack:
            namespace = await stack.enter_async_context(Namespace(self._settings, self._metrics))
            self._sender = TaskSender(namespace, self._settings.service_bus_message_seconds)
            jobs = InboundQueue(namespace, self._settings.job_queue_name, self._jobs_wait.set)
            self._jobs = await stack.enter_async_context(jobs)
            parts = (self._send, self._note, self._send_again, self._follow_deaths, self._bring)
            tasks = [asyncio.create_task(persistently(part), name=part.__name__) for part in parts]
            try:
                yield
            finally:
                await end_tasks(*tasks)
                with suppress(GraticuleError):
                    await self._noted()

    # Tasks

    async def _send(self) -> None:
        self.announce()
        while True:
            await signal(self._tasks_wait, self._patience())
            while await self._sent_some():
                pass

    def _patience(self) -> float:
        """Tell how long to wait: for the next look, or until a queue is tried again."""
        now, poll = asyncio.get_running_loop().time(), self._settings.orchestrator_poll_interval
        return max(0.0, min([now + poll, *(pause.until for pause in self._pauses.values())]) - now)

    async def _sent_some(self) -> bool:
        """Send what waits, the oldest first; False when no more does. A queue that takes none holds up no other."""
        now = asyncio.get_running_loop().time()
        paused = [queue for queue, pause in self._pauses.items() if pause.until > now]
        async with self._database.connection() as connection:
            tasks = await TaskRepository(connection).unsent(
                self._owner_id, TASKS_AT_ONCE, but=self._unnoted.values(), without=paused
            )
        by_queue = attrgetter("queue")
        for queue, of_queue in groupby(sorted(tasks, key=by_queue), by_queue):
            await self._sent(queue, list(of_queue))
        return len(tasks) == TASKS_AT_ONCE

    async def _sent(self, queue: str, tasks: Sequence[UnsentTask]) -> None:
        """Send tasks of a queue, and note each batch that the broker has; after an error, wait with the rest."""
        try:
            async for sent in self._sender.send(queue, tasks, self._database.now()):
                self._unnoted |= {task.task_id: task for task in sent}
                self._some_unnoted.set()
        except (ConfigurationError, BrokerAway) as error:
            pause = self._pauses.setdefault(queue, _Pause())
            seconds = pause.begin(is_permanent=isinstance(error, ConfigurationError))
            log = _log.error if isinstance(error, ConfigurationError) else _log.warning
            log("tasks cannot be sent", queue=queue, count=len(tasks), error=str(error), again_in=seconds)
        else:
            self._pauses.pop(queue, None)

    async def _note(self) -> None:
        while True:
            await self._some_unnoted.wait()
            await asyncio.sleep(NOTE_SECONDS)
            self._some_unnoted.clear()
            try:
                await self._noted()
            except BaseException:
                self._some_unnoted.set()  # it is still to be done
                raise

    async def _noted(self) -> None:
        """Note what the broker has; what was changed since it was read is not touched."""
        tasks = list(self._unnoted.values())
        async with self._database.committing(Commit.SEND) as connection:
            await TaskRepository(connection).note_sent(tasks)
        for task in tasks:
            if self._unnoted.get(task.task_id) is task:
                del self._unnoted[task.task_id]

    async def _send_again(self) -> None:
        """Have tasks sent anew whose messages the broker has dropped by now."""
        kept = timedelta(seconds=self._settings.service_bus_message_seconds)
        while True:
            async with self._database.committing(Commit.REAP_TASKS) as connection:
                count = await TaskRepository(connection).send_again(self._database.now() - kept)
            if count:
                _log.warning("nobody took tasks for as long as the broker keeps them; they are sent again", count=count)
                self.announce()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow_deaths(self) -> None:
        """Have tasks sent anew that dead workers had received and not taken: the broker keeps them for minutes.

        Whatever they were, they came first in their queues, and were no more than a worker takes at once. A message
        too many does no harm.
        """
        known = set[WorkerId]()
        silence = max(self._settings.worker_lease_seconds, 2 * self._settings.heartbeat_interval_seconds)
        while True:
            async with self._database.connection() as connection:
                silent = await WorkerRepository(connection).silent(silence, silence + LONGEST_LOCK_SECONDS)
            if queues := [queue for worker in silent if worker.worker_id not in known for queue in worker.queues]:
                await self._send_first_again(queues)
            known = {worker.worker_id for worker in silent}
            await asyncio.sleep(silence / 4)

    async def _send_first_again(self, queues: Sequence[str]) -> None:
        async with self._database.committing(Commit.REAP_TASKS) as connection:
            count = await TaskRepository(connection).send_first_again(queues, LARGEST_CLAIM)
        if count:
            _log.warning("a worker is gone, and what it may have received is sent again", count=count)
            self.announce()

    # Jobs

    async def _bring(self) -> None:
        while True:
            messages = self._jobs.take(JOBS_AT_ONCE)
            if not messages:
                await signal(self._jobs_wait, None)
            try:
                await self._kept(messages)
            except BaseException:
                self._jobs.put_back(messages)
                raise

    async def _kept(self, messages: Sequence[ServiceBusReceivedMessage]) -> None:
        """Make rows of messages, of which any orchestrator makes jobs, and end the messages."""
        wanted = [(each, row) for each in messages if (row := await self._read(each)) is not None]
        if not wanted:
            return
        async with self._database.transaction(Commit.SEND) as connection:
            rows = MessageRepository(connection)
            for _, row in wanted:
                await rows.send(row)
        for message, _ in wanted:
            self._jobs.complete(message)

    async def _read(self, message: ServiceBusReceivedMessage) -> JobMessage | None:
        try:
            return job_message(message, self._settings.job_queue_name, self._database.now())
        except InvalidInput as error:
            _log.warning("a job message is set aside", message_id=message.message_id, reason=error.message)
            await self._set_aside(message, error.message)
            return None

    async def _set_aside(self, message: ServiceBusReceivedMessage, reason: str) -> None:
        try:
            await self._jobs.dead_letter(message, MALFORMED, reason)
        except GraticuleError as error:  # it comes again when its lock runs out
            _log.warning("a job message could not be set aside", error=str(error))
