"""The rules of effects: what handlers did, by the ledger, against what the engine made of it.

A completed task names in its output the run that counted. (Outputs are small: of one that is stored beside the rows,
nothing can be seen, and that is a violation, too.) Each function gives what breaks its rule, as sentences.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.chaos.history import Run, Story, nodes_told_of, run_named_in, set_back_by

from graticule.core.models import Node
from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import MessageStatus, NodeStatus
from graticule.dag.graph import Aggregation

MOVES_NODE = frozenset(
    {
        EventType.NODE_READY,
        EventType.NODE_DISPATCHED,
        EventType.NODE_RUNNING,
        EventType.NODE_COMPLETED,
        EventType.NODE_FAILED,
        EventType.NODE_RETRY,
        EventType.NODE_SKIPPED,
    }
)
WHOLE_RUNS = (["began"], ["began", "ended"], ["began", "failed"])


# RAN_AGAIN


def ran_again(story: Story) -> Iterator[str]:
    """A node that completed is never touched again: no event, no attempt, no delivery follows; but for a resume."""
    yield from _events_after_completion(story)
    yield from _attempts_after_completion(story)
    yield from _deliveries_after_completion(story)


def _events_after_completion(story: Story) -> Iterator[str]:
    completed: dict[str, int | None] = {}
    for event in story.events:
        if event.event_type is EventType.JOB_RESUMED:
            for node_id in set_back_by(event, [*completed]):
                del completed[node_id]
        elif event.event_type in MOVES_NODE:
            for node_id in nodes_told_of(event):
                if node_id in completed:
                    told = f"{event.event_type} (event {event.event_id})"
                    yield f"{told} follows the completion of {node_id} (event {completed[node_id]})"
                elif event.event_type is EventType.NODE_COMPLETED:
                    completed[node_id] = event.event_id


def _attempts_after_completion(story: Story) -> Iterator[str]:
    for node in story.completed_tasks():
        accepted = story.tasks.get(node.task_id or "")
        if accepted is None:
            continue  # a lost task
        for task in story.tasks_of(node.node_id):
            if task.retry_count > accepted.retry_count:
                yield f"{node.node_id} completed with {accepted.task_id}, and has the later task {task.task_id}"
        for run in story.runs_of(node.node_id):
            if run.entry.retry_count > accepted.retry_count:
                yield f"{node.node_id} completed with {accepted.task_id}, and the later {run} began"


def _deliveries_after_completion(story: Story) -> Iterator[str]:
    for node, counted in _own_counted_runs(story):
        for run in _later_deliveries(story, counted):
            if not _began_before_end(run, counted):
                yield f"{node.node_id} completed with {counted}, and after its end {run} began"


# COUNTED_NOTHING and COUNTED_TWICE


def counted_nothing(story: Story) -> Iterator[str]:
    """The output of a completed task names a run of the ledger, and that run has had its effect: it ended."""
    for node in story.completed_tasks():
        run = story.counted_run(node)
        if run is None:
            yield f"{node.node_id} completed with {node.output}, which names no run of the ledger"
        elif run.ended is None:
            yield f"{node.node_id} completed with {run}, which never ended: {run.moments}"


def counted_twice(story: Story) -> Iterator[str]:
    """An effect counts once: for its own node, in one place of the fan-in, and as one of the fan-out's children."""
    yield from _runs_that_are_not_one(story)
    yield from _runs_of_other_nodes(story)
    for spec in story.graph.nodes.values():
        node = story.nodes.get(spec.node_id)
        if node is None:
            continue  # rows and events disagree
        if spec.type is NodeType.FAN_OUT:
            yield from _miscounted_children(story, node)
        elif spec.type is NodeType.FAN_IN and node.status is NodeStatus.COMPLETED:
            yield from _misgathered(story, node, str(spec.fan_out), spec.aggregation)


def _runs_that_are_not_one(story: Story) -> Iterator[str]:
    """A run is one execution: it began once, it ended or failed at most once, and all of it is of one delivery."""
    for run in story.runs:
        if run.moments not in WHOLE_RUNS:
            yield f"{run} is not one execution: {run.moments}"
        said = {(e.job_id, e.task_id, e.node_id, e.retry_count, e.delivery_count, e.process_id) for e in run.entries}
        if len(said) > 1:
            yield f"{run} is not one execution: {said}"


def _runs_of_other_nodes(story: Story) -> Iterator[str]:
    for node, run in story.counted_runs():
        if not _is_of(run, node):
            yield f"{node.node_id} completed with {run}, which is of another node"


def _miscounted_children(story: Story, fan_out: Node) -> Iterator[str]:
    """A fan-out that completed has counted every child; else those that the end of the job failed are not counted."""
    children = story.children(fan_out.node_id)
    found = Counter(child.status for child in children)
    done, failed = found[NodeStatus.COMPLETED], found[NodeStatus.FAILED]
    is_complete = fan_out.status is NodeStatus.COMPLETED
    expected = {
        "children_total": done + failed if is_complete else len(children),
        "children_started": len(children) - found[NodeStatus.PENDING],
        "children_done": done,
        "children_failed": failed if is_complete else min(failed, fan_out.children_failed),
    }
    counted = {name: getattr(fan_out, name) for name in expected}
    if counted != expected:
        yield f"fan-out {fan_out.node_id} counts {counted}, and its children are {expected}"


def _misgathered(story: Story, fan_in: Node, fan_out: str, aggregation: Aggregation) -> Iterator[str]:
    """Hold what a fan-in gathered against its children. (A sum, or lists made one, do not name runs.)"""
    output: dict[str, Any] = fan_in.output if isinstance(fan_in.output, dict) else {}
    completed = [child.output for child in story.children(fan_out) if child.status is NodeStatus.COMPLETED]
    gathered, expected = {
        Aggregation.COLLECT: (output.get("results") or [], completed),
        Aggregation.FIRST: ([output.get("result")], completed[:1]),
        Aggregation.LAST: ([output.get("result")], completed[-1:]),
    }.get(aggregation, ([], []))
    if _runs_named_in(gathered) != _runs_named_in(expected):
        named = f"{_runs_named_in(gathered)}, and its children the runs {_runs_named_in(expected)}"
        yield f"fan-in {fan_in.node_id} names the runs {named}"
    if aggregation is not Aggregation.CONCAT and output.get("count") != len(completed):
        yield f"fan-in {fan_in.node_id} counts {output.get('count')} results, and {len(completed)} children completed"


def _runs_named_in(outputs: Sequence[object]) -> list[str]:
    return [name for output in outputs if (name := run_named_in(output)) is not None]


# SUPERSEDED


def superseded(story: Story) -> Iterator[str]:
    """What counted is of the node's last attempt and of that attempt's last delivery; a lease that was lost is void.

    Two runs may have the same delivery number: a server that is restarted without notice may forget a claim that was
    not flushed, and a worker that gives a task back takes its delivery off the count. A higher number is another's.
    (To requeue a dead letter begins the count anew, so that nothing may do that in a history that is checked.)
    """
    for node, run in _own_counted_runs(story):
        if run.entry.task_id != node.task_id:
            yield f"{node.node_id} completed with {run}, and its attempt is {node.task_id}"
        task = story.tasks.get(run.entry.task_id)
        if task and (task.status, task.delivery_count) != (MessageStatus.DONE, run.entry.delivery_count):
            now = f"{task.status} at delivery {task.delivery_count}"
            yield f"{node.node_id} completed with {run}, and its task is {now}"
        for later in _later_deliveries(story, run):
            if _began_before_end(later, run):
                yield f"{node.node_id} completed with {run}, and {later} had begun before its end"


def _own_counted_runs(story: Story) -> list[tuple[Node, Run]]:
    return [(node, run) for node, run in story.counted_runs() if _is_of(run, node)]


def _is_of(run: Run, node: Node) -> bool:
    return (run.entry.job_id, run.entry.node_id) == (node.job_id, node.node_id)


def _later_deliveries(story: Story, counted: Run) -> list[Run]:
    """Give the runs of the same attempt for which a worker got it after the one that counted."""
    same_task = (run for run in story.runs_of(counted.entry.node_id) if run.entry.task_id == counted.entry.task_id)
    return [run for run in same_task if run.entry.delivery_count > counted.entry.delivery_count]


def _began_before_end(run: Run, counted: Run) -> bool:
    return counted.ended is None or run.began < counted.ended
