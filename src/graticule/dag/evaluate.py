"""The evaluator: what follows from what happened to a job. A function: no I/O, no clock, no randomness.

What happened is applied first, in order. Then the job is settled: edges are followed, nodes that
need no worker complete, and what is ready is dispatched, until nothing more follows. A job that
ends on the way dispatches nothing.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from graticule.core.models.engine import EventType, NodeType
from graticule.core.states import JobStatus, NodeStatus
from graticule.dag.deciding.aggregation import gather
from graticule.dag.deciding.context import output_of, template_context
from graticule.dag.deciding.dispatch import dispatch_due_children, dispatch_node, is_due
from graticule.dag.deciding.edges import Verdict, is_live, judge
from graticule.dag.deciding.failure import CannotRun, cancel_job, fail_node, give_up_job
from graticule.dag.deciding.fan_out import complete_fan_out, expand, has_ended, launch, release
from graticule.dag.deciding.reports import pass_deadline, take_report
from graticule.dag.deciding.resume import ANNOUNCED, RESUMABLE, resume_job, start_over
from graticule.dag.deciding.step import ENDED, Step
from graticule.dag.graph import Branch, Graph, NodeSpec
from graticule.dag.state import (
    CancelRequested,
    DeadlinePassed,
    Decision,
    Happening,
    JobState,
    NodeState,
    Policy,
    Reported,
    Resumed,
    StartedOver,
    Submitted,
)
from graticule.dag.templates import ParamsTemplate, TemplateError, evaluate_condition

DEFAULT_POLICY = Policy()


def advance(
    graph: Graph, state: JobState, happened: Sequence[Happening], now: datetime, policy: Policy = DEFAULT_POLICY
) -> Decision:
    """Decide what follows. Raises `NeedsData` when that depends on something that the state leaves out."""
    step = Step(graph, state, now, policy)
    for happening in happened:
        _apply(step, happening)
    _Settlement(step).settle()
    return step.decide()


def give_up(graph: Graph, state: JobState, reason: str, now: datetime, policy: Policy = DEFAULT_POLICY) -> Decision:
    """Fail a job that `advance` cannot decide for or whose decision cannot be written; it can be resumed."""
    step = Step(graph, state, now, policy)
    give_up_job(step, reason)
    return step.decide()


def _apply(step: Step, happening: Happening) -> None:
    match happening:
        case Reported():
            take_report(step, happening)
        case DeadlinePassed():
            pass_deadline(step, happening)
        case Submitted():
            _submit(step, happening)
        case CancelRequested():
            cancel_job(step, happening.actor)
        case Resumed():
            resume_job(step, happening)
        case StartedOver():
            start_over(step, happening)


def _submit(step: Step, submitted: Submitted) -> None:
    start = step.graph.start
    step.move(start, NodeStatus.READY)
    step.move(start, NodeStatus.COMPLETED)
    data: dict[str, JsonValue] = {"workflow_id": step.graph.workflow_id, "nodes_completed": [start]}
    step.tell(EventType.JOB_CREATED, data=data, actor=submitted.actor)


class _Settlement:
    """Follows the edges until nothing changes, and only then dispatches: a node that fails on the way ends the job."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._due: dict[str, None] = {}  # task nodes, in the order in which they became ready
        self._expanded: dict[str, list[NodeState]] = {}  # fan-outs with their new children
        self._reactions: Mapping[NodeType, Callable[[NodeSpec], None]] = {
            NodeType.START: self._complete_start,
            NodeType.END: self._complete_end,
            NodeType.TASK: self._prepare_task,
            NodeType.CONDITIONAL: self._choose,
            NodeType.FAN_OUT: self._prepare_fan_out,
            NodeType.FAN_IN: self._gather,
        }

    def settle(self) -> None:
        """Bring the job to rest: every node waits for something outside, or has ended. One that has ended rests."""
        ahead = deque(self._concerned())
        while ahead and self._step.active:
            spec = self._step.graph.nodes[ahead.popleft()]
            if self._step.node(spec.node_id).status not in ENDED and self._ends(spec):
                ahead.extend(spec.next)
        if self._step.active:
            self._dispatch()
            self._complete_job_or_go_on()

    def _concerned(self) -> list[str]:
        """Give the nodes that may move. A pending one does so only when its edges do, or its fan-out.

        A job that failed or was cancelled was left as it was, so that any node of it may move when it is resumed.
        """
        if self._step.decision.job_before in RESUMABLE:
            return list(self._step.graph.nodes)
        reached = {target for spec in self._step.changed_nodes() for target in spec.next}
        return [
            spec.node_id
            for spec, node in self._step.static_nodes()
            if node.status not in ENDED
            and (node.status is not NodeStatus.PENDING or spec.fan_out is not None or spec.node_id in reached)
        ]

    def _ends(self, spec: NodeSpec) -> bool:
        """Take a node as far as it goes by itself; tell whether it has ended."""
        node = self._step.node(spec.node_id)
        if node.status is NodeStatus.PENDING or spec.type is NodeType.FAN_IN:
            self._follow_edges(spec, node)
        elif node.status is NodeStatus.READY:
            self._react(spec)
        elif spec.type is NodeType.FAN_OUT and has_ended(node):
            complete_fan_out(self._step, spec)
        return self._step.node(spec.node_id).status in ENDED

    def _follow_edges(self, spec: NodeSpec, node: NodeState) -> None:
        """Let a node run or skip it. A fan-in that was failed with its fan-out is ready again and waits like others."""
        verdict = judge(self._step, spec)
        if verdict is Verdict.WAIT or (verdict is Verdict.RUN and self._is_early(spec)):
            return
        if verdict is Verdict.SKIP:
            self._step.move(spec.node_id, NodeStatus.SKIPPED)
            self._step.tell(EventType.NODE_SKIPPED, spec.node_id)
            return
        if node.status is NodeStatus.PENDING:
            self._step.move(spec.node_id, NodeStatus.READY)
            if spec.type in ANNOUNCED:
                self._step.tell(EventType.NODE_READY, spec.node_id)
        self._react(spec)

    def _is_early(self, spec: NodeSpec) -> bool:
        """A fan-in needs its fan-out to have ended, whatever other edges say."""
        return spec.fan_out is not None and self._step.node(spec.fan_out).status not in ENDED

    # What each type of node does when it is ready

    def _react(self, spec: NodeSpec) -> None:
        try:
            self._reactions[spec.type](spec)
        except (TemplateError, CannotRun) as error:
            fail_node(self._step, spec.node_id, str(error))

    def _complete_start(self, spec: NodeSpec) -> None:
        """Only a resumed job comes here: the start of a new one completes with its submission."""
        self._step.move(spec.node_id, NodeStatus.COMPLETED)
        self._step.tell(EventType.NODE_COMPLETED, spec.node_id)

    def _complete_end(self, spec: NodeSpec) -> None:
        self._step.move(spec.node_id, NodeStatus.COMPLETED)
        self._step.ends.append(spec.node_id)

    def _prepare_task(self, spec: NodeSpec) -> None:
        """Render the parameters once; every retry is sent the same."""
        node = self._step.node(spec.node_id)
        if not is_due(self._step, node):
            return
        if node.input_params is None:
            params = ParamsTemplate(self._step.task_spec(node).params).render(template_context(self._step))
            self._step.edit(spec.node_id).input_params = params
        self._due[spec.node_id] = None

    def _choose(self, spec: NodeSpec) -> None:
        index, branch = self._chosen(spec)
        output: dict[str, JsonValue] = {"branch": index, "next": [*branch.next]}
        self._step.move(spec.node_id, NodeStatus.COMPLETED).output = output
        self._step.tell(EventType.NODE_COMPLETED, spec.node_id, {**output})

    def _chosen(self, spec: NodeSpec) -> tuple[int, Branch]:
        context = template_context(self._step)
        for index, branch in enumerate(spec.branches):
            if branch.condition is None or evaluate_condition(branch.condition, context):
                return index, branch
        raise CannotRun(f"No condition of '{spec.node_id}' holds, and it has no default.")

    def _prepare_fan_out(self, spec: NodeSpec) -> None:
        """Make the children; one that is resumed has them already."""
        node = self._step.node(spec.node_id)
        if spec.node_id in self._expanded:
            return
        children = [] if node.children_total else expand(self._step, spec)
        if children or not has_ended(node):
            self._expanded[spec.node_id] = children
        else:
            complete_fan_out(self._step, spec)

    def _gather(self, spec: NodeSpec) -> None:
        output = gather(self._step, spec)
        self._step.move(spec.node_id, NodeStatus.COMPLETED).output = output
        self._step.tell(EventType.NODE_COMPLETED, spec.node_id, {"count": output["count"]})

    # Once nothing more follows

    def _dispatch(self) -> None:
        for node_id in self._due:
            dispatch_node(self._step, node_id)
        for fan_out, children in self._expanded.items():
            launch(self._step, self._step.graph.nodes[fan_out], children)
        dispatch_due_children(self._step)
        for spec, node in self._step.static_nodes():
            if node.children_started < node.children_total and node.status is NodeStatus.RUNNING:
                release(self._step, spec)

    def _complete_job_or_go_on(self) -> None:
        if any(node.status not in ENDED for _, node in self._step.static_nodes()):
            self._step.tell_of_ends()
            return
        self._step.start_job()
        self._step.decision.result = _result(self._step)
        self._step.move_job(JobStatus.COMPLETED)
        self._step.tell(EventType.JOB_COMPLETED, data={"nodes_completed": [*self._step.ends]})


def _result(step: Step) -> JsonValue:
    """Give what flowed into the ends: one output as it is, several by the names of their nodes."""
    ends = [spec.node_id for spec in step.graph.nodes.values() if spec.type is NodeType.END]
    sources = dict.fromkeys(
        source
        for end in ends
        for source in step.graph.incoming[end]
        if step.graph.nodes[source].type in (NodeType.TASK, NodeType.FAN_IN) and is_live(step, source, end)
    )
    outputs = {source: output_of(step, source) for source in sources}
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs or None
