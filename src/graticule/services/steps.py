"""A step: read what is needed of some jobs, let the evaluator decide, write all that follows, commit."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from graticule.core.errors import PASSING, GraticuleError, StaleVersion
from graticule.core.ids import JobId, OwnerId, WorkflowHash
from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus
from graticule.core.trace_context import continued, parse_traceparent
from graticule.dag.deciding.step import ACTIVE
from graticule.dag.evaluate import advance, give_up
from graticule.dag.graph import Graph
from graticule.dag.state import Decision, Happening, JobState, NeedsData, Policy
from graticule.logs import bound, get_logger
from graticule.repositories.database import Connection, Database, after_commit
from graticule.repositories.steps import StepRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.decided_jobs import DecidedJob
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.known_jobs import KnownJobs
from graticule.services.outputs import OutputStore
from graticule.services.step_reading import ReadJob, StepReader, Wake
from graticule.services.step_traces import begun_step, end_steps
from graticule.services.step_writing import write_decisions

_log = get_logger(__name__)
GRAPHS_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step came to."""

    unfinished: set[JobId]  # more results wait
    retries: list[tuple[datetime, JobId, str]]  # nodes that wait for their backoff
    some_ended: bool = False


Decide = Callable[[StepReader, ReadJob, datetime], Awaitable[DecidedJob | None]]


class StepService:
    """Takes steps as one owner."""

    def __init__(
        self,
        database: Database,
        owner_id: OwnerId,
        outputs: OutputStore,
        policy: Policy,
        metrics: EngineMetrics | None = None,
    ) -> None:
        self.owner_id = owner_id
        self.policy = policy
        self.outputs = outputs
        self.metrics = metrics or EngineMetrics()
        self._database = database
        self._graphs: dict[str, Graph] = {}
        self.known = KnownJobs()

    async def advance(self, wakes: Mapping[JobId, Wake]) -> StepOutcome:
        """Take one step of each job that is ours; the others are passed over."""
        return await self._repeated(wakes, self._decide)

    async def give_up(self, job_id: JobId, error: Exception) -> None:
        """Fail a job whose step cannot be written: it must neither hang nor hold up others; it can be resumed."""

        async def failed(_: StepReader, read: ReadJob, now: datetime) -> DecidedJob | None:
            if read.job.status not in ACTIVE:
                return None
            return DecidedJob(read.snapshot, read.graph, read.state, self._failed(read, error, now))

        await self._repeated({job_id: Wake()}, failed)

    async def advance_within(self, connection: Connection, wakes: Mapping[JobId, Wake]) -> StepOutcome:
        """Take the steps inside the caller's transaction."""
        reader = self._reader(connection)
        read = await reader.read(wakes, {})
        decided, _ = await self._written(connection, reader, read, self._decide)
        return _outcome(read, decided)

    async def _repeated(self, wakes: Mapping[JobId, Wake], decide: Decide) -> StepOutcome:
        """Take a step; jobs that someone else changes meanwhile are read and decided anew, with all taken along.

        What cannot be written although nobody changed the jobs never can be.
        """
        refused: list[tuple[JobId, int, datetime]] = []
        while True:
            async with self._database.connection() as connection:
                reader, began = self._reader(connection), time.monotonic()
                read = await reader.read(wakes, self.known.take(wakes))
                try:
                    decided, now = await self._written(connection, reader, read, decide)
                except StaleVersion:
                    versions = [(each.job.job_id, each.job.owner_epoch, each.job.updated_at) for each in read]
                    if versions == refused:
                        raise
                    refused = versions
                else:
                    for job in decided:
                        self.known.keep(job.after(now))
                    self.metrics.stepped(decided, time.monotonic() - began)
                    return _outcome(read, decided)

    def _reader(self, connection: Connection) -> StepReader:
        return StepReader(StepRepository(connection, self.owner_id), self.outputs, partial(self.graph, connection))

    async def _written(
        self, connection: Connection, reader: StepReader, read: Iterable[ReadJob], decide: Decide
    ) -> tuple[list[DecidedJob], datetime]:
        now = self._database.now()
        decided = [job for each in read if (job := await _traced(decide, reader, each, now)) is not None]
        await write_decisions(StepRepository(connection, self.owner_id), self.outputs, decided, now)
        after_commit(connection, partial(self.metrics.decided, decided, now))
        after_commit(connection, partial(end_steps, decided))
        return decided, now

    async def _decide(self, reader: StepReader, read: ReadJob, now: datetime) -> DecidedJob:
        try:
            decision = await self._evaluated(reader, read, now)
        except (StaleVersion, *PASSING):
            raise  # the step is repeated
        except Exception as error:
            if read.wake.resumed is not None:
                raise  # the one who asked is told
            _log.exception("a job could not be advanced and is failed", job_id=read.job.job_id)
            decision = self._failed(read, error, now)
        return DecidedJob(read.snapshot, read.graph, read.state, decision, read.results)

    def _failed(self, read: ReadJob, error: Exception, now: datetime) -> Decision:
        return give_up(read.graph, read.state, _told(error), now, self.policy)

    async def _evaluated(self, reader: StepReader, read: ReadJob, now: datetime) -> Decision:
        """Ask the evaluator, and read what it needs; what was removed meanwhile, it would go on asking for."""
        is_much = False
        asked: list[tuple[frozenset[str], frozenset[str]]] = []
        while True:
            try:
                return await self.evaluate(read.graph, read.state, read.happenings(), now, is_much=is_much)
            except NeedsData as needed:
                if (needed.outputs, needed.children_of) in asked:
                    raise StaleVersion("The step could not be decided: what it needs is not there.") from None
                asked.append((needed.outputs, needed.children_of))
                is_much |= await reader.supply(read, needed)

    async def evaluate(
        self, graph: Graph, state: JobState, happened: Sequence[Happening], now: datetime, *, is_much: bool = False
    ) -> Decision:
        """Ask the evaluator; beside the loop, which goes on meanwhile, if it is given much or may expand a list."""
        if is_much or _may_expand(graph, state):
            return await asyncio.to_thread(advance, graph, state, happened, now, self.policy)
        return advance(graph, state, happened, now, self.policy)

    async def graph(self, connection: Connection, workflow_hash: str) -> Graph:
        """Give the graph that a job pinned."""
        if workflow_hash not in self._graphs:
            row = await WorkflowRepository(connection).get(workflow_hash=WorkflowHash(workflow_hash))
            self.remember(workflow_hash, Graph.model_validate(row.definition))
        return self._graphs[workflow_hash]

    def remember(self, workflow_hash: str, graph: Graph) -> None:
        """Keep a graph at hand; the oldest makes room."""
        if workflow_hash not in self._graphs and len(self._graphs) >= GRAPHS_KEPT:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[workflow_hash] = graph


async def _traced(decide: Decide, reader: StepReader, read: ReadJob, now: datetime) -> DecidedJob | None:
    """Decide for a job as a step of its trace."""
    job = read.job
    step = begun_step(job.job_id, job.traceparent, reader.began_ns)
    with bound(job_id=job.job_id), continued(step.place or parse_traceparent(job.traceparent)):
        decided = await decide(reader, read, now)
    return None if decided is None else replace(decided, step=step)


def _may_expand(graph: Graph, state: JobState) -> bool:
    """Tell whether a fan-out has yet to be expanded, which can take a while."""
    return any(
        node.type is NodeType.FAN_OUT and state.nodes[node.node_id].status in {NodeStatus.PENDING, NodeStatus.READY}
        for node in graph.nodes.values()
    )


def _told(error: Exception) -> str:
    reason = error.message if isinstance(error, GraticuleError) else type(error).__name__
    return f"the engine could not go on: {reason}"


def _outcome(found: Iterable[ReadJob], decided: Sequence[DecidedJob]) -> StepOutcome:
    unfinished = {read.job.job_id for read in found if read.more}
    some_ended = any(job.decision.job_status not in ACTIVE for job in decided)
    return StepOutcome(unfinished, _retries(decided), some_ended)


def _retries(decided: Iterable[DecidedJob]) -> list[tuple[datetime, JobId, str]]:
    return [
        (change.node.ready_at, job.job_id, change.node.node_id)
        for job in decided
        for change in job.decision.changes
        if change.node.status is NodeStatus.READY and change.node.ready_at is not None
    ]
