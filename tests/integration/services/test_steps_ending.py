"""Jobs that end before their time: a failure is fast, and a cancel is heard by the owner."""

import asyncio

import pytest
from tests.conftest import TestDatabase
from tests.integration.services.conftest import NewBench
from tests.integration.services.engine import DONE, FAILED, PENDING, READY, SENT, Bench, flow

from graticule.core.channels import CANCELLED, owner_channel
from graticule.core.errors import NotFound
from graticule.core.ids import JobId, WorkerId
from graticule.core.states import JobStatus, MessageStatus, ResultStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.listener import Heard, Listener, listening
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.tasks import Delivery, FinishedTask, TaskRepository

WIDE = flow("""
  start: {type: start, next: [a, b, c, split]}
  a: {handler: echo, next: join}
  b: {handler: echo, next: join}
  c: {handler: echo, next: after}
  after: {handler: echo, next: join}
  split: {type: fan_out, source: [0, 1, 2], max_parallel: 2, task: {handler: echo}, next: merge}
  merge: {type: fan_in, next: join}
  join: {handler: echo, next: end}""")
TEMPLATE = flow(
    """
  start: {type: start, next: [a, other]}
  a: {handler: echo, next: b}
  other: {handler: echo, next: end}
  b: {handler: echo, params: {deep: [{x: "{{ nodes.a.output.nothing }}"}]}, next: end}"""
)


async def heard_while(database: TestDatabase, channel: str, *, bench: Bench, job_id: JobId) -> list[Heard]:
    """Cancel a job, and give what was said on a channel meanwhile."""
    listener = Listener(database.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, [channel])
    async with listening(listener) as heard, asyncio.timeout(20):
        assert (await anext(heard)).channel is None
        await bench.jobs.cancel(job_id, "ann")
        return [await anext(heard)]


async def test_a_failure_ends_the_job_at_once_and_all_that_is_under_way(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    await bench.finish(job_id, "c", "kept")
    await bench.finish(job_id, "split__0", "kept")
    await bench.fail(job_id, "after", retryable=True)
    await bench.claim(limit=2)
    await bench.report(await bench.task_of(job_id, "b"), ResultStatus.RUNNING)
    await bench.fail(job_id, "a", "disk full")
    job = await bench.job(job_id)
    assert (job.status, job.error_message) == (JobStatus.FAILED, "node 'a' failed: disk full")
    assert job.ended_at is not None
    assert await bench.statuses(job_id) == {
        "start": DONE,
        "a": FAILED,
        "b": FAILED,
        "c": DONE,
        "after": READY,
        "split": FAILED,
        "merge": PENDING,
        "join": PENDING,
        "end": PENDING,
    }
    assert await bench.statuses(job_id, "split") == {"split__0": DONE, "split__1": FAILED, "split__2": FAILED}
    assert (await bench.node(job_id, "b")).error_message == "cancelled: the job failed"
    assert {task.status for task in await bench.tasks(job_id, None)} == {MessageStatus.WITHDRAWN}
    assert (await bench.trace(job_id))[-1] == "job_failed"


async def test_a_failure_in_one_step_with_results_of_others_keeps_those_that_came_before(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "b"), output="before")
    await bench.report(await bench.task_of(job_id, "a"), ResultStatus.FAILED, retryable=False)
    await bench.report(await bench.task_of(job_id, "c"), output="after")
    await bench.advance(job_id)
    statuses = await bench.statuses(job_id)
    assert (statuses["a"], statuses["b"], statuses["c"]) == (FAILED, DONE, FAILED)
    assert (await bench.event(job_id, "result_ignored")).node_id == "c"
    assert len(await bench.tasks(job_id, None)) == 5  # nothing more was dispatched


async def test_a_template_error_fails_the_node_before_its_dispatch(new_bench: NewBench) -> None:
    bench = new_bench(TEMPLATE)
    job_id = await bench.submit()
    await bench.finish(job_id, "a", {"something": 1})
    node = await bench.node(job_id, "b")
    assert (node.status, node.task_id, node.dispatched_at) == (FAILED, None, None)
    assert "nothing" in (node.error_message or "")
    assert await bench.status(job_id) is JobStatus.FAILED
    assert [task.node_id for task in await bench.tasks(job_id, None)] == ["a", "other"]
    assert (await bench.node(job_id, "other")).status is FAILED


async def test_a_template_error_of_the_first_node_fails_the_job_that_is_there_then(new_bench: NewBench) -> None:
    bench = new_bench(
        flow("""
  start: {type: start, next: a}
  a: {handler: echo, params: {x: "{{ env.HOME }}"}, next: end}""")
    )
    job_id = await bench.submit()
    job = await bench.job(job_id)
    assert job.status is JobStatus.FAILED
    assert "HOME" in (job.error_message or "")
    assert await bench.trace(job_id) == ["job_created", "node_ready", "node_failed", "job_started", "job_failed"]


# Cancel


async def test_the_late_result_of_a_cancelled_task_is_recorded_and_changes_nothing(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    await bench.claim()
    task = await bench.task_of(job_id, "a")
    await bench.jobs.cancel(job_id)
    before = await bench.statuses(job_id)
    async with bench.pool.connection() as connection:
        report = FinishedTask(Delivery(task.task_id, 1), ResultStatus.COMPLETED, output='"late"')
        assert await TaskRepository(connection).finish(WorkerId("worker-1"), [report]) == {task.task_id}
    await bench.look_around()
    ignored = await bench.event(job_id, "result_ignored")
    assert (ignored.node_id, ignored.data["task_id"], ignored.data["status"]) == ("a", task.task_id, "completed")
    assert await bench.statuses(job_id) == before
    assert await bench.waiting_results(job_id) == 0


async def test_the_owner_cancels_at_once(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    await bench.finish(job_id, "c", "kept")
    await bench.claim(limit=3)
    job = await bench.jobs.cancel(job_id, "ann")
    assert (job.status, job.cancel_requested_by) == (JobStatus.CANCELLED, "ann")
    assert job.ended_at is not None
    assert {task.status for task in await bench.tasks(job_id, None)} == {MessageStatus.WITHDRAWN}
    statuses = await bench.statuses(job_id)
    assert (statuses["c"], statuses["a"], statuses["after"], statuses["join"]) == (DONE, FAILED, FAILED, PENDING)
    assert (await bench.node(job_id, "split__1")).error_message == "cancelled: the job was cancelled"
    assert (await bench.statuses(job_id, "split"))["split__2"] is PENDING
    assert (await bench.event(job_id, "job_cancelled")).actor == "ann"


async def test_workers_are_told_of_a_cancel(new_bench: NewBench, database: TestDatabase) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    (told,) = await heard_while(database, CANCELLED, bench=bench, job_id=job_id)
    assert told.payload == job_id


async def test_another_instance_asks_and_the_owner_ends_the_job(new_bench: NewBench, database: TestDatabase) -> None:
    bench, other = new_bench(WIDE), new_bench(WIDE, owner="owner-b")
    job_id = await bench.submit()
    (told,) = await heard_while(database, owner_channel("owner-a"), bench=other, job_id=job_id)
    assert told.payload == job_id
    asked = await bench.job(job_id)
    assert (asked.status, asked.cancel_requested_by) == (JobStatus.RUNNING, "ann")
    assert asked.cancel_requested_at is not None
    await other.look_around()
    await other.advance(job_id)
    assert await bench.status(job_id) is JobStatus.RUNNING
    await bench.look_around()
    assert await bench.status(job_id) is JobStatus.CANCELLED
    assert (await bench.event(job_id, "job_cancelled")).actor == "ann"


async def test_a_job_that_is_between_two_owners_can_be_cancelled(new_bench: NewBench) -> None:
    """It was handed over and nobody has taken it yet: whoever does ends it."""
    bench, other = new_bench(WIDE), new_bench(WIDE, owner="owner-b")
    job_id = await bench.submit()
    async with bench.pool.connection() as connection:
        ownership = OwnershipRepository(connection)
        job = await bench.job(job_id)
        assert await ownership.hand_over(bench.owner_id, job.updated_at) == 1
        assert (await other.jobs.cancel(job_id, "ann")).cancel_requested_at is not None
        assert await ownership.take_orphans(other.owner_id, [], job.updated_at, 10) == {job_id: False}
    await other.look_around()
    assert await bench.status(job_id) is JobStatus.CANCELLED


async def test_a_result_before_a_cancel_in_the_same_step_counts(new_bench: NewBench) -> None:
    bench, other = new_bench(WIDE), new_bench(WIDE, owner="owner-b")
    job_id = await bench.submit()
    await bench.report(await bench.task_of(job_id, "a"), output="kept")
    await other.jobs.cancel(job_id)
    await bench.look_around()
    assert (await bench.node(job_id, "a")).output == "kept"
    assert await bench.status(job_id) is JobStatus.CANCELLED


async def test_a_second_cancel_and_the_cancel_of_an_ended_job_change_nothing(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    cancelled, failed = await bench.submit(), await bench.submit()
    await bench.jobs.cancel(cancelled, "ann")
    await bench.fail(failed, "a")
    before = await bench.snapshot()
    assert (await bench.jobs.cancel(cancelled, "bob")).cancel_requested_by == "ann"
    assert (await bench.jobs.cancel(failed, "bob")).status is JobStatus.FAILED
    assert await bench.snapshot() == before


async def test_a_job_that_is_not_there_cannot_be_cancelled(new_bench: NewBench) -> None:
    with pytest.raises(NotFound):
        await new_bench(WIDE).jobs.cancel(JobId("nowhere"))


async def test_nothing_is_dispatched_of_a_cancelled_job(new_bench: NewBench) -> None:
    bench = new_bench(WIDE)
    job_id = await bench.submit()
    await bench.fail(job_id, "a", retryable=True)
    task = await bench.task_of(job_id, "b")
    await bench.jobs.cancel(job_id)
    sent = len(await bench.tasks(job_id, None))
    await bench.report(task, output="late")
    await bench.let_pass(5000)
    await bench.look_around()
    assert len(await bench.tasks(job_id, None)) == sent
    assert (await bench.node(job_id, "a")).status is READY
    assert SENT not in (await bench.statuses(job_id)).values()
