"""The history checker: the rules that hold of every history, whatever was killed, paused or cut on the way.

`effects.py` has the rules of what handlers did, `trail.py` those of the audit trail; here are those of jobs and tasks,
the list of all, and the summary for people.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.chaos.effects import counted_nothing, counted_twice, ran_again, superseded
from tests.chaos.history import History, Run, Story, SubmittedJob, grouped, is_child_of, names_in, nodes_told_of
from tests.chaos.trail import ENDED_JOB, disagrees, overlapping_terms

from graticule.core.ids import TaskId
from graticule.core.models import Job, JobMessage
from graticule.core.models.engine import EventType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus

WAITS = frozenset({MessageStatus.QUEUED, MessageStatus.LEASED})
UNDER_WAY = frozenset({NodeStatus.DISPATCHED, NodeStatus.RUNNING})


class Rule(StrEnum):
    """What a violation breaks."""

    LOST_JOB = "lost job"
    FAILED_JOB = "failed job"
    RAN_AGAIN = "ran again"
    COUNTED_TWICE = "counted twice"
    COUNTED_NOTHING = "counted nothing"
    SUPERSEDED = "superseded"
    LOST_TASK = "lost task"
    DISAGREES = "disagrees"
    OVERLAPPING_TERMS = "overlapping terms"


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never be."""

    rule: Rule
    job_id: str | None
    what: str

    def __str__(self) -> str:
        return f"{self.rule.upper()}: job {self.job_id}: {self.what}"


def violations(history: History) -> list[Violation]:
    """Give all that breaks a rule; of a sound history, nothing."""
    found = [Violation(rule, job_id, what) for rule, check in OF_ALL for job_id, what in check(history)]
    for story in history.stories():
        found += [Violation(rule, story.job.job_id, what) for rule, check in OF_EACH for what in check(story)]
    return found


# LOST_JOB and FAILED_JOB

Found = Iterator[tuple[str | None, str]]


def lost_jobs(history: History) -> Found:
    """Every submission has one job, every job has ended, and every message was taken: a bad one as a dead letter."""
    jobs = grouped(history.jobs, [job.idempotency_key for job in history.jobs])
    for asked in history.submitted:
        if problem := _misses_its_job(asked, jobs[asked.key]):
            yield asked.job_id, f"{asked} {problem}"
    for job in history.jobs:
        if job.status not in ENDED_JOB:
            yield job.job_id, f"the job is {job.status}, and nothing goes on"
        if job.status is JobStatus.CANCELLED and job.cancel_requested_at is None:
            yield job.job_id, "the job was cancelled, and nobody asked for it"
    yield from _lost_messages(history)


def _misses_its_job(asked: SubmittedJob, jobs: Sequence[Job]) -> str | None:
    told = [job.job_id for job in jobs]
    if len(jobs) != (0 if asked.is_bad else 1):
        return f"has the jobs {told}"
    if any(job.workflow_id != asked.workflow_id for job in jobs):
        return f"has a job of workflow {jobs[0].workflow_id}"
    if asked.job_id is not None and told not in ([], [asked.job_id]):
        return f"has the job {told[0]}, and another id was given"
    return None


def _lost_messages(history: History) -> Found:
    bad = {asked.key for asked in history.submitted if asked.is_bad}
    dead = {_key(message) for message in history.messages if message.status is MessageStatus.DEAD}
    for key in sorted(bad - dead):
        yield None, f"the bad message {key} is not among the dead letters"
    for message in history.messages:
        is_unexpected = message.status is MessageStatus.DEAD and _key(message) not in bad
        if message.status in WAITS or is_unexpected:
            yield None, f"message {message.message_id} is {message.status}: {message.dead_reason}"


def _key(message: JobMessage) -> str:
    """Give the key under which a message was submitted; a bad one may have no other than its own id."""
    return str(message.body.get("idempotency_key") or message.message_id)


def failed_jobs(history: History) -> Found:
    """A job fails only if it may, and always because of a node: the engine never gives one up."""
    may_fail = {asked.key for asked in history.submitted if asked.may_fail}
    for job in history.jobs:
        if job.status is JobStatus.FAILED and job.idempotency_key not in may_fail:
            yield job.job_id, f"the job failed: {job.error_message}"
    for event in history.events:
        if event.event_type is EventType.JOB_FAILED and "node_id" not in event.data:
            yield event.job_id, f"the engine gave the job up (event {event.event_id}): {event.data.get('error')}"


# LOST_TASK


def runs_without_task(history: History) -> Found:
    """Nothing runs that was not committed: each run is of an attempt that has a row."""
    tasks = {task.task_id: (task.job_id, task.node_id, task.retry_count) for task in history.tasks}
    for run in history.runs().values():
        entry = run.entry
        if tasks.get(TaskId(entry.task_id)) != (entry.job_id, entry.node_id, entry.retry_count):
            yield entry.job_id, f"{run} has no such task: {entry}"


def lost_tasks(story: Story) -> Iterator[str]:
    """No task is left over or missing: none waits when its job has ended, and every attempt was announced once."""
    if story.job.status in ENDED_JOB:
        yield from _left_under_way(story)
    yield from _without_node(story)
    yield from _unannounced_or_missing(story)
    for result in story.results:
        if result.processed_at is None:
            yield f"result {result.result_id} of {result.task_id} ({result.status}) was never acted on"
        if result.task_id not in story.tasks:
            yield f"result {result.result_id} is of {result.task_id}, which has no row"


def _left_under_way(story: Story) -> Iterator[str]:
    """A node may wait for its retry when the job fails or is cancelled under it; when it completes, none does."""
    for task in story.tasks.values():
        if task.status in WAITS:
            yield f"the job is {story.job.status}, and task {task.task_id} is {task.status}"
    left = UNDER_WAY | {NodeStatus.READY} if story.job.status is JobStatus.COMPLETED else UNDER_WAY
    for node in story.nodes.values():
        if node.status in left:
            yield f"the job is {story.job.status}, and node {node.node_id} is {node.status}"


def _without_node(story: Story) -> Iterator[str]:
    """The tasks of children that a resume removed are left, as a record; they may have more than there are now."""
    resumed = [event for event in story.events if event.event_type is EventType.JOB_RESUMED]
    removed = {fan_out for event in resumed for fan_out in names_in(event, "removed_children_of")}
    for task in story.tasks.values():
        if task.node_id not in story.nodes and not is_child_of(task.node_id, removed):
            yield f"task {task.task_id} is of node {task.node_id}, which is not there"


def _unannounced_or_missing(story: Story) -> Iterator[str]:
    """The dispatches of a node are its tasks, in order; children that are told of together are not told by number."""
    sent = [event for event in story.events if event.event_type is EventType.NODE_DISPATCHED]
    told = [(node_id, event.task_id) for event in sent for node_id in nodes_told_of(event)]
    announced = grouped([task_id for _, task_id in told], [node_id for node_id, _ in told])
    for node_id in sorted({*announced, *(task.node_id for task in story.tasks.values())}):
        tasks = [task.task_id for task in story.tasks_of(node_id)]
        dispatches = announced[node_id]
        if len(dispatches) != len(tasks):
            yield f"{node_id} was dispatched {len(dispatches)} times ({dispatches}), and has the tasks {tasks}"
        elif any(task_id not in (None, row) for task_id, row in zip(dispatches, tasks, strict=True)):
            yield f"{node_id} was dispatched as {dispatches}, and has the tasks {tasks}"


# All of them

OF_ALL: tuple[tuple[Rule, Callable[[History], Found]], ...] = (
    (Rule.LOST_JOB, lost_jobs),
    (Rule.FAILED_JOB, failed_jobs),
    (Rule.LOST_TASK, runs_without_task),
)
OF_EACH: tuple[tuple[Rule, Callable[[Story], Iterator[str]]], ...] = (
    (Rule.RAN_AGAIN, ran_again),
    (Rule.COUNTED_TWICE, counted_twice),
    (Rule.COUNTED_NOTHING, counted_nothing),
    (Rule.SUPERSEDED, superseded),
    (Rule.LOST_TASK, lost_tasks),
    (Rule.DISAGREES, disagrees),
    (Rule.OVERLAPPING_TERMS, overlapping_terms),
)


# The summary


def report(history: History, found: Sequence[Violation]) -> str:
    """Tell people what was checked, and what was found."""
    jobs = Counter(job.status for job in history.jobs)
    nodes = Counter(node.status for node in history.nodes)
    events = Counter(event.event_type for event in history.events)
    runs = history.runs()
    counted = {run.name for story in history.stories() for _, run in story.counted_runs()}
    lines = [
        f"submitted: {len(history.submitted)}; jobs: {_counts(jobs)}; instances: {len(history.orchestrators)}",
        f"nodes: {_counts(nodes)}",
        f"attempts: {len(history.tasks)}, of which retries: {sum(task.retry_count > 0 for task in history.tasks)}",
        f"deliveries beyond the first: {sum(max(0, task.delivery_count - 1) for task in history.tasks)}",
        f"runs: {len(runs)}, counted: {len(counted)}, ended in vain: {_in_vain(runs, counted)}",
        f"reclaims: {events[EventType.JOB_RECLAIMED]}, results ignored: {events[EventType.RESULT_IGNORED]}",
        f"violations: {len(found)}",
    ]
    return "\n".join([*lines, *map(str, found)])


def _counts(statuses: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "none"


def _in_vain(runs: Mapping[str, Run], counted: Set[str]) -> int:
    """Count the runs whose effect was superseded: another delivery, or the end of the job, came before."""
    return sum(run.ended is not None and name not in counted for name, run in runs.items())
