"""A job with what was decided for it, on the way to its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graticule.core.ids import JobId
from graticule.core.states import NodeStatus
from graticule.dag.deciding.step import ACTIVE
from graticule.dag.graph import Graph
from graticule.dag.state import NOT_LOADED, Decision, JobState, NodeState, Reported
from graticule.repositories.steps import AssetWork, JobSnapshot, document
from graticule.telemetry import NO_SPAN, Span

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DecidedJob:
    """A job with what was decided for it, and the results that it was decided upon."""

    snapshot: JobSnapshot
    graph: Graph
    state: JobState
    decision: Decision
    results: Sequence[Reported] = ()
    step: Span = NO_SPAN

    @property
    def job_id(self) -> JobId:
        """Give the job's id."""
        return self.snapshot.job.job_id

    @property
    def moves_job(self) -> bool:
        """Tell whether the job gets another status, or a reason."""
        return self.decision.job_status is not self.decision.job_before or self.decision.error_message is not None

    @property
    def work(self) -> AssetWork | None:
        """Give the asset version that the job works on, if there is one."""
        return self.snapshot.job.work

    @property
    def ends(self) -> bool:
        """Tell whether the job ends now."""
        return self.moves_job and self.decision.job_status not in ACTIVE

    @property
    def writes(self) -> bool:
        """Tell whether there is anything to write."""
        decision = self.decision
        return bool(self.results or decision.changes or decision.created or decision.events or self.moves_job)

    @property
    def traceparent(self) -> str | None:
        """Give where in its trace the job is, for what it sends on: in this step, if that is recorded."""
        return self.step.traceparent or self.state.traceparent

    def row(self, **values: Any) -> Row:
        """Give a row of this job."""
        return {"job_id": self.job_id, **values}

    def fenced(self, **values: Any) -> Row:
        """Give a row of this job that names its epoch."""
        return self.row(owner_epoch=self.snapshot.job.owner_epoch, **values)

    def after(self, now: datetime) -> JobSnapshot:
        """Give the job as its rows say once the decision is written."""
        if not self.writes:
            return self.snapshot
        job = replace(self.snapshot.job, status=self.decision.job_status, updated_at=now)
        changed = [change.node for change in self.decision.changes if change.node.node_id in self.graph.nodes]
        nodes = {**self.snapshot.nodes, **{node.node_id: _without_output(node) for node in changed}}
        return JobSnapshot(job, nodes, self.snapshot.size + sum(map(_grown, changed)))


def _grown(node: NodeState) -> int:
    """Tell by how much a snapshot may have grown with a node: by its parameters, when it is dispatched."""
    return len(document(node.input_params)) if node.status is NodeStatus.DISPATCHED else 0


def _without_output(node: NodeState) -> NodeState:
    return replace(node, output=NOT_LOADED) if node.status is NodeStatus.COMPLETED else node
