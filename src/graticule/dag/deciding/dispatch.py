"""Ready nodes become tasks of a queue."""

from collections.abc import Iterable

from pydantic import JsonValue

from graticule.core.models.engine import EventType
from graticule.core.states import NodeStatus
from graticule.dag.deciding.step import Step, child_id
from graticule.dag.state import NewTask, NodeState


def is_due(step: Step, node: NodeState) -> bool:
    """Tell whether a ready node need not wait for its backoff any longer."""
    return node.status is NodeStatus.READY and (node.ready_at is None or node.ready_at <= step.now)


def dispatch_node(step: Step, node_id: str) -> None:
    """Dispatch a task node, or one child, and tell of it."""
    task = dispatch(step, node_id)
    data: dict[str, JsonValue] = {
        "task_id": task.task_id,
        "queue": task.queue,
        "handler": task.handler,
        "retry_count": task.retry_count,
    }
    step.tell(EventType.NODE_DISPATCHED, node_id, data, task_id=task.task_id)
    step.start_job()


def dispatch_due_children(step: Step) -> None:
    """Dispatch the children whose backoff is over; neighbours of one fan-out are told of together."""
    due: dict[str, list[int]] = {}
    for child in step.children():
        if is_due(step, child):
            due.setdefault(str(child.parent_node_id), []).append(child.fan_out_index or 0)
    for fan_out, indexes in due.items():
        for first, last in runs(sorted(indexes)):
            _dispatch_run(step, fan_out, first, last)


def _dispatch_run(step: Step, fan_out: str, first: int, last: int) -> None:
    if first == last:
        dispatch_node(step, child_id(fan_out, first))
        return
    for index in range(first, last + 1):
        dispatch(step, child_id(fan_out, index))
    tell_of_children(step, EventType.NODE_DISPATCHED, fan_out, first, last)
    step.start_job()


def dispatch(step: Step, node_id: str) -> NewTask:
    """Make the task of a ready node."""
    node = step.move(node_id, NodeStatus.DISPATCHED)
    spec = step.task_spec(node)
    timeout = step.policy.dispatch_timeout(spec.queue)
    node.task_id = f"{step.job.job_id}_{node_id}_{node.retry_count}"
    node.dispatched_at = step.now
    node.deadline_at = step.after(timeout) if timeout else None
    node.ready_at = node.started_at = node.worker_id = node.error_message = node.progress = None
    task = NewTask(
        task_id=node.task_id,
        node_id=node_id,
        handler=spec.handler,
        queue=spec.queue,
        params=node.input_params or {},
        timeout_seconds=spec.timeout_seconds,
        retry_count=node.retry_count,
    )
    step.decision.tasks.append(task)
    return task


def tell_of_children(step: Step, event_type: EventType, fan_out: str, first: int, last: int) -> None:
    """Tell of many children at once; `from` and `to` are the first and the last index."""
    count = last - first + 1
    step.tell(event_type, fan_out, {"fan_out": True, "children": count, "from": first, "to": last})


def runs(indexes: Iterable[int]) -> list[tuple[int, int]]:
    """Give the unbroken runs of sorted indexes, each as its first and its last one."""
    found: list[tuple[int, int]] = []
    for index in indexes:
        if found and found[-1][1] == index - 1:
            found[-1] = (found[-1][0], index)
        else:
            found.append((index, index))
    return found
