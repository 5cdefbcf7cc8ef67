"""What fails: an attempt that is tried again, a node for good, and the job with all that is under way in it."""

from pydantic import JsonValue

from graticule.core.errors import GraticuleError
from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.deciding.retry import delay_seconds, may_retry
from graticule.dag.deciding.step import UNDER_WAY, Step
from graticule.dag.graph import ChildFailure, NodeSpec
from graticule.dag.state import NodeState

JOB_FAILED = "cancelled: the job failed"
JOB_CANCELLED = "cancelled: the job was cancelled"


class CannotRun(GraticuleError):
    """A node is ready, and what it was given makes no sense: it fails for good."""

    code = "cannot_run"


def fail_attempt(step: Step, node_id: str, error: str, *, retryable: bool = True) -> None:
    """End the attempt under way: the node is tried again, or fails for good."""
    node = step.node(node_id)
    will_retry = retryable and may_retry(node, step.task_spec(node).retry)
    node = step.move(node_id, NodeStatus.FAILED)
    node.error_message = error
    step.tell(
        EventType.NODE_FAILED,
        node_id,
        {
            "error": error,
            "retryable": retryable,
            "retry_count": node.retry_count,
            "will_retry": will_retry,
            "worker_id": node.worker_id,
        },
        task_id=node.task_id,
    )
    if will_retry:
        _retry(step, node)
    elif node.parent_node_id is None:
        fail_job(step, node_id, error)
    else:
        _child_failed(step, node)


def fail_node(step: Step, node_id: str, error: str) -> None:
    """Fail a static node that never went to a worker, and its job with it."""
    _fail(step, node_id, error)
    fail_job(step, node_id, error)


def fail_job(step: Step, node_id: str, error: str) -> None:
    """End the job because a static node failed for good."""
    _end_job(step, f"node '{node_id}' failed: {error}", {"node_id": node_id, "error": error})


def give_up_job(step: Step, reason: str) -> None:
    """End a job that cannot be advanced, through no fault of a node."""
    if step.active:
        _end_job(step, reason, {"error": reason})


def cancel_job(step: Step, actor: str | None) -> None:
    """End the job because someone asked for it; a job that has ended stays as it is."""
    if step.active:
        _abandon_all_under_way(step, JOB_CANCELLED)
        step.move_job(JobStatus.CANCELLED)
        step.tell(EventType.JOB_CANCELLED, actor=actor)


def _end_job(step: Step, error_message: str, data: dict[str, JsonValue]) -> None:
    step.tell_of_ends()
    step.start_job()
    _abandon_all_under_way(step, JOB_FAILED)
    step.move_job(JobStatus.FAILED)
    step.decision.error_message = error_message
    step.tell(EventType.JOB_FAILED, data=data)


def _retry(step: Step, node: NodeState) -> None:
    retry = node.retry_count - node.retry_base + 1
    delay = delay_seconds(step.task_spec(node).retry, retry, node.task_id or node.node_id)
    step.move(node.node_id, NodeStatus.READY)
    node.retry_count += 1
    node.ready_at = step.after(delay)
    node.task_id = None
    step.tell(
        EventType.NODE_RETRY,
        node.node_id,
        {"retry_count": node.retry_count, "ready_at": node.ready_at.isoformat(), "delay_seconds": delay},
    )


def _child_failed(step: Step, child: NodeState) -> None:
    spec = step.graph.nodes[str(child.parent_node_id)]
    step.edit(spec.node_id).children_failed += 1
    if spec.on_child_failure is ChildFailure.CONTINUE:
        return
    error = f"child {child.node_id} failed: {child.error_message}"
    _abandon_children(step, spec.node_id, JOB_FAILED)
    _fail(step, spec.node_id, error, cancelled_children=True)
    for fan_in in _direct_fan_ins(step, spec):
        _fail(step, fan_in, error)
    fail_job(step, spec.node_id, error)


def _direct_fan_ins(step: Step, spec: NodeSpec) -> list[str]:
    """Give the fan-ins that gather a fan-out's children right after it."""
    targets = (step.graph.nodes[target] for target in dict.fromkeys(spec.next))
    return [target.node_id for target in targets if target.type is NodeType.FAN_IN and target.fan_out == spec.node_id]


def _fail(step: Step, node_id: str, error: str, **more: JsonValue) -> None:
    if step.node(node_id).status is NodeStatus.PENDING:
        step.move(node_id, NodeStatus.READY)
    step.move(node_id, NodeStatus.FAILED).error_message = error
    step.tell(EventType.NODE_FAILED, node_id, {"error": error, **more}, task_id=step.node(node_id).task_id)


def _abandon_all_under_way(step: Step, reason: str) -> None:
    """Fail every node under way. Pending nodes, and those that wait for a retry, stay: the job may be resumed."""
    step.decision.withdraw_all = True
    for spec, node in step.static_nodes():
        if node.status not in UNDER_WAY:
            continue
        if spec.type is NodeType.FAN_OUT:
            _abandon_children(step, spec.node_id, reason)
            _fail(step, spec.node_id, reason, cancelled=True, cancelled_children=True)
        else:
            _fail(step, spec.node_id, reason, cancelled=True)


def _abandon_children(step: Step, fan_out: str, reason: str) -> None:
    """Leave the children under way to one statement: there may be 100,000, and only a few of them were read."""
    step.decision.abandoned_children_of.append(fan_out)
    step.decision.abandoned_because = reason
