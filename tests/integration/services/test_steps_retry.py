"""Retries with their backoff and deadlines on real rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, READY, RUNNING, SENT, Bench, flow

from graticule.core.ids import JobId
from graticule.core.states import JobStatus, MessageStatus, ResultStatus
from graticule.dag.state import Policy
from graticule.repositories.ownership import OwnershipRepository
from graticule.services import step_reading

EXACT = "{max_attempts: 2, backoff: exponential, initial_delay_seconds: 10, jitter: false}"
RETRIED = flow(
    f"""
  start: {{type: start, next: work}}
  work: {{handler: echo, timeout_seconds: 100, retry: {EXACT}, params: {{n: "{{{{ inputs.n }}}}"}}, next: end}}""",
    inputs="{n: {type: integer, default: 7}}",
)
ONCE = flow("""
  start: {type: start, next: work}
  work: {handler: echo, timeout_seconds: 100, retry: {max_attempts: 0}, next: end}""")
SPLIT = flow(f"""
  start: {{type: start, next: split}}
  split: {{type: fan_out, source: [1, 2, 3], task: {{handler: echo, retry: {EXACT}}}, next: merge}}
  merge: {{type: fan_in, next: end}}""")
JITTER = flow("""
  start: {type: start, next: work}
  work: {handler: echo, retry: {initial_delay_seconds: 10}, next: end}""")


async def due(bench: Bench, seconds: float) -> list[tuple[JobId, str]]:
    """Name the nodes whose backoff ends within so many seconds."""
    async with bench.pool.connection() as connection:
        horizon = datetime.now(UTC) + timedelta(seconds=seconds)
        return [
            (job_id, node)
            for _, job_id, node in await OwnershipRepository(connection).due_nodes(bench.owner_id, horizon)
        ]


async def test_a_failed_attempt_waits_for_its_backoff_and_is_tried_again(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED)
    job_id = await bench.submit()
    task = await bench.task_of(job_id, "work")
    await bench.report(task, ResultStatus.FAILED, error_message="flaky")
    before = bench.pool.now()
    outcome = await bench.advance(job_id)
    node = await bench.node(job_id, "work")
    assert (node.status, node.retry_count, node.task_id, node.deadline_at) == (READY, 1, None, None)
    assert node.error_message == "flaky"
    assert node.ready_at is not None
    assert timedelta(seconds=10) <= node.ready_at - before < timedelta(seconds=15)
    assert outcome.retries == [(node.ready_at, job_id, "work")]
    assert await bench.status(job_id) is JobStatus.RUNNING
    assert len(await bench.tasks(job_id, None)) == 1


async def test_a_node_is_dispatched_when_its_time_has_come_and_not_before(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED)
    job_id = await bench.submit(n=3)
    await bench.fail(job_id, "work", retryable=True)
    assert await due(bench, 5) == []
    assert await due(bench, 20) == [(job_id, "work")]
    await bench.advance(job_id, wake=step_reading.Wake(due={"work"}))
    assert (await bench.node(job_id, "work")).status is READY
    await bench.let_pass(11)
    await bench.look_around()
    node = await bench.node(job_id, "work")
    assert (node.status, node.task_id, node.ready_at, node.error_message) == (SENT, f"{job_id}_work_1", None, None)
    again = await bench.task_of(job_id, "work")
    assert (again.task_id, again.retry_count, again.params) == (f"{job_id}_work_1", 1, {"n": 3})
    await bench.finish(job_id, "work", "at last")
    assert (await bench.job(job_id)).result == "at last"
    assert await bench.trace(job_id, "work") == [
        "node_ready",
        "node_dispatched",
        "node_failed",
        "node_retry",
        "node_dispatched",
        "node_completed",
    ]


async def test_the_budget_counts_retries_and_the_delay_grows(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED)
    job_id = await bench.submit()
    delays = []
    for _ in range(2):
        await bench.fail(job_id, "work", retryable=True)
        delays.append((await bench.events(job_id))[-1].data["delay_seconds"])
        await bench.let_pass(100)
        await bench.look_around()
    assert delays == [10, 20]
    await bench.fail(job_id, "work", "the third", retryable=True)
    node, job = await bench.node(job_id, "work"), await bench.job(job_id)
    assert (node.status, node.retry_count, node.error_message) == (FAILED, 2, "the third")
    assert (job.status, job.error_message) == (JobStatus.FAILED, "node 'work' failed: the third")
    assert len(await bench.tasks(job_id, None)) == 3


async def test_jitter_spreads_retries_between_half_and_the_whole_delay(new_bench: NewBench) -> None:
    bench = new_bench(JITTER)
    delays: list[Any] = []
    for _ in range(5):
        job_id = await bench.submit()
        await bench.fail(job_id, "work", retryable=True)
        delays.append((await bench.event(job_id, "node_retry")).data["delay_seconds"])
    assert all(5 <= delay <= 10 for delay in delays)
    assert len(set(delays)) > 1


async def test_a_permanent_failure_is_not_retried(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED)
    job_id = await bench.submit()
    await bench.fail(job_id, "work", "no such file", retryable=False)
    assert await bench.status(job_id) is JobStatus.FAILED
    failed = await bench.event(job_id, "node_failed")
    assert (failed.data["retryable"], failed.data["will_retry"], failed.data["error"]) == (False, False, "no such file")


async def test_a_task_that_its_worker_gave_up_is_an_attempt_that_failed(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "work"), ResultStatus.CANCELLED)
    await bench.advance(job_id)
    node = await bench.node(job_id, "work")
    assert (node.status, node.error_message) == (READY, "cancelled by the worker")


async def test_a_child_is_retried_by_itself(new_bench: NewBench) -> None:
    bench = new_bench(SPLIT)
    job_id = await bench.submit()
    await bench.fail(job_id, "split__1", retryable=True)
    assert await bench.statuses(job_id, "split") == {"split__0": SENT, "split__1": READY, "split__2": SENT}
    assert await due(bench, 20) == [(job_id, "split__1")]
    await bench.let_pass(11)
    await bench.look_around()
    assert (await bench.node(job_id, "split__1")).task_id == f"{job_id}_split__1_1"
    for index in (2, 1, 0):
        await bench.finish(job_id, f"split__{index}", index)
    assert (await bench.job(job_id)).result == {"results": [0, 1, 2], "count": 3}


async def test_a_retry_of_a_job_that_failed_meanwhile_is_not_dispatched(new_bench: NewBench) -> None:
    two = flow("""
  start: {type: start, next: [a, b]}
  a: {handler: echo, next: end}
  b: {handler: echo, next: end}""")
    bench = new_bench(two)
    job_id = await bench.submit()
    await bench.fail(job_id, "a", retryable=True)
    await bench.fail(job_id, "b")
    await bench.let_pass(100)
    assert await due(bench, 0) == []
    await bench.advance(job_id, wake=step_reading.Wake(due={"a"}))
    assert (await bench.node(job_id, "a")).status is READY
    assert len(await bench.tasks(job_id, None)) == 2


# Deadlines


async def test_a_task_that_nobody_takes_fails_its_attempt(new_bench: NewBench) -> None:
    bench = new_bench(RETRIED, policy=Policy(dispatch_timeout_seconds=50))
    job_id = await bench.submit()
    await bench.let_pass(49)
    await bench.look_around()
    assert (await bench.node(job_id, "work")).status is SENT
    await bench.let_pass(2)
    await bench.look_around()
    node = await bench.node(job_id, "work")
    assert node.status is READY
    assert node.error_message == "dispatch timeout: no worker of queue 'functionapp-tasks' took the task within 50 s"
    (task,) = await bench.tasks(job_id, None)
    assert task.status is MessageStatus.WITHDRAWN


async def test_a_task_that_a_worker_took_silently_is_given_its_own_time(new_bench: NewBench) -> None:
    bench = new_bench(ONCE, policy=Policy(dispatch_timeout_seconds=50))
    job_id = await bench.submit()
    await bench.claim()
    await bench.let_pass(51)
    before = datetime.now(UTC)
    await bench.look_around()
    node = await bench.node(job_id, "work")
    assert node.status is SENT
    assert node.deadline_at is not None
    assert node.deadline_at - before >= timedelta(seconds=160)
    await bench.finish(job_id, "work")
    assert await bench.status(job_id) is JobStatus.COMPLETED


async def test_a_result_that_waits_counts_although_its_deadline_is_over(new_bench: NewBench) -> None:
    bench = new_bench(ONCE)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "work"), output="in time")
    await bench.let_pass(4000)
    await bench.look_around()
    assert (await bench.job(job_id)).result == "in time"


async def test_a_result_behind_a_full_batch_counts_although_its_deadline_is_over(
    new_bench: NewBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is done: its result was reported, and is only not read yet."""
    monkeypatch.setattr(step_reading, "RESULTS_PER_STEP", 2)
    two = flow("""
  start: {type: start, next: [a, b]}
  a: {handler: echo, next: end}
  b: {handler: echo, retry: {max_attempts: 0}, next: end}""")
    bench = new_bench(two)
    job_id = await bench.submit()
    for done in range(2):
        await bench.report(await bench.task_of(job_id, "a"), ResultStatus.RUNNING, progress={"done": done})
    await bench.report(await bench.task_of(job_id, "b"), output="in time")
    await bench.execute("UPDATE dagapp.dag_tasks SET status = 'done' WHERE node_id = 'b'")
    await bench.let_pass(4000)
    while await bench.look_around():
        pass
    assert (await bench.node(job_id, "b")).status is DONE


async def test_a_task_that_runs_too_long_fails_its_attempt(new_bench: NewBench) -> None:
    bench = new_bench(ONCE, policy=Policy(running_grace_seconds=20))
    job_id = await bench.submit()
    await bench.claim()
    await bench.report(await bench.task_of(job_id, "work"), ResultStatus.RUNNING)
    await bench.advance(job_id)
    await bench.let_pass(119)
    await bench.look_around()
    assert (await bench.node(job_id, "work")).status is RUNNING
    await bench.let_pass(2)
    await bench.look_around()
    node = await bench.node(job_id, "work")
    assert (node.status, node.error_message) == (FAILED, "timeout: no result within 100 s of its start")
    assert {task.status for task in await bench.tasks(job_id, None)} == {MessageStatus.WITHDRAWN}


async def test_a_child_that_nobody_takes_fails_its_attempt_alone(new_bench: NewBench) -> None:
    bench = new_bench(SPLIT)
    job_id = await bench.submit()
    await bench.finish(job_id, "split__0")
    await bench.claim(limit=1)  # the task of split__0, which was reported without the queue
    await bench.let_pass(3601)
    await bench.look_around()
    assert await bench.statuses(job_id, "split") == {"split__0": DONE, "split__1": READY, "split__2": READY}
    assert (await bench.node(job_id, "split")).status is RUNNING


async def test_without_a_dispatch_timeout_a_task_waits_for_ever(new_bench: NewBench) -> None:
    bench = new_bench(ONCE, policy=Policy(dispatch_timeout_seconds=0))
    job_id = await bench.submit()
    assert (await bench.node(job_id, "work")).deadline_at is None


async def test_a_deadline_that_was_moved_meanwhile_changes_nothing(new_bench: NewBench) -> None:
    bench = new_bench(ONCE)
    job_id = await bench.submit()
    before = await bench.snapshot()
    await bench.advance(job_id, wake=step_reading.Wake(expired={"work": False}))
    assert await bench.snapshot() == before
