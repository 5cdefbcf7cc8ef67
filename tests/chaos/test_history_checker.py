"""The checker is what proves the engine, so it is proven first: a sound history passes, and no tampered one does."""

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chaos.effects import MOVES_NODE
from tests.chaos.history import History
from tests.chaos.ledger import Entry, Ledger, Moment, TornLine
from tests.chaos.rules import Rule, report, violations
from tests.chaos.sound_history import NOW, sound_history

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.models import Event, Node, Task, TaskResult
from graticule.core.models.engine import EventType as E
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus, ResultStatus
from graticule.core.table import Row

R = TypeVar("R", bound=Row)
LEFT_OVER: dict[str, dict[str, Any]] = {
    "tasks": {"status": MessageStatus.LEASED},
    "messages": {"status": MessageStatus.LEASED},
    "results": {"processed_at": None},
}
Tampering = Callable[[History], None]


# Changing a history


def change(rows: list[R], /, where: dict[str, Any], **values: Any) -> R:
    """Alter the one row that is meant."""
    (index,) = [number for number, row in enumerate(rows) if _matches(row, where)]
    rows[index] = rows[index].model_copy(update=values)
    return rows[index]


def remove(rows: list[Any], /, **where: Any) -> None:
    """Delete the rows that are meant."""
    kept = [row for row in rows if not _matches(row, where)]
    assert len(kept) < len(rows)
    rows[:] = kept


def _matches(row: object, where: dict[str, Any]) -> bool:
    return all(getattr(row, name) == value for name, value in where.items())


def event(history: History, **where: Any) -> Event:
    (found,) = [each for each in history.events if _matches(each, where)]
    return found


def tell_after(history: History, before: Event, event_type: E, node_id: str | None = None, **values: Any) -> Event:
    """Write one more event, right after another one of the job."""
    more = {"job_id": before.job_id, "owner_epoch": before.owner_epoch, "data": {}, **values}
    told = Event(event_id=(before.event_id or 0) + 1, event_type=event_type, node_id=node_id, created_at=NOW, **more)
    history.events.append(told)
    return told


def add_task(history: History, job_id: str, node_id: str, *, number: int = 0, done: bool = False) -> str:
    """Write the row of one more attempt."""
    task_id = f"{job_id}_{node_id}_{number}"
    status = MessageStatus.DONE if done else MessageStatus.WITHDRAWN
    own = {"task_id": task_id, "job_id": job_id, "node_id": node_id, "retry_count": number, "status": status}
    times = {"available_at": NOW, "created_at": NOW}
    history.tasks.append(Task(**own, **times, queue="q", handler="echo", delivery_count=int(done)))
    return task_id


def add_result(history: History, task_id: str, status: ResultStatus) -> None:
    """Write one more report of a task."""
    (task,) = [task for task in history.tasks if task.task_id == task_id]
    own = {"task_id": task_id, "job_id": task.job_id, "node_id": task.node_id, "status": status}
    history.results.append(TaskResult(**own, result_id=999, reported_at=NOW, processed_at=NOW))


def add_run(history: History, task_id: str, delivery: int, *moments: Moment, at: float = 1000.0) -> str:
    """Let a handler run once more."""
    (task,) = [task for task in history.tasks if task.task_id == task_id]
    for offset, moment in enumerate(("began", *moments)):
        history.ledger.append(
            Entry(
                *("another run", moment, task_id, task.job_id, task.node_id, task.retry_count, delivery),
                process_id=9999,
                at=at + offset,
            )
        )
    return "another run"


def rename_run(history: History, node_id: str, new: str) -> None:
    """Let another run count for a node, and for the fan-in that gathers it."""
    (node,) = [node for node in history.nodes if (node.job_id, node.node_id) == ("full", node_id)]
    old = node.output["run"]  # type: ignore[index,call-overload]
    change(history.nodes, {"job_id": "full", "node_id": node_id}, output={"run": new})
    gathered = _merged(history)
    gathered["results"] = [{"run": new} if each["run"] == old else each for each in gathered["results"]]
    change(history.nodes, {"node_id": "merge"}, output=gathered)


def _merged(history: History) -> dict[str, Any]:
    (merge,) = [node for node in history.nodes if node.node_id == "merge"]
    assert isinstance(merge.output, dict)
    return {**merge.output}


# One function for each way to break a rule

BROKEN: list[tuple[Rule, Tampering]] = []


def breaks(rule: Rule) -> Callable[[Tampering], Tampering]:
    def noted(tampering: Tampering) -> Tampering:
        BROKEN.append((rule, tampering))
        return tampering

    return noted


@breaks(Rule.LOST_JOB)
def a_job_is_gone(history: History) -> None:
    remove(history.jobs, job_id="full")


@breaks(Rule.LOST_JOB)
def two_jobs_have_one_key(history: History) -> None:
    change(history.jobs, {"job_id": "resumed"}, idempotency_key="key-full")


@breaks(Rule.LOST_JOB)
def the_job_is_another_than_was_told(history: History) -> None:
    history.submitted[0] = replace(history.submitted[0], job_id="elsewhere")


@breaks(Rule.LOST_JOB)
def the_job_is_of_another_workflow(history: History) -> None:
    history.submitted[1] = replace(history.submitted[1], workflow_id="full")


@breaks(Rule.LOST_JOB)
def a_job_never_ends(history: History) -> None:
    remove(history.events, job_id="full", event_type=E.JOB_COMPLETED)
    change(history.jobs, {"job_id": "full"}, status=JobStatus.RUNNING, ended_at=None)
    change(history.nodes, {"job_id": "full", "node_id": "end"}, status=NodeStatus.PENDING, ended_at=None)


@breaks(Rule.LOST_JOB)
def a_job_is_cancelled_by_nobody(history: History) -> None:
    change(history.events, {"job_id": "full", "event_type": E.JOB_COMPLETED}, event_type=E.JOB_CANCELLED, data={})
    change(history.jobs, {"job_id": "full"}, status=JobStatus.CANCELLED)
    change(history.nodes, {"job_id": "full", "node_id": "end"}, status=NodeStatus.PENDING, ended_at=None)


@breaks(Rule.LOST_JOB)
def a_message_was_never_taken(history: History) -> None:
    change(history.messages, {"message_id": "m1"}, status=MessageStatus.QUEUED)


@breaks(Rule.LOST_JOB)
def a_good_message_is_a_dead_letter(history: History) -> None:
    change(history.messages, {"message_id": "m1"}, status=MessageStatus.DEAD)


@breaks(Rule.LOST_JOB)
def a_bad_message_is_done(history: History) -> None:
    change(history.messages, {"message_id": "bad"}, status=MessageStatus.DONE)


@breaks(Rule.LOST_JOB)
def a_bad_message_has_become_a_job(history: History) -> None:
    change(history.jobs, {"job_id": "resumed"}, idempotency_key="bad")


@breaks(Rule.FAILED_JOB)
def a_job_failed_that_must_not(history: History) -> None:
    history.submitted[2] = replace(history.submitted[2], may_fail=False)


@breaks(Rule.FAILED_JOB)
def the_engine_gave_a_job_up(history: History) -> None:
    where = {"job_id": "doomed", "event_type": E.JOB_FAILED}
    change(history.events, where, data={"error": "the engine could not go on"})


@breaks(Rule.RAN_AGAIN)
def a_completed_node_completes_again(history: History) -> None:
    """All of it is consistent: a second attempt, its result, its effect, its event; and the row is of that one."""
    _complete_again(history, event(history, job_id="full", node_id="a", event_type=E.NODE_COMPLETED), "a")


@breaks(Rule.RAN_AGAIN)
def a_resume_lets_a_node_run_again_that_it_did_not_set_back(history: History) -> None:
    _complete_again(history, event(history, job_id="resumed", event_type=E.JOB_RESUMED), "x")


def _complete_again(history: History, after: Event, node_id: str) -> None:
    job_id = str(after.job_id)
    task_id = add_task(history, job_id, node_id, number=1, done=True)
    run = add_run(history, task_id, 1, "ended")
    add_result(history, task_id, ResultStatus.COMPLETED)
    sent = tell_after(history, after, E.NODE_DISPATCHED, node_id, task_id=task_id)
    tell_after(history, sent, E.NODE_COMPLETED, node_id, task_id=task_id)
    where = {"job_id": job_id, "node_id": node_id}
    change(history.nodes, where, task_id=TaskId(task_id), retry_count=1, output={"run": run})


@breaks(Rule.RAN_AGAIN)
def the_attempt_before_the_last_completes_the_node(history: History) -> None:
    first = "full_split__0_0"
    later = add_task(history, "full", "split__0", number=1)
    add_result(history, first, ResultStatus.FAILED)
    sent = event(history, job_id="full", node_id="split", event_type=E.NODE_DISPATCHED)
    failed = tell_after(history, sent, E.NODE_FAILED, "split__0", task_id=first, data={"will_retry": True})
    again = tell_after(history, failed, E.NODE_RETRY, "split__0")
    tell_after(history, again, E.NODE_DISPATCHED, "split__0", task_id=later)


@breaks(Rule.RAN_AGAIN)
def a_task_is_delivered_again_after_its_result_counted(history: History) -> None:
    add_run(history, "full_split__0_0", 2)


@breaks(Rule.COUNTED_TWICE)
def the_run_of_one_child_counts_for_another(history: History) -> None:
    rename_run(history, "split__2", _merged(history)["results"][0]["run"])


@breaks(Rule.COUNTED_TWICE)
def the_fan_in_has_one_run_twice(history: History) -> None:
    results = _merged(history)["results"]
    change(history.nodes, {"node_id": "merge"}, output={"results": [results[0], *results[:2]], "count": 3})


@breaks(Rule.COUNTED_TWICE)
def the_fan_in_misses_a_child(history: History) -> None:
    results = _merged(history)["results"]
    change(history.nodes, {"node_id": "merge"}, output={"results": results[:2], "count": 3})


@breaks(Rule.COUNTED_TWICE)
def the_fan_in_counts_one_more(history: History) -> None:
    change(history.nodes, {"node_id": "merge"}, output={**_merged(history), "count": 4})


@breaks(Rule.COUNTED_TWICE)
def the_fan_out_counts_a_child_twice(history: History) -> None:
    change(history.nodes, {"node_id": "split"}, children_done=4)


@breaks(Rule.COUNTED_TWICE)
def the_fan_out_counts_a_failure_that_is_none(history: History) -> None:
    change(history.nodes, {"node_id": "split"}, children_failed=1)


@breaks(Rule.COUNTED_TWICE)
def the_fan_out_has_more_children_than_it_made(history: History) -> None:
    change(history.nodes, {"node_id": "split"}, children_total=2)


@breaks(Rule.COUNTED_TWICE)
def a_run_has_its_effect_twice(history: History) -> None:
    history.ledger.append(history.ledger[-1])


@breaks(Rule.COUNTED_NOTHING)
def what_counted_is_no_run(history: History) -> None:
    change(history.nodes, {"job_id": "full", "node_id": "a"}, output={"n": 1})


@breaks(Rule.COUNTED_NOTHING)
def what_counted_is_not_in_the_ledger(history: History) -> None:
    rename_run(history, "split__0", "nobody's run")


@breaks(Rule.COUNTED_NOTHING)
def what_counted_never_had_its_effect(history: History) -> None:
    remove(history.ledger, moment="ended", task_id="full_split__0_0")


@breaks(Rule.SUPERSEDED)
def the_run_that_lost_its_lease_counts(history: History) -> None:
    """It was paused, ends when another worker has the task, and is believed."""
    (lost, _) = [entry for entry in history.ledger if entry.task_id == "full_a_0" and entry.moment == "began"]
    history.ledger.append(replace(lost, moment="ended", at=1000.0))
    change(history.nodes, {"job_id": "full", "node_id": "a"}, output={"run": lost.run})


@breaks(Rule.SUPERSEDED)
def another_worker_had_the_task_already(history: History) -> None:
    """It never came to begin it: only the row tells of that delivery."""
    change(history.tasks, {"task_id": "full_a_0"}, delivery_count=3)


@breaks(Rule.SUPERSEDED)
def another_run_had_begun_before_the_end_of_the_one_that_counted(history: History) -> None:
    (counted,) = [e for e in history.ledger if e.task_id == "full_split__0_0" and e.moment == "ended"]
    add_run(history, "full_split__0_0", 2, at=counted.at - 0.5)


@breaks(Rule.SUPERSEDED)
def a_withdrawn_task_counts(history: History) -> None:
    change(history.tasks, {"task_id": "full_split__0_0"}, status=MessageStatus.WITHDRAWN)


@breaks(Rule.SUPERSEDED)
def the_effect_of_an_earlier_attempt_counts(history: History) -> None:
    (number,) = [
        number
        for number, entry in enumerate(history.ledger)
        if entry.task_id == "full_split__1_0" and entry.moment == "failed"
    ]
    history.ledger[number] = replace(history.ledger[number], moment="ended")
    rename_run(history, "split__1", history.ledger[number].run)


@breaks(Rule.LOST_TASK)
def a_task_is_left_in_the_queue(history: History) -> None:
    change(history.tasks, {"task_id": "doomed_x_0"}, status=MessageStatus.QUEUED)


@breaks(Rule.LOST_TASK)
def a_task_is_left_with_a_worker(history: History) -> None:
    change(history.tasks, {"task_id": "full_split__1_0"}, status=MessageStatus.LEASED)


@breaks(Rule.LOST_TASK)
def a_task_was_announced_and_is_not_there(history: History) -> None:
    remove(history.tasks, task_id="doomed_x_0")


@breaks(Rule.LOST_TASK)
def a_child_s_task_was_announced_and_is_not_there(history: History) -> None:
    remove(history.tasks, task_id="full_split__2_0")


@breaks(Rule.LOST_TASK)
def a_task_was_never_announced(history: History) -> None:
    add_task(history, "full", "other")


@breaks(Rule.LOST_TASK)
def another_task_was_announced(history: History) -> None:
    where = {"job_id": "full", "event_type": E.NODE_DISPATCHED, "node_id": "split__1"}
    change(history.events, where, task_id=TaskId("full_split__1_7"))


@breaks(Rule.LOST_TASK)
def a_task_is_of_no_node(history: History) -> None:
    change(history.tasks, {"task_id": "doomed_x_0"}, node_id=NodeId("nowhere"))


@breaks(Rule.LOST_TASK)
def a_result_was_never_acted_on(history: History) -> None:
    change(history.results, {"result_id": 1}, processed_at=None)


@breaks(Rule.LOST_TASK)
def a_node_is_left_under_way(history: History) -> None:
    remove(history.events, job_id="doomed", event_type=E.NODE_FAILED, node_id="x")
    change(history.nodes, {"job_id": "doomed", "node_id": "x"}, status=NodeStatus.DISPATCHED, ended_at=None)


@breaks(Rule.LOST_TASK)
def something_ran_that_was_never_committed(history: History) -> None:
    history.ledger.append(Entry("another run", "began", "full_other_0", "full", "other", 0, 1))


@breaks(Rule.LOST_TASK)
def something_ran_for_no_job(history: History) -> None:
    history.ledger.append(Entry("another run", "began", "gone_a_0", "gone", "a", 0, 1))


@breaks(Rule.DISAGREES)
def a_node_s_row_says_something_else(history: History) -> None:
    change(history.nodes, {"node_id": "other"}, status=NodeStatus.PENDING)


@breaks(Rule.DISAGREES)
def the_job_s_row_says_something_else(history: History) -> None:
    change(history.jobs, {"job_id": "doomed"}, status=JobStatus.CANCELLED, cancel_requested_at=NOW)


@breaks(Rule.DISAGREES)
def a_node_is_there_that_nobody_made(history: History) -> None:
    history.nodes.append(Node(job_id=JobId("full"), node_id=NodeId("nowhere"), node_type=NodeType.TASK))


@breaks(Rule.DISAGREES)
def a_job_is_created_twice(history: History) -> None:
    created = event(history, job_id="full", event_type=E.JOB_CREATED)
    tell_after(history, created, E.JOB_CREATED, owner_epoch=None, data=created.data)


@breaks(Rule.DISAGREES)
def a_job_ends_twice(history: History) -> None:
    end = event(history, job_id="full", event_type=E.JOB_COMPLETED)
    tell_after(history, end, E.JOB_COMPLETED)


@breaks(Rule.DISAGREES)
def a_job_ends_that_was_never_started(history: History) -> None:
    remove(history.events, job_id="full", event_type=E.JOB_STARTED)


@breaks(Rule.DISAGREES)
def a_job_that_completed_is_resumed(history: History) -> None:
    end = event(history, job_id="resumed", event_type=E.JOB_COMPLETED)
    resumed = tell_after(history, end, E.JOB_RESUMED, owner_epoch=3, data={"ready": [], "reset": []})
    tell_after(history, resumed, E.JOB_COMPLETED)
    change(history.jobs, {"job_id": "resumed"}, owner_epoch=3)


@breaks(Rule.DISAGREES)
def something_happens_after_the_end(history: History) -> None:
    tell_after(history, event(history, job_id="full", event_type=E.JOB_COMPLETED), E.NODE_PROGRESS, "a")


@breaks(Rule.DISAGREES)
def a_skipped_node_fails_before_it_is_skipped(history: History) -> None:
    tell_after(history, event(history, node_id="choose"), E.NODE_FAILED, "other")


@breaks(Rule.DISAGREES)
def a_node_that_failed_for_good_is_tried_again(history: History) -> None:
    failed = event(history, job_id="doomed", event_type=E.NODE_FAILED, node_id="y")
    again = tell_after(history, failed, E.NODE_RETRY, "y")
    tell_after(history, again, E.NODE_FAILED, "y")


@breaks(Rule.DISAGREES)
def a_node_is_dispatched_that_was_not_ready(history: History) -> None:
    remove(history.events, job_id="full", event_type=E.NODE_READY, node_id="a")


@breaks(Rule.DISAGREES)
def a_result_is_told_of_twice(history: History) -> None:
    ignored = event(history, event_type=E.RESULT_IGNORED)
    tell_after(history, ignored, E.RESULT_IGNORED, "split__0", task_id=ignored.task_id, data=ignored.data)


@breaks(Rule.DISAGREES)
def a_result_is_not_told_of(history: History) -> None:
    add_result(history, "full_split__1_1", ResultStatus.COMPLETED)


@breaks(Rule.DISAGREES)
def a_node_runs_and_nobody_said_so(history: History) -> None:
    remove(history.results, task_id="full_a_0", status=ResultStatus.RUNNING)


@breaks(Rule.OVERLAPPING_TERMS)
def the_former_owner_goes_on(history: History) -> None:
    change(history.events, {"job_id": "full", "event_type": E.JOB_COMPLETED}, owner_epoch=1)


@breaks(Rule.OVERLAPPING_TERMS)
def two_owners_take_one_term(history: History) -> None:
    taken = event(history, event_type=E.JOB_RECLAIMED)
    tell_after(history, taken, E.JOB_RECLAIMED, actor="owner-c", data=taken.data)


@breaks(Rule.OVERLAPPING_TERMS)
def an_owner_decides_that_never_took_the_job(history: History) -> None:
    remove(history.events, job_id="full", event_type=E.JOB_RECLAIMED)


@breaks(Rule.OVERLAPPING_TERMS)
def a_job_is_reclaimed_in_its_first_term(history: History) -> None:
    created = event(history, job_id="doomed", event_type=E.JOB_CREATED)
    tell_after(history, created, E.JOB_RECLAIMED, actor="owner-c", data={"owner_epoch": 1})


@breaks(Rule.OVERLAPPING_TERMS)
def a_job_is_created_in_a_later_term(history: History) -> None:
    later = {"owner_epoch": 2}
    history.events = [each.model_copy(update=later if each.job_id == "doomed" else {}) for each in history.events]
    change(history.jobs, {"job_id": "doomed"}, owner_epoch=2)


@breaks(Rule.OVERLAPPING_TERMS)
def the_row_went_back_a_term(history: History) -> None:
    change(history.jobs, {"job_id": "full"}, owner_epoch=1)


@breaks(Rule.OVERLAPPING_TERMS)
def the_row_has_another_owner(history: History) -> None:
    change(history.jobs, {"job_id": "full"}, owner_id="owner-a")


# The tests of the rules


def test_a_sound_history_breaks_no_rule() -> None:
    assert violations(sound_history()) == []


@pytest.mark.parametrize(("rule", "tampering"), BROKEN, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_tampered_history_breaks_the_rule_and_no_other(rule: Rule, tampering: Tampering) -> None:
    history = sound_history()
    tampering(history)
    assert {found.rule for found in violations(history)} == {rule}


def a_later_attempt_runs_that_has_no_task(history: History) -> None:
    history.ledger.append(Entry("another run", "began", "full_a_1", "full", "a", 1, 1))


@pytest.mark.parametrize(
    ("tampering", "told"),
    [
        (a_later_attempt_runs_that_has_no_task, "completed with full_a_0, and the later run another run"),
        (a_task_is_of_no_node, "is of node nowhere, which is not there"),
        (a_child_s_task_was_announced_and_is_not_there, "is of full_split__2_0, which has no row"),
    ],
)
def test_what_breaks_several_rules_is_told_by_each(tampering: Tampering, told: str) -> None:
    history = sound_history()
    tampering(history)
    assert [found for found in violations(history) if told in found.what]


def test_every_rule_can_be_broken() -> None:
    assert {rule for rule, _ in BROKEN} == {*Rule}


# Any one thing that is altered


def alterations() -> Iterator[tuple[str, Tampering]]:
    """Give every single loss, doubling or change of an event, an entry or a row that can be seen.

    What cannot be seen, and why:
    - events of progress move nothing, and a task may tell of it as often as it likes;
    - a run that did not count may have been killed at any moment: its last entry may be there or not;
    - times, names of workers, parameters and error texts are nobody's rule.
    """
    sound = sound_history()
    yield from _altered_events(sound)
    yield from _altered_entries(sound)
    yield from _altered_rows(sound)


def _altered_events(sound: History) -> Iterator[tuple[str, Tampering]]:
    for number, each in enumerate(sound.events):
        told = f"event {each.event_id}, {each.event_type} of {each.job_id}"
        if each.event_type is not E.NODE_PROGRESS:
            yield f"{told} is lost", partial(_lose, "events", number)
            yield f"{told} is doubled", partial(_double_event, number)
            yield f"{told} is of another job", partial(_alter, "events", number, {"job_id": "gone"})
        if each.event_type in MOVES_NODE:
            yield f"{told} is of another node", partial(_alter, "events", number, {"node_id": "nowhere"})
        yield f"{told} is of an earlier term", partial(_alter, "events", number, {"owner_epoch": 0})
        yield f"{told} is of a term to come", partial(_alter, "events", number, {"owner_epoch": 9})


def _altered_entries(sound: History) -> Iterator[tuple[str, Tampering]]:
    runs, counted = sound.runs(), {run.name for story in sound.stories() for _, run in story.counted_runs()}
    for number, each in enumerate(sound.ledger):
        told = f"entry {number}, {each.moment} of {each.run}"
        if each.run in counted or (each.moment == "began" and len(runs[each.run].entries) > 1):
            yield f"{told} is lost", partial(_lose, "ledger", number)
        yield f"{told} is doubled", partial(_double_entry, number)
        for name, value in {"task_id": "nowhere", "job_id": "gone", "node_id": "nowhere", "retry_count": 7}.items():
            yield f"{told} has another {name}", partial(_alter, "ledger", number, {name: value})


def _altered_rows(sound: History) -> Iterator[tuple[str, Tampering]]:
    for name in ("jobs", "nodes", "tasks", "results"):
        for number in range(len(getattr(sound, name))):
            yield f"row {number} of {name} is lost", partial(_lose, name, number)
    for name, values in LEFT_OVER.items():
        for number in range(len(getattr(sound, name))):
            yield f"row {number} of {name} is left over", partial(_alter, name, number, values)
    for name, statuses in {"jobs": JobStatus, "nodes": NodeStatus}.items():
        for number, row in enumerate(getattr(sound, name)):
            for status in {*statuses} - {row.status}:
                yield f"row {number} of {name} is {status}", partial(_alter, name, number, {"status": status})
    for number, node in enumerate(sound.nodes):
        if node.node_type in (NodeType.TASK, NodeType.FAN_IN) and node.output is not None:
            yield f"{node.job_id} {node.node_id} gave nothing", partial(_alter, "nodes", number, {"output": {}})


def _lose(name: str, number: int, history: History) -> None:
    del getattr(history, name)[number]


def _double_event(number: int, history: History) -> None:
    doubled = history.events[number]
    history.events.append(doubled.model_copy(update={"event_id": (doubled.event_id or 0) + 1}))


def _double_entry(number: int, history: History) -> None:
    history.ledger.insert(number, history.ledger[number])


def _alter(name: str, number: int, values: dict[str, Any], history: History) -> None:
    rows = getattr(history, name)
    old = rows[number]
    rows[number] = replace(old, **values) if isinstance(old, Entry) else old.model_copy(update=values)


ALTERATIONS = [*alterations()]


@settings(max_examples=2 * len(ALTERATIONS))  # it ends when it has tried each
@given(st.sampled_from(ALTERATIONS))
def test_no_alteration_goes_unseen(altered: tuple[str, Tampering]) -> None:
    what, tampering = altered
    history = sound_history()
    tampering(history)
    assert violations(history), what


def test_the_report_tells_what_was_checked_and_what_was_found() -> None:
    history = sound_history()
    assert report(history, violations(history)).splitlines() == [
        "submitted: 4; jobs: 2 completed, 1 failed; instances: 0",
        "nodes: 14 completed, 2 failed, 1 pending, 1 skipped",
        "attempts: 10, of which retries: 2",
        "deliveries beyond the first: 1",
        "runs: 11, counted: 6, ended in vain: 0",
        "reclaims: 1, results ignored: 1",
        "violations: 0",
    ]
    another_worker_had_the_task_already(history)
    run = "run run-1 of full_a_0 (delivery 2, process 1001)"
    assert report(history, violations(history)).splitlines()[-2:] == [
        "violations: 1",
        f"SUPERSEDED: job full: a completed with {run}, and its task is done at delivery 3",
    ]


# The ledger

ENTRY = Entry("a run", "began", "job_a_0", "job", "a", 0, 1, process_id=7, at=1.5)


def test_the_ledger_gives_back_what_was_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.read() == []
    ledger.write(ENTRY)
    ledger.write(replace(ENTRY, moment="ended"))
    assert ledger.read() == [ENTRY, replace(ENTRY, moment="ended")]


def test_processes_that_write_at_once_tear_no_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(ledger, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(entry.run for entry in ledger.read()) == ["a"] * 200 + ["b"] * 200 + ["c"] * 200


def _write_many(ledger: Ledger, name: str) -> None:
    for _ in range(200):
        ledger.write(replace(ENTRY, run=name))


def test_a_torn_line_is_passed_over_at_the_end_and_nowhere_else(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.write(ENTRY)
    with ledger.path.open("ab") as file:
        file.write(b'{"run": "tor')
    assert ledger.read() == [ENTRY]
    ledger.write(ENTRY)
    with pytest.raises(TornLine, match="line 2"):
        ledger.read()
