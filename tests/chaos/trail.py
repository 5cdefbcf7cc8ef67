"""The rules of the audit trail: the events of a job tell one sound story, that of its rows, under one owner at a time.

Each function gives what breaks its rule, as sentences.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.chaos.history import Story, grouped, is_child_of, names_in, nodes_told_of

from graticule.core.models import Event, TaskResult
from graticule.core.models.engine import EventType
from graticule.core.states import JOB, JobStatus, NodeStatus, ResultStatus
from graticule.dag.deciding.step import child_id
from graticule.dag.replay import replay

ENDED_JOB = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})
# What a job means for its asset is told in the same breath as its end.
OF_ASSET = frozenset(
    EventType(f"asset_{what}_{end}")
    for what in ("processing", "export", "reversal", "unpublish")
    for end in ("completed", "failed")
)
AFTER_THE_END = OF_ASSET | {
    *(EventType.RESULT_IGNORED, EventType.CALLBACK_SENT, EventType.CALLBACK_FAILED, EventType.COMMAND_EXECUTED)
}
BEGINS_TERM = frozenset({EventType.JOB_CREATED, EventType.JOB_RECLAIMED, EventType.JOB_RESUMED})
MOVES_JOB = {
    EventType.JOB_STARTED: JobStatus.RUNNING,
    EventType.JOB_COMPLETED: JobStatus.COMPLETED,
    EventType.JOB_FAILED: JobStatus.FAILED,
    EventType.JOB_CANCELLED: JobStatus.CANCELLED,
    EventType.JOB_RESUMED: JobStatus.RUNNING,
}
PENDING, READY, SENT, RUNNING = NodeStatus.PENDING, NodeStatus.READY, NodeStatus.DISPATCHED, NodeStatus.RUNNING
NOT_ENDED = {PENDING, READY, SENT, RUNNING}
# What a node becomes by an event, and where it may come from. Control nodes are ready without a word.
MOVES_NODE = {
    EventType.NODE_READY: (READY, {PENDING}),
    EventType.NODE_DISPATCHED: (SENT, {READY}),
    EventType.NODE_RUNNING: (RUNNING, {READY, SENT}),
    EventType.NODE_COMPLETED: (NodeStatus.COMPLETED, NOT_ENDED),
    EventType.NODE_FAILED: (NodeStatus.FAILED, NOT_ENDED),
    EventType.NODE_RETRY: (READY, set[NodeStatus]()),
    EventType.NODE_SKIPPED: (NodeStatus.SKIPPED, {PENDING, READY}),
}
# Attempts that the orchestrator failed by itself, for no result came.
OVERDUE = ("timeout: no result within", "dispatch timeout: no worker")


# DISAGREES


def disagrees(story: Story) -> Iterator[str]:
    """Rows and events agree, and the events are in an order that can be."""
    yield from _other_statuses(story)
    yield from _impossible_steps_of_job(story.events)
    yield from _impossible_steps_of_nodes(story)
    yield from _results_not_told_once(story)


def _other_statuses(story: Story) -> Iterator[str]:
    """The events, replayed, give the statuses of the rows."""
    replayed = replay(story.graph, story.events)
    if replayed.job_status is not story.job.status:
        yield f"the events say that the job is {replayed.job_status}, its row says {story.job.status}"
    rows = {node_id: node.status for node_id, node in story.nodes.items()}
    for node_id in sorted({*rows, *replayed.node_statuses}):
        told, status = replayed.node_statuses.get(node_id), rows.get(node_id)
        if told is not status:
            yield f"the events say that {node_id} is {told}, its row says {status}"


def _impossible_steps_of_job(events: Iterable[Event]) -> Iterator[str]:
    """A job is created once and first, ends once, and after its end nothing happens unless it is resumed."""
    status: JobStatus | None = None
    for event in events:
        if (event.event_type is EventType.JOB_CREATED) != (status is None):
            yield f"{_told(event)} comes when the job is {status or 'not created'}"
        if event.event_type in MOVES_JOB:
            new = MOVES_JOB[event.event_type]
            is_resumed = event.event_type is EventType.JOB_RESUMED
            if status is not None and (not JOB.allows(status, new) or is_resumed != (status is JobStatus.FAILED)):
                yield f"{_told(event)} comes when the job is {status}"
            status = new
        elif status in ENDED_JOB and event.event_type not in AFTER_THE_END:
            yield f"{_told(event)} comes when the job is {status}"
        status = status or JobStatus.PENDING


def _impossible_steps_of_nodes(story: Story) -> Iterator[str]:
    """A node goes the way of its states, and leaves no end but by a retry that was announced, or a resume.

    What leaves a completed node is told by the rule of that name: it ran again.
    """
    walk = _Walk(story.graph.nodes)
    for event in story.events:
        yield from walk.follow(event)


class _Walk:
    """Where the nodes of a job are, event by event."""

    def __init__(self, node_ids: Iterable[str]) -> None:
        self._statuses = dict.fromkeys(node_ids, PENDING)
        self._will_retry: set[str] = set()  # failed, and a retry was announced
        self._may_go_on: set[str] = set()  # children that failed, of a fan-out that was resumed

    def follow(self, event: Event) -> Iterator[str]:
        """Take one event, and tell what cannot be of it."""
        for node_id in names_in(event, "nodes_completed"):
            self._statuses[node_id] = NodeStatus.COMPLETED
        if event.event_type is EventType.JOB_RESUMED:
            self._resume(event)
        elif event.event_type in MOVES_NODE:
            for node_id in nodes_told_of(event):
                old = self._statuses.get(node_id)
                if old is not NodeStatus.COMPLETED and not self._may_move(node_id, old, event):
                    yield f"{_told(event)} comes when {node_id} is {old}"
                self._move(node_id, event)

    def _may_move(self, node_id: str, old: NodeStatus | None, event: Event) -> bool:
        if event.event_type is EventType.NODE_RETRY:
            return node_id in self._will_retry
        if event.event_type is EventType.NODE_READY and node_id in self._may_go_on:
            return True
        if event.event_type is EventType.NODE_RUNNING and event.task_id is not None and old is RUNNING:
            return True  # another worker took the task over
        return old in MOVES_NODE[event.event_type][1]

    def _move(self, node_id: str, event: Event) -> None:
        self._statuses[node_id] = MOVES_NODE[event.event_type][0]
        self._will_retry.discard(node_id)
        self._may_go_on.discard(node_id)
        if event.data.get("will_retry"):
            self._will_retry.add(node_id)
        if event.event_type is EventType.NODE_RUNNING and isinstance(made := event.data.get("children"), int):
            for index in range(made):
                self._statuses.setdefault(child_id(node_id, index), PENDING)
        if event.data.get("cancelled_children"):
            under_way = [child for child in self._children([node_id]) if self._statuses[child] in (SENT, RUNNING)]
            self._statuses |= dict.fromkeys(under_way, NodeStatus.FAILED)

    def _resume(self, event: Event) -> None:
        """Set nodes back; of those that may run at once, `node_ready` tells next."""
        for child in self._children(names_in(event, "removed_children_of")):
            del self._statuses[child]
        ready = names_in(event, "ready")
        self._statuses |= dict.fromkeys([*ready, *names_in(event, "reset")], PENDING)
        self._may_go_on = {child for child in self._children(ready) if self._statuses[child] is NodeStatus.FAILED}

    def _children(self, fan_outs: list[str]) -> list[str]:
        return [node_id for node_id in self._statuses if is_child_of(node_id, fan_outs)]


def _results_not_told_once(story: Story) -> Iterator[str]:
    """Each end that a worker reported of a task is told of once: it moved the node, or it was ignored.

    Of the reports that a task runs the first is told of; those that follow may say nothing new.
    """
    results = grouped(story.results, [result.task_id for result in story.results])
    told = grouped(story.events, [event.task_id for event in story.events])
    for task_id in sorted({*results, *(task_id for task_id in told if task_id is not None)}):
        ends = Counter(filter(None, map(_reported_end, results[task_id])))
        told_ends = Counter(filter(None, map(_told_end, told[task_id])))
        if ends != told_ends:
            yield f"the results of {task_id} are {dict(ends)}, and told are {dict(told_ends)}"
        running = sum(result.status is ResultStatus.RUNNING for result in results[task_id])
        told_running = sum(map(_tells_that_it_runs, told[task_id]))
        if not min(running, 1) <= told_running <= running:
            yield f"{running} reports say that {task_id} runs, and {told_running} are told"


def _reported_end(result: TaskResult) -> str | None:
    if result.status is ResultStatus.RUNNING:
        return None
    return "completed" if result.status is ResultStatus.COMPLETED else "failed"  # given up by the worker: failed


def _told_end(event: Event) -> str | None:
    """Give the end of a task that an event tells of, if a result of its worker is the reason."""
    if event.event_type is EventType.NODE_COMPLETED:
        return "completed"
    if event.event_type is EventType.NODE_FAILED:
        is_attempt = "will_retry" in event.data and not str(event.data.get("error")).startswith(OVERDUE)
        return "failed" if is_attempt else None  # else the end of the job, or a deadline, ended it
    if event.event_type is EventType.RESULT_IGNORED and not _tells_that_it_runs(event):
        return "completed" if event.data.get("status") == ResultStatus.COMPLETED else "failed"
    return None


def _tells_that_it_runs(event: Event) -> bool:
    if event.event_type is EventType.RESULT_IGNORED:
        return event.data.get("status") == ResultStatus.RUNNING
    return event.event_type is EventType.NODE_RUNNING


# OVERLAPPING_TERMS

Terms = list[tuple[int, Event]]


def overlapping_terms(story: Story) -> Iterator[str]:
    """Of two owners one comes after the other: no term goes on once the next has begun, and each is one owner's.

    Events without a term are of a release that did not write it.
    """
    terms = [(epoch, event) for event in story.events if (epoch := _epoch(event)) is not None]
    yield from _terms_that_go_on(terms)
    yield from _terms_begun_amiss(terms)
    yield from _row_of_another_term(story, terms)


def _terms_that_go_on(terms: Terms) -> Iterator[str]:
    highest = 0
    for epoch, event in terms:
        if epoch < highest:
            yield f"{_told(event)} was written in term {epoch}, and term {highest} had begun"
        highest = max(highest, epoch)


def _terms_begun_amiss(terms: Terms) -> Iterator[str]:
    """A term begins once: the first with the job, any other when the job is reclaimed or resumed.

    Only what comes late for a job that has ended is noted in a term that nobody announced.
    """
    begun: dict[int, str] = {}
    for epoch, event in terms:
        if event.event_type in BEGINS_TERM:
            if epoch in begun:
                yield f"{_told(event)} begins term {epoch}, and so did {begun[epoch]}"
            if (event.event_type is EventType.JOB_CREATED) != (epoch == 1):
                yield f"{_told(event)} begins term {epoch}: the first is the one in which the job is created"
            begun[epoch] = _told(event)
        elif epoch not in begun and event.event_type is not EventType.RESULT_IGNORED:
            yield f"{_told(event)} was written in term {epoch}, which nobody has begun"


def _row_of_another_term(story: Story, terms: Terms) -> Iterator[str]:
    """The row knows the last term, or one that nobody had to tell of yet, and it knows who took the job in it."""
    job = story.job
    highest = max((epoch for epoch, _ in terms), default=0)
    if job.owner_epoch < highest:
        yield f"the row is of term {job.owner_epoch}, and term {highest} had begun"
    for epoch, event in terms:
        if event.event_type is EventType.JOB_RECLAIMED and epoch == job.owner_epoch and event.actor != job.owner_id:
            yield f"{_told(event)} begins term {epoch}, and in the row it is {job.owner_id}'s"


def _epoch(event: Event) -> int | None:
    """Give the term in which an event was written; a reclaim has always told."""
    told = event.data.get("owner_epoch") if event.event_type is EventType.JOB_RECLAIMED else None
    return told if isinstance(told, int) and event.owner_epoch is None else event.owner_epoch


def _told(event: Event) -> str:
    by = f" by {event.actor}" if event.actor else ""
    of = f" of {event.node_id}" if event.node_id else ""
    return f"{event.event_type}{of}{by} (event {event.event_id})"
