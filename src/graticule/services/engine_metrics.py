"""What is measured of the engine: what became of jobs and nodes, how steps go, and whether callbacks arrive.

It is counted by the process that did it, when it has committed, and for a whole step at once. Workflows, handlers and
queues are those of compiled workflows, so that there are few of each; no metric names a job.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus, ResultStatus
from graticule.dag.graph import Graph
from graticule.dag.state import NewEvent
from graticule.services.decided_jobs import DecidedJob

_JOB_SECONDS: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 43200)
_HOP_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120)
_COUNTS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_JOB_ENDS: Final[Mapping[EventType, JobStatus]] = {
    EventType.JOB_COMPLETED: JobStatus.COMPLETED,
    EventType.JOB_FAILED: JobStatus.FAILED,
    EventType.JOB_CANCELLED: JobStatus.CANCELLED,
}
_RETRIED: Final = "retried"
_OF_NODES: Final[Mapping[EventType, str]] = {
    EventType.NODE_COMPLETED: "completed",
    EventType.NODE_FAILED: "failed",
    EventType.NODE_SKIPPED: "skipped",
    EventType.NODE_RETRY: _RETRIED,
}


class Attempt(StrEnum):
    """What came of a try to deliver a callback."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GIVEN_UP = "given_up"


class EngineMetrics:
    """The engine as one orchestrator sees it."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Without a registry it is counted for nobody."""
        self._add_jobs(registry)
        self._add_nodes(registry)
        self._add_steps(registry)
        self._attempts = Counter(
            "graticule_callback_attempts_total",
            "Tries to deliver a callback: delivered, failed and to be tried again, or given up.",
            ["outcome"],
            registry=registry,
        )
        for outcome in Attempt:
            self._attempts.labels(outcome.value)
        self._attempt_seconds = Histogram(
            "graticule_callback_attempt_duration_seconds",
            "Time that a try to deliver a callback took.",
            registry=registry,
        )

    def _add_jobs(self, registry: CollectorRegistry | None) -> None:
        self._submitted = Counter("graticule_jobs_submitted_total", "Jobs made.", ["workflow"], registry=registry)
        self._resumed = Counter(
            "graticule_jobs_resumed_total", "Failed jobs that someone let go on.", ["workflow"], registry=registry
        )
        self._ended = Counter("graticule_jobs_ended_total", "Jobs ended.", ["workflow", "status"], registry=registry)
        self._job_seconds = Histogram(
            "graticule_job_duration_seconds",
            "Time from the submission of a job to its completion.",
            ["workflow"],
            buckets=_JOB_SECONDS,
            registry=registry,
        )

    def _add_nodes(self, registry: CollectorRegistry | None) -> None:
        self._nodes = Counter(
            "graticule_nodes_ended_total",
            "Nodes with a handler that ended for good; cancelled: because their job ended.",
            ["handler", "status"],
            registry=registry,
        )
        self._retries = Counter(
            "graticule_node_retries_total", "Attempts that failed and are repeated.", ["handler"], registry=registry
        )
        self._dispatched = Counter(
            "graticule_tasks_dispatched_total", "Tasks put into queues.", ["queue"], registry=registry
        )
        self._dispatch_delay = Histogram(
            "graticule_node_dispatch_delay_seconds",
            "Time from when a node that had to wait could run again to its dispatch.",
            buckets=_HOP_SECONDS,
            registry=registry,
        )

    def _add_steps(self, registry: CollectorRegistry | None) -> None:
        self._result_delay = Histogram(
            "graticule_result_delay_seconds",
            "Time from a report that a task ended to the commit of the step that acts on it; of a job's, the longest.",
            buckets=_HOP_SECONDS,
            registry=registry,
        )
        self._step_seconds = Histogram(
            "graticule_step_duration_seconds",
            "Time that a step took, from reading its jobs to its commit.",
            buckets=_HOP_SECONDS,
            registry=registry,
        )
        self._step_jobs = Histogram(
            "graticule_step_jobs", "Jobs that a step looked at.", buckets=_COUNTS, registry=registry
        )
        self._step_results = Histogram(
            "graticule_step_results", "Results that a step acted on.", buckets=_COUNTS, registry=registry
        )

    def decided(self, decided: Iterable[DecidedJob], now: datetime) -> None:
        """Count what became of jobs and nodes, once it is written."""
        nodes, tasks = Tally[tuple[str, str]](), Tally[str]()
        for job in decided:
            self._jobs(job, now)
            nodes.update(_changed_nodes(job.graph, job.decision.events))
            tasks.update(task.queue for task in job.decision.tasks)
            self._delays(job)
        for (handler, status), count in nodes.items():
            if status == _RETRIED:
                self._retries.labels(handler).inc(count)
            else:
                self._nodes.labels(handler, status).inc(count)
        for queue, count in tasks.items():
            self._dispatched.labels(queue).inc(count)

    def stepped(self, decided: Sequence[DecidedJob], seconds: float) -> None:
        """Note how a step of the loop went, and how long the results that it acted on had waited for it."""
        self._step_seconds.observe(seconds)
        self._step_jobs.observe(len(decided))
        self._step_results.observe(sum(len(job.results) for job in decided))
        for job in decided:
            waits = [result.waited_seconds for result in job.results if result.status is not ResultStatus.RUNNING]
            if waits:  # there may be a thousand, and the longest tells enough
                self._result_delay.observe(max(0.0, *waits) + seconds)

    def called_back(self, outcome: Attempt, seconds: float) -> None:
        """Count a try to deliver a callback."""
        self._attempts.labels(outcome.value).inc()
        self._attempt_seconds.observe(seconds)

    def _jobs(self, job: DecidedJob, now: datetime) -> None:
        workflow = job.graph.workflow_id
        for event in job.decision.events:
            if event.event_type is EventType.JOB_CREATED:
                self._submitted.labels(workflow).inc()
                self._announce_ends(workflow)
            elif event.event_type is EventType.JOB_RESUMED:
                self._resumed.labels(workflow).inc()
            elif event.event_type in _JOB_ENDS:
                self._ended.labels(workflow, _JOB_ENDS[event.event_type].value).inc()
                self._lasted(job, now)

    def _announce_ends(self, workflow: str) -> None:
        """Begin at 0: the first end of its kind would else be no increase."""
        for status in _JOB_ENDS.values():
            self._ended.labels(workflow, status.value)

    def _lasted(self, job: DecidedJob, now: datetime) -> None:
        since = job.snapshot.job.created_at
        if job.decision.job_status is JobStatus.COMPLETED and since is not None:
            self._job_seconds.labels(job.graph.workflow_id).observe(max(0.0, (now - since).total_seconds()))

    def _delays(self, job: DecidedJob) -> None:
        for change in job.decision.changes:
            if change.node.status is NodeStatus.DISPATCHED and change.before is NodeStatus.READY:
                since = job.state.nodes[change.node.node_id].ready_at
                if since is not None and change.node.dispatched_at is not None:
                    self._dispatch_delay.observe(max(0.0, (change.node.dispatched_at - since).total_seconds()))


def _changed_nodes(graph: Graph, events: Iterable[NewEvent]) -> Iterable[tuple[str, str]]:
    """Give the handler of each node that ended or is tried again, and which of it."""
    for event in events:
        status = _OF_NODES.get(event.event_type)
        if status is None or event.data.get("will_retry"):
            continue
        handler = _handler(graph, event.node_id or "")
        if handler is not None:
            yield handler, "cancelled" if event.data.get("cancelled") else status


def _handler(graph: Graph, node_id: str) -> str | None:
    """Give the handler that a node's tasks are for; None for a node that sends none."""
    spec = graph.nodes.get(node_id)
    if spec is None:  # a child: its fan-out knows
        spec = graph.nodes.get(node_id.rpartition("__")[0])
    elif spec.type is not NodeType.TASK:
        return None
    return None if spec is None or spec.task is None else spec.task.handler
