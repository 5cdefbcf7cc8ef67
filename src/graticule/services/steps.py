"""A step: read what is needed of some jobs, let the evaluator decide, write all that follows, commit."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from graticule.core.errors import GraticuleError, StaleVersion, TransactionAborted, Unavailable
from graticule.core.ids import JobId, OwnerId, WorkflowHash
from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus
from graticule.dag.deciding.step import ACTIVE
from graticule.dag.evaluate import advance, give_up
from graticule.dag.graph import Graph
from graticule.dag.state import Decision, Happening, JobState, NeedsData, Policy
from graticule.logs import get_logger
from graticule.repositories.database import Connection, Database
from graticule.repositories.steps import JobSnapshot, StepRepository
from graticule.repositories.workflows import WorkflowRepository
from graticule.services.known_jobs import KnownJobs
from graticule.services.outputs import OutputStore
from graticule.services.step_reading import ReadJob, StepReader, Wake
from graticule.services.step_writing import DecidedJob, write_decisions

_log = get_logger(__name__)
GRAPHS_KEPT: Final = 256
ATTEMPTS: Final = 5  # of a step whose jobs are changed while it is decided


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step came to."""

    unfinished: set[JobId]  # more results wait
    retries: list[tuple[datetime, JobId, str]]  # nodes that wait for their backoff
    some_ended: bool = False


class StepService:
    """Takes steps as one owner."""

    def __init__(self, database: Database, owner_id: OwnerId, outputs: OutputStore, policy: Policy) -> None:
        self.owner_id = owner_id
        self.policy = policy
        self.outputs = outputs
        self._database = database
        self._graphs: dict[str, Graph] = {}
        self.known = KnownJobs()

    async def advance(self, wakes: Mapping[JobId, Wake]) -> StepOutcome:
        """Take one step of each job that is ours; the others are passed over.

        A job that someone else changes meanwhile is read and decided anew, with all that are taken along.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._database.connection() as connection:
                    return await self._advance(connection, wakes)
            except StaleVersion:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _advance(self, connection: Connection, wakes: Mapping[JobId, Wake]) -> StepOutcome:
        known = self.known.take(wakes)
        found, decided, now = await self._step(connection, wakes, known)
        for job in decided:
            self.known.keep(job.after(now))
        return _outcome(found, decided)

    async def advance_within(self, connection: Connection, wakes: Mapping[JobId, Wake]) -> StepOutcome:
        """Take the steps inside the caller's transaction."""
        found, decided, _ = await self._step(connection, wakes, {})
        return _outcome(found, decided)

    async def _step(
        self, connection: Connection, wakes: Mapping[JobId, Wake], known: Mapping[JobId, JobSnapshot]
    ) -> tuple[list[ReadJob], list[DecidedJob], datetime]:
        now = datetime.now(UTC)
        steps = StepRepository(connection, self.owner_id)
        reader = StepReader(steps, self.outputs, partial(self.graph, connection))
        found = await reader.read(wakes, known)
        decided = [await self._decide(reader, read, now) for read in found]
        await write_decisions(steps, self.outputs, decided, now)
        return found, decided, now

    async def give_up(self, job_id: JobId, error: Exception) -> None:
        """Fail a job whose step cannot be written: it must neither hang nor hold up others; it can be resumed."""
        now = datetime.now(UTC)
        async with self._database.connection() as connection:
            steps = StepRepository(connection, self.owner_id)
            reader = StepReader(steps, self.outputs, partial(self.graph, connection))
            for read in await reader.read({job_id: Wake()}, {}):
                if read.job.status in ACTIVE:
                    decision = give_up(read.graph, read.state, _told(error), now, self.policy)
                    decided = DecidedJob(read.snapshot, read.graph, read.state, decision)
                    await write_decisions(steps, self.outputs, [decided], now)

    async def _decide(self, reader: StepReader, read: ReadJob, now: datetime) -> DecidedJob:
        try:
            decision = await self._evaluated(reader, read, now)
        except (StaleVersion, Unavailable, TransactionAborted):
            raise  # the step is repeated
        except Exception as error:
            if read.wake.resumed is not None:
                raise  # the one who asked is told
            _log.exception("a job could not be advanced and is failed", job_id=read.job.job_id)
            decision = give_up(read.graph, read.state, _told(error), now, self.policy)
        return DecidedJob(read.snapshot, read.graph, read.state, decision, read.results)

    async def _evaluated(self, reader: StepReader, read: ReadJob, now: datetime) -> Decision:
        """Ask the evaluator, and read what it turns out to need."""
        is_much = False
        while True:
            try:
                return await self.evaluate(read.graph, read.state, read.happenings(), now, is_much=is_much)
            except NeedsData as needed:
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
