"""The worker: takes tasks, runs their handlers, reports what came of them, and goes in order when told to."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from graticule.core.cancellation import end_tasks
from graticule.core.channels import CANCELLED, queue_channel
from graticule.core.errors import GraticuleError
from graticule.core.ids import JobId
from graticule.core.states import ResultStatus
from graticule.handlers.registry import RegisteredHandler
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.listener import Heard
from graticule.storage.protocol import Storage
from graticule.worker.consumer import Consumer
from graticule.worker.executor import Executor, on_behalf_of
from graticule.worker.holdings import Holdings
from graticule.worker.leases import LeaseKeeper
from graticule.worker.metrics import WorkerMetrics
from graticule.worker.notices import Notices
from graticule.worker.outcome import Outcome, failed
from graticule.worker.outputs import stored_output
from graticule.worker.pool import ProcessPool
from graticule.worker.pulse import Pulse
from graticule.worker.reporter import Reporter
from graticule.worker.reports import Report
from graticule.worker.run import Ending, Run
from graticule.worker.ways import Ways

_KILL_SECONDS: Final = 3.0  # for handlers to end that were cancelled
_LAST_WRITES_SECONDS: Final = 10.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works."""

    queues: tuple[str, ...]
    concurrency: int
    grace_seconds: float  # how long a stopping worker waits for its tasks


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker works with."""

    ways: Ways
    storage: Storage
    pool: ProcessPool
    metrics: WorkerMetrics
    handlers: Mapping[str, RegisteredHandler]


class Worker:
    """Runs tasks until it is stopped."""

    def __init__(self, options: WorkerOptions, given: Surroundings) -> None:
        self._options = options
        self._given = given
        self._is_async = {name: handler.is_async for name, handler in given.handlers.items()}
        self._holdings = Holdings(given.ways.queue.release)
        self._executor = Executor(
            given.pool, given.ways.checkpoints, given.storage, given.ways.database, given.ways.catalogue
        )
        self._reporter = Reporter(given.ways.sink, self._holdings.release)
        self._pulse = Pulse(given.ways.sink, self._holdings)
        self._leases = LeaseKeeper(given.ways.queue, self._holdings, given.ways.renew_seconds, given.metrics)
        self._consumer = Consumer(
            given.ways.queue,
            options.queues,
            self._holdings,
            concurrency=options.concurrency,
            processes=given.pool.size,
            hold=self._hold,
            on_held=given.metrics.taken,
            start=self._start,
            unwritten=lambda: self._reporter.backlog,
            heavy={each.name: each.queue for each in given.handlers.values() if not each.is_async},
        )
        self._channels = {queue_channel(name): name for name in options.queues}
        self._hurry = asyncio.Event()
        self._is_stopping = False
        given.metrics.watch(
            slots=options.concurrency,
            held=lambda: len(self._holdings),
            running=lambda: self._holdings.running_count,
            unwritten=lambda: self._reporter.backlog,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work inside the block; leaving it stops the worker in order."""
        background = [asyncio.create_task(_persistently(part)) for part in self._parts()]
        consuming = asyncio.create_task(self._consume())
        try:
            yield
        finally:
            await self._stop(consuming)
            await end_tasks(*background)
            await self._given.pool.close()
            await self._given.ways.presence.close()

    def hurry(self) -> None:
        """Wait for no handler any more."""
        self._hurry.set()

    def _parts(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._reporter.write_forever,
            self._leases.renew_forever,
            self._pulse.beat_forever,
            self._given.ways.presence.beat_forever,
            *[partial(self._listen, notices) for notices in self._given.ways.notices],
        ]

    # Taking

    async def _consume(self) -> None:
        while not self._is_stopping:
            try:
                await self._consumer.consume()
            except Exception:
                _log.exception("claiming failed")
                await asyncio.sleep(1)

    async def _listen(self, notices: Notices) -> None:
        async for heard in notices.heard():
            await self._take_notice(heard)

    async def _take_notice(self, heard: Heard) -> None:
        if heard.channel == CANCELLED:
            await self._leases.check(JobId(heard.payload))
            return
        if heard.channel is None:  # anything may have been missed
            self._leases.renew_now()
        self._consumer.announce(self._channels.get(heard.channel or ""))

    def _hold(self, message: TaskMessage) -> Run:
        handler = self._given.handlers.get(message.handler)
        in_process = handler is not None and not self._is_async[message.handler]
        return Run(message, handler, in_process, on_stubborn=self._give_up)

    # Running

    def _start(self) -> None:
        if self._is_stopping:
            return
        for run in self._holdings.to_start(self._options.concurrency):
            run.task = asyncio.create_task(self._run(run))

    async def _run(self, run: Run) -> None:
        outcome = await self._executor.execute(run)
        if not run.is_over:
            self._ended(run, outcome)
            with on_behalf_of(run.message):
                await self._conclude(run, outcome)

    def _ended(self, run: Run, outcome: Outcome) -> None:
        """Free the slot."""
        run.over()
        self._holdings.ended(run)
        seconds = None if run.started is None else time.monotonic() - run.started
        if seconds is not None and not run.in_process:
            self._consumer.pace.note(seconds)
        name = "unknown" if run.handler is None else run.message.handler
        self._given.metrics.ended(name, str(run.ending or outcome.status), seconds)
        self._start()
        self._consumer.slot_freed()

    async def _conclude(self, run: Run, outcome: Outcome) -> None:
        """Do with the task what its end asks for."""
        if run.is_lost:
            _log.info("a result is dropped: the task was lost", task_id=run.message.task_id)
            self._holdings.release(run)
        elif run.ending is Ending.HANDED_BACK or (outcome.is_interrupted and self._is_stopping):
            await self._give_back([run])
        else:
            await self._report(run, outcome)

    async def _report(self, run: Run, outcome: Outcome) -> None:
        if outcome.is_interrupted:
            outcome = failed("The handler gave up although nobody had asked it to.")
        outcome, output_ref = await stored_output(self._given.storage, run.message, outcome)
        await self._pulse.settle(run)
        if outcome.status is not ResultStatus.COMPLETED:
            _log.info("a task failed", task_id=run.message.task_id, error=outcome.error_message)
        self._reporter.put(run, Report(run.message, outcome, output_ref, run.progress))

    def _give_up(self, run: Run) -> None:
        """Report a handler that does not end although it was cancelled; it goes on, but nobody waits for it."""
        _log.error("a handler ignores that it was cancelled", task_id=run.message.task_id, handler=run.message.handler)
        if run.is_over:
            return
        outcome = failed(f"The handler did not end when it was cancelled ({run.ending}).")
        self._ended(run, outcome)
        run.task = asyncio.create_task(self._conclude(run, outcome))

    async def _give_back(self, runs: list[Run]) -> None:
        if not runs:
            return
        try:
            given_back = await self._given.ways.queue.abandon([run.message for run in runs], counts=False)
            _log.info("tasks were given back", count=len(given_back))
        except GraticuleError as error:
            _log.warning("tasks could not be given back; their leases will run out", count=len(runs), error=str(error))
        for run in runs:
            self._holdings.release(run)

    async def _give_back_unknown(self) -> None:
        try:
            await self._consumer.give_back_unknown()
        except GraticuleError as error:
            _log.warning("tasks that never arrived could not be given back", error=str(error))

    # Stopping

    async def _stop(self, consuming: "asyncio.Task[None]") -> None:
        """Take nothing more, let handlers end or save, give the rest back, and write what is to be written."""
        self._is_stopping = True
        self._consumer.stop()
        await asyncio.wait({consuming}, timeout=_LAST_WRITES_SECONDS)
        await end_tasks(consuming)
        await self._given.ways.queue.stop_receiving()
        await self._give_back_unknown()
        await self._give_back(self._holdings.take_waiting())
        for run in self._holdings.running:
            run.tell(shutdown=True)
        await self._wait_for_handlers()
        for run in self._holdings.running:
            run.end(Ending.HANDED_BACK)
        await self._wait_for_conclusions()
        await self._give_back([run for run in self._holdings.all() if not run.is_over])
        if not await _within(_LAST_WRITES_SECONDS, self._reporter.drain()):
            _log.error("results could not be written before the end", count=self._reporter.backlog)

    async def _wait_for_handlers(self) -> None:
        quiet = asyncio.create_task(self._holdings.quiet.wait())
        hurry = asyncio.create_task(self._hurry.wait())
        if self._holdings.running_count:
            _log.info("waiting for handlers", count=self._holdings.running_count, seconds=self._options.grace_seconds)
        await asyncio.wait({quiet, hurry}, timeout=self._options.grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        await end_tasks(quiet, hurry)

    async def _wait_for_conclusions(self) -> None:
        """Wait for what follows the end of a handler: an output that is stored, a task that is given back."""
        concluding = {run.task for run in self._holdings.all() if run.task is not None}
        if concluding:
            await asyncio.wait(concluding, timeout=_KILL_SECONDS)


async def _within(seconds: float, work: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


async def _persistently(part: Callable[[], Awaitable[None]]) -> None:
    """Run a part for ever: one that fails in an unforeseen way is logged and begins anew."""
    while True:
        try:
            await part()
        except Exception:
            _log.exception("a part of the worker failed", part=getattr(part, "__qualname__", str(part)))
        await asyncio.sleep(1)
