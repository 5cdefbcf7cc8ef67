"""Failure is fast, and so is cancelling."""

import pytest
from tests.unit.dag.jobs import NO_JITTER, PlayedJob, conditional, end, fan_out, graph, start, task, task_spec, told

from graticule.core.errors import IllegalTransition
from graticule.core.states import JobStatus, ResultStatus
from graticule.dag.evaluate import give_up
from graticule.dag.graph import Graph
from graticule.dag.state import CancelRequested, Submitted


def wide() -> Graph:
    """Draw four branches that run side by side."""
    return graph(
        start("bad", "sent", "running", "waiting", "split"),
        task("bad", "after"),
        task("after", "end"),
        task("sent", "end"),
        task("running", "end"),
        task("waiting", "end"),
        fan_out("split", "end", source=[1, 2, 3], max_parallel=2),
        end(),
    )


def under_way() -> PlayedJob:
    job = PlayedJob(wide())
    job.submit()
    job.run("running")
    job.run("split__0")
    job.fail("waiting", retryable=True)
    return job


def test_a_failure_ends_everything_at_once() -> None:
    job = under_way()
    decision = job.fail("bad", "no luck")
    assert job.status == "failed"
    assert job.store.error_message == "node 'bad' failed: no luck"
    assert decision.withdraw_all
    assert decision.tasks == []
    assert job.statuses == {
        "start": "completed",
        "bad": "failed",
        "after": "pending",
        "sent": "failed",
        "running": "failed",
        "waiting": "ready",
        "split": "failed",
        "end": "pending",
    }
    for node_id in ("sent", "running", "split", "split__0", "split__1"):
        assert job.store.rows[node_id].error_message == "cancelled: the job failed"
    assert job.node_status("split__2") == "pending"
    assert decision.abandoned_children_of == ["split"]


def test_the_events_of_a_failure() -> None:
    decision = under_way().fail("bad", "no luck")
    assert told(decision) == [
        ("node_failed", "bad"),
        ("node_failed", "sent"),
        ("node_failed", "running"),
        ("node_failed", "split"),
        ("job_failed", None),
    ]
    assert decision.events[1].data == {"error": "cancelled: the job failed", "cancelled": True}
    assert decision.events[3].data["cancelled_children"] is True


def test_late_results_of_a_failed_job_change_nothing() -> None:
    job = under_way()
    late = [
        job.report("sent"),
        job.report("split__0", ResultStatus.FAILED),
        job.report("running", ResultStatus.RUNNING),
    ]
    job.fail("bad")
    decision = job.happen(*late)
    assert [event.event_type for event in decision.events] == ["result_ignored"] * 3
    assert (decision.changes, decision.tasks) == ([], [])


def test_results_after_the_failure_in_the_same_batch_are_ignored() -> None:
    job = under_way()
    bad = job.report("bad", ResultStatus.FAILED, error_message="x", retryable=False)
    decision = job.happen(job.report("sent", output=1), bad, job.report("running", output=2))
    assert job.statuses["sent"] == "completed"
    assert job.statuses["running"] == "failed"
    assert told(decision)[-1] == ("result_ignored", "running")


def test_a_retry_that_is_due_is_not_dispatched_by_a_failed_job() -> None:
    job = under_way()
    job.fail("bad")
    job.wait(10**5)
    assert job.happen().tasks == []


def test_a_template_error_fails_before_dispatch() -> None:
    drawn = graph(start("work"), task("work", "end", params={"a": "{{ inputs.missing }}"}), end())
    job = PlayedJob(drawn)
    decision = job.submit()
    assert told(decision) == [
        ("job_created", None),
        ("node_ready", "work"),
        ("node_failed", "work"),
        ("job_started", None),
        ("job_failed", None),
    ]
    assert "missing" in str(job.store.error_message)
    assert decision.job_before == "pending"


def test_what_became_ready_with_a_failing_node_is_not_dispatched() -> None:
    """Of two nodes that become ready together, neither goes out when one cannot."""
    drawn = graph(
        start("good", "split", "bad"),
        task("good", "end"),
        fan_out("split", "end", source=[1]),
        task("bad", "end", params={"a": "{{ inputs.missing }}"}),
        end(),
    )
    job = PlayedJob(drawn)
    decision = job.submit()
    assert (decision.tasks, decision.created) == ([], [])
    assert job.statuses["good"] == job.statuses["split"] == "ready"
    assert job.status == "failed"


def test_an_end_that_completed_as_the_job_failed_is_told_of() -> None:
    drawn = graph(start("end", "bad"), end(), task("bad", "other", params={"a": "{{ inputs.missing }}"}), end("other"))
    job = PlayedJob(drawn)
    decision = job.submit()
    assert job.statuses["end"] == "completed"
    assert ("node_completed", "end") in told(decision)


def test_a_deadline_of_a_failed_job_is_nothing() -> None:
    job = under_way()
    job.store.status = JobStatus.FAILED
    job.wait(10**5)
    decision = job.pass_deadline("running")
    assert (decision.changes, decision.events) == ([], [])


def test_a_condition_that_cannot_be_decided_fails_for_good() -> None:
    drawn = graph(
        start("route"), conditional("route", ("inputs.size > 'a'", "end"), (None, "other")), end(), end("other")
    )
    job = PlayedJob(drawn, inputs={"size": 1})
    job.submit()
    assert (job.status, job.statuses["route"]) == ("failed", "failed")


def test_a_conditional_without_a_way_out_fails_for_good() -> None:
    job = PlayedJob(graph(start("route"), conditional("route", ("inputs.go", "end")), end()), inputs={"go": False})
    job.submit()
    assert job.store.error_message == "node 'route' failed: No condition of 'route' holds, and it has no default."


def test_a_job_that_is_given_up_can_be_resumed() -> None:
    job = under_way()
    decision = give_up(job.store.graph, job.store.load([], job.now), "the graph cannot be read", job.now)
    assert told(decision)[-1] == ("job_failed", None)
    assert decision.withdraw_all
    job.store.apply(decision)
    assert (job.status, job.store.error_message) == ("failed", "the graph cannot be read")
    assert job.statuses["running"] == job.statuses["split"] == "failed"
    assert "job_running_1" in {new.task_id for new in job.resume().tasks}


def test_an_ended_job_is_not_given_up() -> None:
    job = under_way()
    job.happen(CancelRequested())
    decision = give_up(job.store.graph, job.store.load([], job.now), "too late", job.now)
    assert (decision.job_status, decision.events) == ("cancelled", [])


@pytest.mark.parametrize("begun", [True, False])
def test_cancel_ends_the_job(begun: bool) -> None:
    job = under_way()
    if not begun:
        job = PlayedJob(wide())
    decision = job.happen(CancelRequested("someone"))
    assert job.status == "cancelled"
    assert decision.withdraw_all
    assert (decision.events[-1].event_type, decision.events[-1].actor) == ("job_cancelled", "someone")
    if begun:
        assert told(decision)[:-1] == [("node_failed", node_id) for node_id in ("bad", "sent", "running", "split")]
        assert decision.events[0].data == {"error": "cancelled: the job was cancelled", "cancelled": True}
        assert job.store.rows["split__1"].error_message == "cancelled: the job was cancelled"
        assert job.statuses["waiting"] == "ready"


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_cancelling_an_ended_job_is_nothing(ending: str) -> None:
    job = PlayedJob(graph(start("work"), task("work", "end"), end()))
    job.submit()
    {
        "completed": lambda: job.complete("work"),
        "failed": lambda: job.fail("work"),
        "cancelled": lambda: job.happen(CancelRequested()),
    }[ending]()
    decision = job.happen(CancelRequested())
    assert (decision.events, decision.changes, decision.withdraw_all) == ([], [], False)
    assert job.status == ending


def test_a_job_is_submitted_once() -> None:
    job = PlayedJob(wide())
    job.submit()
    with pytest.raises(IllegalTransition):
        job.happen(Submitted())


def test_no_retry_is_left_when_another_fails_for_good() -> None:
    drawn = graph(
        start("split"),
        fan_out("split", "end", source=[1, 2], task=task_spec(retry=NO_JITTER.model_copy(update={"max_attempts": 1}))),
        end(),
    )
    job = PlayedJob(drawn)
    job.submit()
    job.fail("split__0", retryable=True)
    job.fail("split__1", retryable=False)
    assert job.node_status("split__0") == "ready"
    assert job.status == "failed"
