"""What must hold of the rows whatever happens, written anew and naively: it shares no rule with the evaluator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.simulation.store import UNDER_WAY, Store

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.graph import Graph, Join, NodeSpec
from graticule.dag.replay import replay
from graticule.dag.state import Decision, NewEvent, NodeState

ENDED = (NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED)
ACTIVE = (JobStatus.PENDING, JobStatus.RUNNING)
OF_AN_ATTEMPT = (
    EventType.NODE_RUNNING,
    EventType.NODE_PROGRESS,
    EventType.NODE_COMPLETED,
    EventType.NODE_FAILED,
    EventType.CHECKPOINT_SAVED,
)


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)


@dataclass(frozen=True)
class Before:
    """What a row said before a commit."""

    status: NodeStatus
    task_id: str | None


def check_commit(store: Store, decision: Decision, before: Mapping[str, Before]) -> None:
    """Check what was just written."""
    resumed = any(event.event_type is EventType.JOB_RESUMED for event in decision.events)
    if not resumed:
        _check_nothing_came_back(store, before)
        require(decision.job_before in ACTIVE or _is_silent(decision), "an ended job was changed")
    _check_attempts(decision, before)
    for row in store.rows.values():
        _check_row(row)
    for spec in store.graph.nodes.values():
        _check_edges(store, spec)
        if spec.type is NodeType.FAN_OUT:
            _check_fan_out(store, spec)
    _check_job(store)
    _check_tasks(store, decision)


def check_story(graph: Graph, store: Store) -> None:
    """Check that the events alone tell where everything stands, and that nothing completed twice."""
    replayed = replay(graph, store.events)
    require(replayed.job_status is store.status, f"the events say {replayed.job_status}, the row {store.status}")
    for node_id, row in store.rows.items():
        status = replayed.node_statuses.get(node_id)
        require(status is row.status, f"the events say that {node_id} is {status}, the row {row.status}")
    require(set(replayed.node_statuses) == set(store.rows), "the events tell of other nodes than the rows")
    _check_completions(store.events)


def _check_completions(events: Iterable[NewEvent]) -> None:
    """A node completes at most once; only a resume allows it a second time."""
    completed: Counter[str | None] = Counter()
    for event in events:
        if event.event_type is EventType.JOB_RESUMED:
            completed.clear()
        elif event.event_type is EventType.NODE_COMPLETED:
            completed[event.node_id] += 1
            require(completed[event.node_id] == 1, f"{event.node_id} completed twice")


def _check_nothing_came_back(store: Store, before: Mapping[str, Before]) -> None:
    for node_id, old in before.items():
        stays = old.status not in ENDED or store.rows[node_id].status is old.status
        require(stays, f"{node_id} left {old.status} without a resume")


def _check_attempts(decision: Decision, before: Mapping[str, Before]) -> None:
    """Only the attempt that was under way may move its node."""
    for event in decision.events:
        if event.event_type in OF_AN_ATTEMPT and event.task_id is not None:
            current = before[str(event.node_id)].task_id
            require(event.task_id == current, f"{event.event_type} of {event.task_id}, and {current} is under way")


def _is_silent(decision: Decision) -> bool:
    """An ended job may only be told what it ignored."""
    ignored = all(event.event_type is EventType.RESULT_IGNORED for event in decision.events)
    return ignored and not (decision.changes or decision.created or decision.tasks)


def _check_row(row: NodeState) -> None:
    """The database's own constraints."""
    name = row.node_id
    require((row.status in ENDED) == (row.ended_at is not None), f"{name} is {row.status}, ended at {row.ended_at}")
    require(row.status is not NodeStatus.FAILED or row.error_message, f"{name} failed without a reason")
    require(row.deadline_at is None or row.status in UNDER_WAY, f"{name} has a deadline and is {row.status}")
    require((row.parent_node_id is None) == (row.fan_out_index is None), f"{name} is half a child")
    finished = row.children_done + row.children_failed
    require(0 <= finished <= row.children_started <= row.children_total, f"the counters of {name} disagree")
    if row.node_type is NodeType.TASK and row.status in UNDER_WAY:
        require(row.task_id is not None, f"{name} is {row.status} without a task")


def _edge(store: Store, source: str, target: str) -> str:
    row = store.rows[source]
    if row.status is NodeStatus.SKIPPED:
        return "dead"
    if row.status is not NodeStatus.COMPLETED:
        return "open"
    if row.node_type is NodeType.CONDITIONAL and target not in row.output["next"]:  # type: ignore[call-overload,index,operator]
        return "dead"
    return "live"


def _check_edges(store: Store, spec: NodeSpec) -> None:
    """A node has started only if its edges allow it, and has not only if they do not."""
    sources = [node.node_id for node in store.graph.nodes.values() if spec.node_id in node.next]
    if not sources:
        return
    edges = [_edge(store, source, spec.node_id) for source in sources]
    may_run = "live" in edges and (spec.join is Join.ANY_OF or "open" not in edges)
    must_skip = set(edges) == {"dead"}
    row, name = store.rows[spec.node_id], spec.node_id
    if row.status is NodeStatus.SKIPPED:
        require(must_skip, f"{name} was skipped with edges {edges}")
    elif row.status is NodeStatus.PENDING:
        held = spec.type is NodeType.FAN_IN and store.rows[str(spec.fan_out)].status not in ENDED
        idle = store.status not in ACTIVE
        require(idle or held or not (may_run or must_skip), f"{name} is left pending with edges {edges}")
    elif not (spec.type is NodeType.FAN_IN and row.status in (NodeStatus.READY, NodeStatus.FAILED)):
        require(may_run, f"{name} is {row.status} with edges {edges}")


def _check_fan_out(store: Store, spec: NodeSpec) -> None:
    row, name = store.rows[spec.node_id], spec.node_id
    children = store.children(name)
    require(row.children_total == len(children), f"{name} counts {row.children_total} of {len(children)} children")
    counted = Counter(child.status for child in children)
    require(row.children_done == counted[NodeStatus.COMPLETED], f"{name} counts {row.children_done} done: {counted}")
    started = [child for child in children if child.status is not NodeStatus.PENDING]
    require(row.children_started == len(started), f"{name} counts {row.children_started} started: {counted}")
    require(started == children[: len(started)], f"{name} released its children out of order")
    if row.status in (NodeStatus.RUNNING, NodeStatus.COMPLETED):
        require(row.children_failed == counted[NodeStatus.FAILED], f"{name} counts {row.children_failed}: {counted}")
    if row.status is NodeStatus.COMPLETED:
        require(all(child.status in ENDED for child in children), f"{name} completed before its children: {counted}")
    waiting = counted[NodeStatus.READY] + counted[NodeStatus.DISPATCHED] + counted[NodeStatus.RUNNING]
    require(waiting <= (spec.max_parallel or waiting), f"{name} has {waiting} children in flight")
    if row.status is NodeStatus.RUNNING and store.status in ACTIVE and row.children_started < row.children_total:
        allowed = spec.max_parallel or row.children_total
        require(waiting == allowed, f"{name} holds children back: {waiting} of {allowed} in flight")


def _check_job(store: Store) -> None:
    static = [store.rows[node_id].status for node_id in store.graph.nodes]
    under_way = [row.node_id for row in store.rows.values() if row.status in UNDER_WAY]
    if store.status not in ACTIVE:
        require(not under_way, f"the job is {store.status}, and {under_way} are under way")
        require(set(store.tasks) == store.withdrawn or store.status is JobStatus.COMPLETED, "tasks were not withdrawn")
    elif all(status in ENDED for status in static):
        raise Violation("everything has ended but the job")
    if store.status is JobStatus.COMPLETED:
        require(set(static) <= {NodeStatus.COMPLETED, NodeStatus.SKIPPED}, f"the job completed with {static}")
    if store.status is JobStatus.FAILED:
        require(store.error_message, "the job failed without a reason")
        require(NodeStatus.FAILED in static, "the job failed, and no node did")
    elif store.status in ACTIVE:
        require(NodeStatus.FAILED not in static, "a node failed for good, and the job goes on")


def _check_tasks(store: Store, decision: Decision) -> None:
    require(store.status in ACTIVE or not decision.tasks, "something was dispatched after the end")
    for task in decision.tasks:
        row = store.rows[task.node_id]
        require(row.task_id == task.task_id, f"{task.task_id} is not the attempt of {task.node_id}")
        require(row.status is NodeStatus.DISPATCHED, f"{task.node_id} has a new task and is {row.status}")
        spec = store.graph.nodes[row.parent_node_id or row.node_id].task
        budget = spec.retry.max_attempts if spec is not None else 0
        require(row.retry_count - row.retry_base <= budget, f"{task.node_id} is tried more often than allowed")


def check_end(store: Store) -> None:
    """Check what a job that completed gives."""
    for spec in store.graph.nodes.values():
        row = store.rows[spec.node_id]
        if spec.type is NodeType.FAN_IN and row.status is NodeStatus.COMPLETED:
            _check_gathered(store, spec, row)


def _check_gathered(store: Store, spec: NodeSpec, row: NodeState) -> None:
    children = store.children(str(spec.fan_out))
    completed = [child.output for child in children if child.status is NodeStatus.COMPLETED]
    failed = [child.node_id for child in children if child.status is NodeStatus.FAILED]
    output = row.output
    require(isinstance(output, dict), f"{spec.node_id} gathered {output}")
    if isinstance(output, dict):
        listed = [entry["node_id"] for entry in output.get("failed", [])]  # type: ignore[union-attr,index,call-overload]
        require(listed == failed, f"{spec.node_id} lists {listed} as failed, not {failed}")
        if spec.aggregation == "collect":
            require(output["results"] == completed, f"{spec.node_id} gathered {output} of {completed}")
