"""Attempts: budgets, backoff, deadlines, and what fails for good."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.dag.jobs import PlayedJob, end, graph, start, task, told

from graticule.core.states import ResultStatus
from graticule.dag.deciding.retry import delay_seconds
from graticule.dag.graph import Backoff, Graph, RetryPolicy
from graticule.dag.state import Policy


def drawn(**retry: object) -> Graph:
    policy = RetryPolicy(**{"jitter": False, **retry})
    return graph(start("work"), task("work", "end", retry=policy, params={"size": "{{ inputs.size }}"}), end())


def played(policy: Policy | None = None, **retry: object) -> PlayedJob:
    job = PlayedJob(drawn(**retry), inputs={"size": 3}, policy=policy)
    job.submit()
    return job


def test_five_attempts_are_six_tries() -> None:
    job = played(max_attempts=5, initial_delay_seconds=0)
    for attempt in range(6):
        assert job.store.rows["work"].task_id == f"job_work_{attempt}"
        assert job.status == "running"
        job.fail("work", retryable=True)
    assert job.status == "failed"
    assert job.store.error_message == "node 'work' failed: boom"


def test_a_retry_waits_for_its_backoff() -> None:
    job = played(backoff="fixed", initial_delay_seconds=10)
    decision = job.fail("work", retryable=True)
    row = job.store.rows["work"]
    assert (row.status, row.retry_count, row.task_id, row.error_message) == ("ready", 1, None, "boom")
    assert row.ready_at == job.now + timedelta(seconds=10)
    assert (row.deadline_at, row.ended_at, decision.tasks) == (None, None, [])
    job.wait(9)
    assert job.happen().tasks == []
    job.wait(1)
    assert [new.task_id for new in job.happen().tasks] == ["job_work_1"]
    assert job.store.rows["work"].error_message is None


def test_the_events_of_a_retry() -> None:
    job = played(backoff="fixed", initial_delay_seconds=10, max_attempts=1)
    failed, retry = job.fail("work", retryable=True).events
    assert failed.data == {
        "error": "boom",
        "retryable": True,
        "retry_count": 0,
        "will_retry": True,
        "worker_id": "w1",
    }
    assert retry.event_type == "node_retry"
    assert retry.data == {
        "retry_count": 1,
        "ready_at": (job.now + timedelta(seconds=10)).isoformat(),
        "delay_seconds": 10,
    }
    job.wait(10)
    job.happen()
    decision = job.fail("work", retryable=True)
    assert told(decision) == [("node_failed", "work"), ("job_failed", None)]
    assert decision.events[0].data["will_retry"] is False
    assert decision.events[1].data == {"node_id": "work", "error": "boom"}


def test_a_retry_is_sent_the_same_parameters() -> None:
    job = played(initial_delay_seconds=0)
    first = job.store.tasks["job_work_0"]
    job.store.inputs = {"size": 99}
    job.fail("work", retryable=True)
    second = job.store.tasks["job_work_1"]
    assert first.params == second.params == {"size": 3}
    assert (first.retry_count, second.retry_count) == (0, 1)


def test_a_permanent_failure_is_not_retried() -> None:
    job = played(max_attempts=5)
    job.fail("work", retryable=False)
    assert (job.status, job.node_status("work")) == ("failed", "failed")


@pytest.mark.parametrize(("error", "kept"), [(None, "cancelled by the worker"), ("disk full", "disk full")])
def test_a_task_that_a_worker_gave_up_is_tried_again(error: str | None, kept: str) -> None:
    job = played()
    job.happen(job.report("work", ResultStatus.CANCELLED, error_message=error, retryable=False))
    assert (job.node_status("work"), job.store.rows["work"].error_message) == ("ready", kept)


def test_a_task_that_nobody_takes_fails_its_attempt() -> None:
    job = played(Policy(dispatch_timeout_seconds=30))
    assert job.store.rows["work"].deadline_at == job.now + timedelta(seconds=30)
    job.wait(29)
    assert job.pass_deadline("work").changes == []
    job.wait(1)
    decision = job.pass_deadline("work")
    assert decision.withdraw == ["job_work_0"]
    assert job.node_status("work") == "ready"
    error = "dispatch timeout: no worker of queue 'light' took the task within 30 s"
    assert job.store.rows["work"].error_message == error


def test_a_task_that_was_taken_silently_gets_its_own_time() -> None:
    job = played(Policy(dispatch_timeout_seconds=30, running_grace_seconds=5))
    job.wait(30)
    decision = job.pass_deadline("work", taken=True)
    assert (decision.events, decision.withdraw) == ([], [])
    assert job.node_status("work") == "dispatched"
    assert job.store.rows["work"].deadline_at == job.now + timedelta(seconds=3605)


def test_no_dispatch_timeout_no_deadline() -> None:
    job = played(Policy(dispatch_timeout_seconds=0))
    assert job.store.rows["work"].deadline_at is None
    job.wait(10**6)
    assert job.pass_deadline("work").changes == []


@pytest.mark.parametrize("taken", [True, False])
def test_a_running_task_that_is_overdue_fails_its_attempt(taken: bool) -> None:
    job = played(max_attempts=0)
    job.run("work")
    job.wait(3660)
    decision = job.pass_deadline("work", taken=taken)
    assert decision.withdraw == ["job_work_0"]
    assert job.status == "failed"
    assert str(job.store.rows["work"].error_message).startswith("timeout: no result within 3600 s")


def test_the_late_result_of_a_timed_out_attempt_is_ignored() -> None:
    job = played(initial_delay_seconds=0)
    job.run("work")
    late = job.report("work", output="late")
    job.wait(3660)
    job.pass_deadline("work")
    assert job.store.rows["work"].task_id == "job_work_1"
    assert told(job.happen(late)) == [("result_ignored", "work")]
    job.complete("work", output="right")
    assert job.store.result == "right"


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.FIXED, [2, 2, 2, 2, 2]),
        (Backoff.LINEAR, [2, 4, 6, 8, 10]),
        (Backoff.EXPONENTIAL, [2, 4, 8, 10, 10]),
    ],
)
def test_backoff_grows_and_is_capped(backoff: Backoff, delays: list[float]) -> None:
    policy = RetryPolicy(backoff=backoff, initial_delay_seconds=2, max_delay_seconds=10, jitter=False)
    assert [delay_seconds(policy, retry, "t") for retry in range(1, 6)] == delays


def test_the_thousandth_exponential_retry_is_no_overflow() -> None:
    policy = RetryPolicy(max_attempts=1000, initial_delay_seconds=86_400, max_delay_seconds=60, jitter=False)
    assert delay_seconds(policy, 1000, "t") == 60


@given(retry=st.integers(1, 1000), task_id=st.text(min_size=1), backoff=st.sampled_from(Backoff))
def test_jitter_takes_at_most_half_away_and_is_always_the_same(retry: int, task_id: str, backoff: Backoff) -> None:
    without = RetryPolicy(backoff=backoff, jitter=False)
    with_jitter = without.model_copy(update={"jitter": True})
    whole, jittered = delay_seconds(without, retry, task_id), delay_seconds(with_jitter, retry, task_id)
    assert whole / 2 <= jittered <= whole
    assert jittered == delay_seconds(with_jitter, retry, task_id)


def test_jitter_differs_between_tasks() -> None:
    delays = {delay_seconds(RetryPolicy(), 1, f"job_split__{index}_0") for index in range(50)}
    assert len(delays) == 50
