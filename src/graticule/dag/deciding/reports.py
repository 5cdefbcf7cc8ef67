"""What workers report of their tasks, and what their silence means."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from graticule.core.models.engine import EventType
from graticule.core.states import NodeStatus, ResultStatus
from graticule.dag.deciding.context import stored_output
from graticule.dag.deciding.failure import fail_attempt
from graticule.dag.deciding.step import UNDER_WAY, Step
from graticule.dag.state import DeadlinePassed, NodeState, NotLoaded, Reported

CANCELLED_BY_WORKER = "cancelled by the worker"
FAILED_WITHOUT_REASON = "the worker gave no reason"


def take_report(step: Step, report: Reported) -> None:
    """Act on a report of the attempt under way; any other is told of and changes nothing."""
    reason = _reason_to_ignore(step, report)
    if reason is None:
        _REACTIONS[report.status](step, report)
    else:
        data: dict[str, JsonValue] = {"task_id": report.task_id, "status": str(report.status), "reason": reason}
        step.tell(EventType.RESULT_IGNORED, report.node_id, data, task_id=report.task_id)


def _reason_to_ignore(step: Step, report: Reported) -> str | None:
    node = step.find(report.node_id)
    if node is None:
        return "the job has no such node"
    if not step.active:
        return f"the job is {step.decision.job_status}"
    if node.task_id != report.task_id:
        return f"the node's attempt is {node.task_id}" if node.task_id else "the node has no attempt under way"
    if node.status not in UNDER_WAY:
        return f"the node is {node.status}"
    return None


def _running(step: Step, report: Reported) -> None:
    node = step.node(report.node_id)
    if node.status is NodeStatus.DISPATCHED:
        step.move(report.node_id, NodeStatus.RUNNING)
        _taken_by(step, report)
    elif report.worker_id not in (None, node.worker_id):
        _taken_by(step, report)  # another worker took the task over, because the first one lost its lease
    _note_progress(step, report)
    if report.checkpoint is not None:
        step.tell(EventType.CHECKPOINT_SAVED, report.node_id, {"phase": report.checkpoint}, task_id=report.task_id)


def _taken_by(step: Step, report: Reported) -> None:
    node = step.edit(report.node_id)
    node.worker_id = report.worker_id
    node.started_at = step.now
    _extend_deadline(step, node)
    step.tell(EventType.NODE_RUNNING, report.node_id, {"worker_id": report.worker_id}, task_id=report.task_id)


def _completed(step: Step, report: Reported) -> None:
    _note_progress(step, report)
    node = step.move(report.node_id, NodeStatus.COMPLETED)
    if node.output is None or not isinstance(stored_output(report.output, report.output_ref), NotLoaded):
        node.output = report.output  # otherwise it was asked for, and is there already
    node.output_ref = report.output_ref
    node.worker_id = report.worker_id or node.worker_id
    data: dict[str, JsonValue] = {"worker_id": node.worker_id}
    if report.metrics is not None:
        data["metrics"] = report.metrics
    step.tell(EventType.NODE_COMPLETED, report.node_id, data, task_id=report.task_id)
    if node.parent_node_id is not None:
        step.edit(node.parent_node_id).children_done += 1


def _failed(step: Step, report: Reported) -> None:
    _note_progress(step, report)
    _note_worker(step, report)
    fail_attempt(step, report.node_id, report.error_message or FAILED_WITHOUT_REASON, retryable=report.retryable)


def _cancelled(step: Step, report: Reported) -> None:
    """A worker that gives a task up, in a job that goes on, has failed an attempt."""
    _note_progress(step, report)
    _note_worker(step, report)
    fail_attempt(step, report.node_id, report.error_message or CANCELLED_BY_WORKER)


def _note_progress(step: Step, report: Reported) -> None:
    if report.progress is not None:
        step.edit(report.node_id).progress = report.progress
        step.tell(EventType.NODE_PROGRESS, report.node_id, report.progress, task_id=report.task_id)


def _note_worker(step: Step, report: Reported) -> None:
    if report.worker_id is not None:
        step.edit(report.node_id).worker_id = report.worker_id


_REACTIONS: Mapping[ResultStatus, Callable[[Step, Reported], None]] = {
    ResultStatus.RUNNING: _running,
    ResultStatus.COMPLETED: _completed,
    ResultStatus.FAILED: _failed,
    ResultStatus.CANCELLED: _cancelled,
}


def pass_deadline(step: Step, passed: DeadlinePassed) -> None:
    """Fail the attempt whose deadline is over, unless a worker is at it that has not said so yet."""
    node = step.find(passed.node_id)
    if not step.active or node is None or node.status not in UNDER_WAY:
        return
    if node.deadline_at is None or node.deadline_at > step.now:
        return
    if node.status is NodeStatus.DISPATCHED and passed.taken:
        _extend_deadline(step, step.edit(node.node_id))
        return
    if node.task_id is not None:
        step.decision.withdraw.append(node.task_id)
    fail_attempt(step, node.node_id, _overdue(step, node))


def _overdue(step: Step, node: NodeState) -> str:
    spec = step.task_spec(node)
    if node.status is NodeStatus.RUNNING:
        return f"timeout: no result within {spec.timeout_seconds} s of its start"
    seconds = f"{step.policy.dispatch_timeout(spec.queue):g}"
    return f"dispatch timeout: no worker of queue '{spec.queue}' took the task within {seconds} s"


def _extend_deadline(step: Step, node: NodeState) -> None:
    """Allow a task its own timeout, which its worker enforces, and some grace."""
    node.deadline_at = step.after(step.task_spec(node).timeout_seconds + step.policy.running_grace_seconds)
