"""What a step reads: the jobs with what happened to them, and the outputs that a decision turns out to need."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from graticule.core.ids import JobId
from graticule.core.models.engine import NodeType, ResultStatus
from graticule.core.states import NodeStatus
from graticule.dag.deciding.fan_out import releasable
from graticule.dag.graph import Graph
from graticule.dag.state import (
    CancelRequested,
    ChildOutcome,
    DeadlinePassed,
    Happening,
    JobState,
    NeedsData,
    Reported,
    Resumed,
)
from graticule.repositories.steps import ChildRow, JobRow, JobSnapshot, Nodes, StepRepository, StoredOutput
from graticule.services.outputs import OutputStore

RESULTS_PER_STEP: Final = 1000
UNDER_WAY: Final = frozenset({NodeStatus.DISPATCHED, NodeStatus.RUNNING})


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

    async def supply(self, read: ReadJob, needed: NeedsData) -> None:
        """Read outputs that the evaluator asked for."""
        job_id, state = read.job.job_id, read.state
        if needed.outputs:
            stored = await self._steps.outputs(job_id, needed.outputs) | _stored_by_results(read, needed.outputs)
            for node_id, output in stored.items():
                _put(read, node_id, await self._outputs.read(output))
        for fan_out in needed.children_of:
            state.children[fan_out] = await self._outcomes(job_id, fan_out, read.results)

    async def _outcomes(self, job_id: JobId, fan_out: str, results: Sequence[Reported]) -> list[ChildOutcome]:
        rows = await self._steps.child_rows(job_id, fan_out)
        # The first report of a task's end counts, so the last to be put in is the first.
        reported = {result.task_id: result for result in reversed(results) if result.status is not ResultStatus.RUNNING}
        fresh = await self._steps.result_outputs([each.result_id for each in reported.values() if each.result_id])
        return [await self._outcome(row, _end_in_this_step(row, reported), fresh) for row in rows]

    async def _outcome(self, row: ChildRow, result: Reported | None, fresh: Mapping[int, StoredOutput]) -> ChildOutcome:
        """Give how a child ended: as its row says, or as was reported in this very step."""
        if result is None:
            completed, error, output = row.status is NodeStatus.COMPLETED, row.error_message, row.output
        else:
            completed, error = result.status is ResultStatus.COMPLETED, result.error_message
            output = fresh[result.result_id or 0]
        value = await self._outputs.read(output) if completed else None
        return ChildOutcome(row.index, row.node_id, completed, value, error, row.key)


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
