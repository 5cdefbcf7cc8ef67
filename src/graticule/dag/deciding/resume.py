"""A failed or cancelled job goes on: from its failed nodes, from one node on, or from its start with new nodes."""

from collections.abc import Sequence

from graticule.core.errors import Conflict, NotFound
from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import NODE_RESUME, JobStatus, NodeStatus
from graticule.dag.deciding.dispatch import runs, tell_of_children
from graticule.dag.deciding.failure import JOB_CANCELLED, JOB_FAILED
from graticule.dag.deciding.step import Step
from graticule.dag.graph import ChildFailure
from graticule.dag.state import NodeState, Resumed, StartedOver

RESUMABLE = frozenset({JobStatus.FAILED, JobStatus.CANCELLED})
ANNOUNCED = frozenset({NodeType.TASK, NodeType.FAN_OUT})  # nodes of the other types take no time once they are ready


def resume_job(step: Step, wanted: Resumed) -> None:
    """Set nodes back and let the job run; nodes that completed are kept, so that nothing is computed twice."""
    _require_ended_job(step)
    named = [] if wanted.node_id is None else [_restartable(step, wanted.node_id)]
    reset = [node_id for name in named for node_id in _begun_downstream(step, name)]
    failed = [
        spec.node_id
        for spec, node in step.static_nodes()
        if node.status is NodeStatus.FAILED and spec.node_id not in {*named, *reset}
    ]
    for node_id in reset:
        _start_over(step, node_id, NodeStatus.PENDING)
    for node_id in named:
        _start_over(step, node_id, NodeStatus.READY)
    children = {node_id: _revive(step, node_id) for node_id in failed}
    step.move_job(JobStatus.RUNNING)
    _tell(step, wanted.actor, [*named, *failed], reset)
    for fan_out, indexes in children.items():
        for first, last in runs(indexes):
            tell_of_children(step, EventType.NODE_READY, fan_out, first, last)


def start_over(step: Step, wanted: StartedOver) -> None:
    """Run a job from its start, with the nodes of its new definition."""
    _require_ended_job(step)
    step.move(step.graph.start, NodeStatus.READY)
    step.move(step.graph.start, NodeStatus.COMPLETED)
    step.move_job(JobStatus.RUNNING)
    step.tell(
        EventType.JOB_RESUMED,
        data={
            "workflow_hash": step.graph.content_hash,
            "reset": [*step.graph.nodes],
            "nodes_completed": [step.graph.start],
        },
        actor=wanted.actor,
    )


def _require_ended_job(step: Step) -> None:
    """A job that ends in this very step has children under way that were not read."""
    if step.decision.job_before is not step.decision.job_status or step.decision.job_before not in RESUMABLE:
        raise Conflict(
            f"Job {step.job.job_id} is {step.decision.job_before}; only a failed or cancelled job can be resumed.",
            hint="Submit the workflow again, with another input if the same inputs are the same job.",
        )


def _restartable(step: Step, node_id: str) -> str:
    """Refuse a node that cannot be the first to run again."""
    if node_id not in step.graph.nodes:
        fan_out, is_child, _ = node_id.partition("__")
        if is_child and fan_out in step.graph.nodes:
            raise Conflict(
                f"Node {node_id!r} is a child of {fan_out!r} and cannot be resumed alone.",
                hint="Resume the job without naming a node: every failed child is tried again.",
            )
        raise NotFound(f"Job {step.job.job_id} has no node {node_id!r}.")
    status = step.node(node_id).status
    if status in (NodeStatus.PENDING, NodeStatus.SKIPPED):
        raise Conflict(
            f"Node {node_id!r} is {status}: the job cannot be resumed from a node that its edges never let run.",
            hint="Name a node upstream of it.",
        )
    return node_id


def _begun_downstream(step: Step, node_id: str) -> list[str]:
    """Give what is downstream of a node and no longer pending."""
    ahead = step.graph.downstream(node_id)
    return [
        spec.node_id
        for spec, node in step.static_nodes()
        if spec.node_id in ahead and node.status is not NodeStatus.PENDING
    ]


def _start_over(step: Step, node_id: str, status: NodeStatus) -> None:
    """Set a node back as if it had never run, but for the numbers of its attempts."""
    if step.node(node_id).status is not status:
        step.move(node_id, status, NODE_RESUME)
    step.decision.started_over.append(node_id)
    node = step.edit(node_id)
    _renew(node)
    node.input_params = None
    if node.node_type is NodeType.FAN_OUT:
        node.children_total = node.children_started = node.children_done = node.children_failed = 0
        step.remove_children(node_id)


def _revive(step: Step, node_id: str) -> list[int]:
    """Set a failed node back to ready, a fan-out with its children that failed; give the indexes of these."""
    node = step.move(node_id, NodeStatus.READY, NODE_RESUME)
    _renew(node)
    if node.node_type is not NodeType.FAN_OUT:
        return []
    if not _tolerates(step, node_id):
        node.children_failed = 0
    failed = [child for child in step.children(node_id) if _goes_on(step, child)]
    for child in failed:
        revived = step.move(child.node_id, NodeStatus.READY, NODE_RESUME)
        _renew(revived)
        revived.ready_at = step.now  # due: found again even if this step does not dispatch it
    return sorted(child.fan_out_index or 0 for child in failed)


def _goes_on(step: Step, child: NodeState) -> bool:
    """A failure that its fan-out tolerates is an outcome and stays; one that the end of the job caused is none."""
    if child.status is not NodeStatus.FAILED:
        return False
    return child.error_message in (JOB_FAILED, JOB_CANCELLED) or not _tolerates(step, str(child.parent_node_id))


def _tolerates(step: Step, fan_out: str) -> bool:
    return step.graph.nodes[fan_out].on_child_failure is ChildFailure.CONTINUE


def _renew(node: NodeState) -> None:
    """Forget the last attempt. A task gets a fresh budget and a number that no attempt of it has had.

    A fan-out's number is given with the state: it is beyond those of all children that it ever had.
    """
    node.output = node.output_ref = node.error_message = node.progress = None
    node.task_id = node.worker_id = node.ready_at = node.dispatched_at = node.started_at = None
    if node.node_type is NodeType.TASK:
        node.retry_count += 1
        node.retry_base = node.retry_count


def _tell(step: Step, actor: str | None, ready: Sequence[str], reset: Sequence[str]) -> None:
    removed = step.decision.removed_children_of
    step.tell(
        EventType.JOB_RESUMED,
        data={"ready": [*ready], "reset": [*reset], "removed_children_of": [*removed]},
        actor=actor,
    )
    for node_id in ready:
        if step.graph.nodes[node_id].type in ANNOUNCED:
            step.tell(EventType.NODE_READY, node_id)
