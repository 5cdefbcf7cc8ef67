"""What a step reads: the jobs with what happened to them, and the outputs that a decision turns out to need."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from graticule.core.errors import StaleVersion
from graticule.core.ids import JobId
from graticule.core.models.engine import NodeType
from graticule.core.states import NodeStatus, ResultStatus
from graticule.dag.deciding.aggregation import ERROR_LENGTH
from graticule.dag.deciding.fan_out import releasable
from graticule.dag.deciding.step import UNDER_WAY
from graticule.dag.graph import Graph
from graticule.dag.state import (
    NOT_LOADED,
    CancelRequested,
    ChildOutcome,
    DeadlinePassed,
    Happening,
    JobState,
    NeedsData,
    Reported,
    Resumed,
)
from graticule.repositories.steps import (
    ChildRow,
    JobRow,
    JobSnapshot,
    Nodes,
    OutputSources,
    StepRepository,
    StoredOutput,
)
from graticule.services.outputs import MUCH_BYTES, OutputStore, parsed

RESULTS_PER_STEP: Final = 1000
CHILDREN_AT_ONCE: Final = 1000  # of a fan-in: more are read in portions, and gathered beside the loop


@dataclass(slots=True)
class Wake:
    """Why a job is looked at, beyond results that may wait: nodes whose time has come, and what someone asked for."""

    due: set[str] = field(default_factory=set)
    expired: dict[str, bool] = field(default_factory=dict)  # node → does a worker hold the task
    resumed: Resumed | None = None

    def merge(self, other: "Wake") -> None:
        """Take the other's reasons in."""
        self.due |= other.due
        self.expired |= other.expired
        self.resumed = other.resumed or self.resumed


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job as it was read for a step, with what happened to it."""

    snapshot: JobSnapshot
    graph: Graph
    state: JobState
    results: list[Reported]
    wake: Wake
    more: bool = False  # further results wait

    @property
    def job(self) -> JobRow:
        """Give the job's row."""
        return self.snapshot.job

    def happenings(self) -> list[Happening]:
        """Give what happened, in order."""
        happened: list[Happening] = list(self.results)
        if not self.more:  # else the result of an overdue task may be among those that wait
            happened += [DeadlinePassed(node_id, taken) for node_id, taken in self.wake.expired.items()]
        if self.job.cancel_requested_at is not None:
            happened.append(CancelRequested(self.job.cancel_requested_by))
        if self.wake.resumed is not None:
            happened.append(self.wake.resumed)
        return happened


GraphOf = Callable[[str], Awaitable[Graph]]


class StepReader:
    """Reads for one step."""

    def __init__(self, steps: StepRepository, outputs: OutputStore, graph_of: GraphOf) -> None:
        self.began_ns = time.time_ns()
        self._steps = steps
        self._outputs = outputs
        self._graph_of = graph_of

    async def read(self, wakes: Mapping[JobId, Wake], known: Mapping[JobId, JobSnapshot]) -> list[ReadJob]:
        """Read those of the jobs that are ours, as far as a decision begins with; not what is known of them."""
        share = max(1, RESULTS_PER_STEP // max(1, len(wakes)))
        rows = await self._steps.read(wakes, known, share)
        found = [await self._read(*row, wakes[job_id], share) for job_id, row in rows.items()]
        children = await self._steps.children({read.job.job_id: _children_wanted(read) for read in found})
        for read in found:
            read.state.nodes.update(children.get(read.job.job_id, {}))
            if read.wake.resumed is not None:
                await self._add_failed_children(read.job.job_id, read.state.nodes)
        return found

    async def _read(self, snapshot: JobSnapshot, results: list[Reported], wake: Wake, share: int) -> ReadJob:
        job = snapshot.job
        state = JobState(job.job_id, job.status, job.input_params, job.priority, job.traceparent, dict(snapshot.nodes))
        graph = await self._graph_of(job.workflow_hash)
        return ReadJob(snapshot, graph, state, results, wake, more=len(results) >= share)

    async def _add_failed_children(self, job_id: JobId, nodes: Nodes) -> None:
        """Read what a resume begins with: the children that failed, and the counts that new ones stay above."""
        nodes.update(await self._steps.failed_children(job_id))
        for fan_out, retry_count in (await self._steps.last_retry_counts(job_id)).items():
            nodes[fan_out] = replace(nodes[fan_out], retry_count=retry_count + 1)

    async def supply(self, read: ReadJob, needed: NeedsData) -> bool:
        """Read what the evaluator asked for, and tell whether it is so much that it takes a while to go through."""
        for fan_out in needed.children_of:
            read.state.children[fan_out] = await self._outcomes(read, fan_out)
        ended = _completed_children(read.state, needed.outputs)
        others = needed.outputs - ended.keys()
        has_large = bool(others) and await self._supply_nodes(read, others)
        if ended:
            await self._supply_children(read, ended, needed.at_most)
        size = sum(outcome.size for outcome in ended.values())
        return has_large or size > MUCH_BYTES or _most_children(read.state) > CHILDREN_AT_ONCE

    async def _supply_nodes(self, read: ReadJob, node_ids: Iterable[str]) -> bool:
        """Read outputs of nodes, and tell whether one of them was too large for its row."""
        stored = await self._steps.outputs(read.job.job_id, node_ids) | _stored_by_results(read, node_ids)
        for node_id, output in stored.items():
            _put(read, node_id, await self._outputs.read(output))
        return any(output.output_ref is not None for output in stored.values())

    async def _outcomes(self, read: ReadJob, fan_out: str) -> list[ChildOutcome]:
        """Read how the children of a fan-out ended, without their outputs."""
        # The first report of a task's end counts, so the last to be put in is the first.
        reported = {
            result.task_id: result for result in reversed(read.results) if result.status is not ResultStatus.RUNNING
        }
        found: list[ChildOutcome] = []
        total = read.state.nodes[fan_out].children_total
        for first in range(0, total, CHILDREN_AT_ONCE):
            indexes = range(first, min(first + CHILDREN_AT_ONCE, total))
            rows = await self._steps.child_rows(read.job.job_id, fan_out, indexes, ERROR_LENGTH + 1)
            found += [_outcome(row, _end_in_this_step(row, reported)) for row in rows]
        return found

    async def _supply_children(self, read: ReadJob, ended: Mapping[str, ChildOutcome], at_most: int) -> None:
        """Read the outputs of children, unless they turn out to be too large together: then their sizes are told."""
        sources = [*_sources(read, ended)]
        if not await self._measure(read.job.job_id, sources, ended, at_most):
            return
        for portion in _portions(sources):
            rows = await self._steps.child_outputs(read.job.job_id, portion)
            if len(rows) < len(portion):
                raise StaleVersion("Children of a fan-out were removed while their outputs were read.")
            in_rows = await parsed({node_id: text or "null" for node_id, text, ref in rows if ref is None})
            for node_id, _, ref in rows:
                stored = StoredOutput(in_rows.get(node_id), ref)
                ended[node_id].output = await self._outputs.read(stored)

    async def _measure(
        self, job_id: JobId, sources: OutputSources, ended: Mapping[str, ChildOutcome], at_most: int
    ) -> bool:
        """Tell children the sizes of their outputs, until these are too large together; tell whether they are not."""
        for portion in _portions(sources):
            for node_id, size, ref in await self._steps.child_output_sizes(job_id, portion):
                ended[node_id].size = size if ref is None else await self._outputs.size(ref)
                at_most -= ended[node_id].size
                if at_most < 0:
                    return False
        return True


def _put(read: ReadJob, node_id: str, value: JsonValue) -> None:
    """Give a node its output. A stored null would seem not to be read for as long as there is a reference to it."""
    node = read.state.nodes[node_id]
    read.state.nodes[node_id] = replace(node, output=value, output_ref=None if value is None else node.output_ref)
    if value is None:
        read.results[:] = [
            replace(result, output_ref=None) if result.task_id == node.task_id else result for result in read.results
        ]


def _stored_by_results(read: ReadJob, node_ids: Iterable[str]) -> dict[str, StoredOutput]:
    """Give the outputs that stand in results of this very step, and not in their nodes' rows yet."""
    tasks = {read.state.nodes[node_id].task_id: node_id for node_id in node_ids}
    return {
        tasks[result.task_id]: StoredOutput(None, result.output_ref)
        for result in reversed(read.results)
        if result.task_id in tasks and result.status is ResultStatus.COMPLETED and result.output_ref
    }


def _completed_children(state: JobState, node_ids: Collection[str]) -> dict[str, ChildOutcome]:
    """Give those of the nodes that are children which completed, as far as it was read how children ended."""
    return {
        outcome.node_id: outcome
        for outcomes in state.children.values()
        for outcome in outcomes
        if outcome.completed and outcome.node_id in node_ids
    }


def _sources(read: ReadJob, node_ids: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Tell of children where their outputs are: in the result, if it is one of this very step, or else in the row."""
    tasks = {node.task_id for node in read.state.nodes.values() if node.status in UNDER_WAY}
    results = {
        result.node_id: result.result_id
        for result in reversed(read.results)
        if result.status is ResultStatus.COMPLETED and result.task_id in tasks
    }
    return ((node_id, results.get(node_id)) for node_id in node_ids)


def _portions(sources: OutputSources) -> Iterator[OutputSources]:
    return (sources[first : first + CHILDREN_AT_ONCE] for first in range(0, len(sources), CHILDREN_AT_ONCE))


def _most_children(state: JobState) -> int:
    return max(map(len, state.children.values()), default=0)


def _outcome(row: ChildRow, result: Reported | None) -> ChildOutcome:
    """Give how a child ended: as its row says, or as was reported in this very step."""
    completed, error = row.status is NodeStatus.COMPLETED, row.error_message
    if result is not None:
        completed, error = result.status is ResultStatus.COMPLETED, result.error_message
    return ChildOutcome(row.index, row.node_id, completed, NOT_LOADED if completed else None, error, row.key)


def _end_in_this_step(row: ChildRow, reported: Mapping[str, Reported]) -> Reported | None:
    return reported.get(row.task_id or "") if row.status in UNDER_WAY else None


def _children_wanted(read: ReadJob) -> set[str]:
    """Name the children to which something happened, and those that can be released in their place."""
    happened = (*(result.node_id for result in read.results), *read.wake.due, *read.wake.expired)
    wanted = {node_id for node_id in happened if "__" in node_id}
    ended = Counter(node_id.rpartition("__")[0] for node_id in wanted)
    for spec in read.graph.nodes.values():
        if spec.type is NodeType.FAN_OUT:
            node = read.state.nodes[spec.node_id]
            first = node.children_started
            last = first + releasable(spec, node, ended[spec.node_id])
            wanted |= {f"{spec.node_id}__{index}" for index in range(first, last)}
    return wanted
