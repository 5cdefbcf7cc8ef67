"""Each statement of the queue of tasks: what it moves, what it leaves alone, and whom it tells."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.locks import waiting_for_a_lock
from tests.integration.messaging.conftest import JOB
from tests.integration.messaging.heard import ear
from tests.integration.repositories import rows

from graticule.core.channels import owner_channel, queue_channel
from graticule.core.errors import PermissionDenied
from graticule.core.ids import TaskId, WorkerId
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import (
    ClaimedTask,
    Delivery,
    FinishedTask,
    LeaseState,
    RequeueOutcome,
    RunningTask,
    TaskRepository,
)

ME, OTHER = WorkerId("me"), WorkerId("other")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def queued(connection: Connection, *task_ids: str, **changes: Any) -> None:
    for task_id in task_ids:
        values = {"node_id": "node", "available_at": LONG_AGO, "created_at": LONG_AGO, **changes}
        await TaskRepository(connection).insert(rows.task(task_id, **values))


async def claim(connection: Connection, worker: WorkerId = ME, limit: int = 10, lease: float = 60) -> list[ClaimedTask]:
    return await TaskRepository(connection).claim(worker, "q", limit, lease)


def lease_of(task: ClaimedTask) -> Delivery:
    return Delivery(task.task_id, task.delivery_count)


async def expire(connection: Connection, *task_ids: str) -> None:
    """Let leases be over, without waiting for it."""
    await connection.execute(
        "UPDATE dagapp.dag_tasks SET lease_expires_at = now() - interval '1 second' WHERE task_id = ANY (%s)",
        [list(task_ids)],
    )


def finished(task: ClaimedTask, **changes: Any) -> FinishedTask:
    return FinishedTask(lease_of(task), ResultStatus.COMPLETED, **{"output": '{"a": 1}', **changes})


# Claims


async def test_a_claim_takes_the_most_urgent_first_then_the_longest_waiting(
    with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "late", available_at=LONG_AGO + timedelta(days=1))
    await queued(with_job, "b", "a")
    await queued(with_job, "urgent", priority=10, available_at=LONG_AGO + timedelta(days=2))
    await queued(with_job, "elsewhere", queue="another")
    assert [task.task_id for task in await claim(one, limit=3)] == ["urgent", "a", "b"]
    assert [task.task_id for task in await claim(one)] == ["late"]
    assert await claim(one) == []


async def test_a_claim_gives_all_that_a_worker_needs_and_leases_by_the_clock_of_the_database(
    with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "t", params={"a": [1, None]}, retry_count=2, timeout_seconds=7, traceparent="00-1")
    (task,) = await claim(one, lease=60)
    told = (task.job_id, task.node_id, task.queue, task.handler, task.params, task.timeout_seconds, task.retry_count)
    assert told == (JOB, "node", "q", "echo", {"a": [1, None]}, 7, 2)
    assert (task.delivery_count, task.max_deliveries, task.traceparent) == (1, 10, "00-1")
    row = await TaskRepository(with_job).get(task_id="t")
    assert (row.status, row.leased_by) == (MessageStatus.LEASED, ME)
    cursor = await with_job.execute(
        "SELECT lease_expires_at - now() BETWEEN interval '50 s' AND interval '60 s' AS ok FROM dagapp.dag_tasks"
    )
    assert await cursor.fetchone() == {"ok": True}


async def test_what_waits_for_its_time_is_not_claimed_and_the_time_is_told(
    with_job: Connection, one: Connection
) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=300)
    await queued(with_job, "later", available_at=soon + timedelta(days=1))
    await queued(with_job, "soon", available_at=soon)
    await queued(with_job, "elsewhere", queue="another", available_at=soon - timedelta(seconds=100))
    assert await claim(one) == []
    seconds = await TaskRepository(one).seconds_to_next(["q", "none"])
    assert seconds is not None
    assert 290 < seconds <= 300
    assert await TaskRepository(one).seconds_to_next(["none"]) is None


async def test_two_that_claim_at_once_share_the_tasks_and_do_not_wait_for_each_other(
    with_job: Connection, one: Connection, another: Connection
) -> None:
    await queued(with_job, *(f"t{number}" for number in range(10)))
    async with one.transaction():
        mine = await claim(one, limit=4)
        theirs = await asyncio.wait_for(claim(another, OTHER, limit=10), 5)
    assert len(mine) == 4
    assert {task.task_id for task in mine} | {task.task_id for task in theirs} == {f"t{n}" for n in range(10)}
    assert len(theirs) == 6


async def test_a_claim_leaves_what_it_is_not_to_take(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "heavy", handler="crunch", priority=5)
    await queued(with_job, "light")
    tasks = TaskRepository(one)
    assert [task.task_id for task in await tasks.claim(ME, "q", 5, 60, without=["crunch", "other"])] == ["light"]
    assert [task.task_id for task in await claim(one)] == ["heavy"]


@pytest.mark.parametrize("status", ["done", "withdrawn", "dead"])
async def test_an_ended_task_is_never_claimed(with_job: Connection, one: Connection, status: str) -> None:
    await queued(with_job, "t", status=status, dead_reason="r")
    assert await claim(one) == []


# Renewals


async def test_a_renewal_prolongs_what_is_held_and_tells_what_is_not(
    with_job: Connection, one: Connection, another: Connection
) -> None:
    await queued(with_job, "held", "withdrawn", "taken", "done")
    tasks = {task.task_id: task for task in await claim(one, lease=5)}
    await with_job.execute(
        "UPDATE dagapp.dag_tasks SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL"
        " WHERE task_id = 'withdrawn'"
    )
    await expire(with_job, "taken")
    await TaskRepository(with_job).reap_expired()
    await claim(another, OTHER)
    await TaskRepository(one).finish(ME, [finished(tasks[TaskId("done")])])
    asked = [lease_of(task) for task in tasks.values()] + [Delivery(TaskId("gone"), 1)]
    assert await TaskRepository(one).renew(ME, asked, 60) == {
        "held": LeaseState.HELD,
        "withdrawn": LeaseState.WITHDRAWN,
        "taken": LeaseState.LOST,
        "done": LeaseState.LOST,
        "gone": LeaseState.LOST,
    }
    cursor = await with_job.execute(
        "SELECT task_id FROM dagapp.dag_tasks WHERE lease_expires_at > now() + interval '50 s' ORDER BY 1"
    )
    assert [row["task_id"] for row in await cursor.fetchall()] == ["held", "taken"]


async def test_a_renewal_that_waits_for_a_withdrawal_tells_of_it(
    with_job: Connection, one: Connection, another: Connection
) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    async with another.transaction():
        await another.execute(
            "UPDATE dagapp.dag_tasks SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL"
        )
        renewing = asyncio.create_task(TaskRepository(one).renew(ME, [lease_of(task)], 60))
        await waiting_for_a_lock(with_job)
    assert await renewing == {"t": LeaseState.WITHDRAWN}


# Results


async def test_a_late_result_of_a_task_that_was_withdrawn_is_recorded_once(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "a", "b")
    first, second = await claim(one)
    await with_job.execute(
        "UPDATE dagapp.dag_tasks SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL"
    )
    await with_job.execute("UPDATE dagapp.dag_tasks SET delivery_count = 2 WHERE task_id = %s", [second.task_id])
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        assert await TaskRepository(one).finish(ME, [finished(first), finished(second)]) == {first.task_id}
        assert await listening.so_far() == [(owner_channel(rows.OWNER), JOB)]
    assert await TaskRepository(one).finish(ME, [finished(first)]) == set()
    assert [each.task_id for each in await ResultRepository(with_job).unprocessed(JOB)] == [first.task_id]
    assert (await TaskRepository(with_job).get(task_id=first.task_id)).status is MessageStatus.DONE


async def test_finishing_ends_tasks_writes_results_and_tells_each_owner_once_for_each_job(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "a", "b", "c")
    tasks = await claim(one)
    reports = [
        finished(tasks[0], output='{"x": [1, "ä"]}', metrics='{"rows": 2}', progress='{"done": 3}'),
        finished(tasks[1], output=None, output_ref="outputs/job/b.json"),
        FinishedTask(lease_of(tasks[2]), ResultStatus.FAILED, error_message="no", retryable=False),
    ]
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        assert await TaskRepository(one).finish(ME, reports) == {"a", "b", "c"}
        assert await listening.so_far() == [(owner_channel(rows.OWNER), JOB)]
    results = {result.task_id: result for result in await ResultRepository(with_job).unprocessed(JOB)}
    first, second, third = (results[TaskId(name)] for name in "abc")
    assert (first.status, first.output, first.metrics, first.progress) == (
        ResultStatus.COMPLETED,
        {"x": [1, "ä"]},
        {"rows": 2},
        {"done": 3},
    )
    assert (first.worker_id, first.node_id, first.processed_at) == (ME, "node", None)
    assert (second.output, second.output_ref) == (None, "outputs/job/b.json")
    assert (third.status, third.error_message, third.retryable) == (ResultStatus.FAILED, "no", False)
    assert {task.status for task in await TaskRepository(with_job).of_job(JOB)} == {MessageStatus.DONE}


async def test_a_result_counts_once(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    assert await TaskRepository(one).finish(ME, [finished(task)]) == {"t"}
    assert await TaskRepository(one).finish(ME, [finished(task)]) == set()
    assert len(await ResultRepository(with_job).unprocessed(JOB)) == 1


async def test_two_that_finish_the_same_task_at_once_write_one_result(
    with_job: Connection, one: Connection, another: Connection
) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    both = [TaskRepository(each).finish(ME, [finished(task)]) for each in (one, another)]
    assert sorted(map(len, await asyncio.gather(*both))) == [0, 1]
    assert len(await ResultRepository(with_job).unprocessed(JOB)) == 1


async def test_a_worker_whose_lease_ran_out_and_was_given_on_reports_nothing(
    database: TestDatabase, with_job: Connection, one: Connection, another: Connection
) -> None:
    await queued(with_job, "t", "kept")
    lost, kept = sorted(await claim(one), key=lambda task: task.task_id, reverse=True)
    await expire(with_job, "t")
    assert [task.task_id for task in await TaskRepository(with_job).reap_expired()] == ["t"]
    (again,) = await claim(another, OTHER)
    assert again.delivery_count == 2
    old = TaskRepository(one)
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        assert await old.finish(ME, [finished(lost)]) == set()
        assert await old.report_running(ME, [RunningTask(lease_of(lost))]) == set()
        assert await old.complete(ME, [lease_of(lost)]) == set()
        assert await old.abandon(ME, [lease_of(lost)]) == set()
        assert not await old.dead_letter(ME, lease_of(lost), "r")
        assert not await CheckpointRepository(one).save_under_lease(ME, lease_of(lost), "phase", {}, [])
        assert await listening.so_far() == []
    assert await old.finish(ME, [finished(lost), finished(kept)]) == {"kept"}
    assert await TaskRepository(another).finish(OTHER, [finished(again)]) == {"t"}


async def test_an_older_delivery_to_the_same_worker_is_void(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "t")
    (first,) = await claim(one)
    await expire(with_job, "t")
    await TaskRepository(with_job).reap_expired()
    (second,) = await claim(one)
    assert await TaskRepository(one).finish(ME, [finished(first)]) == set()
    assert await TaskRepository(one).renew(ME, [lease_of(first)], 60) == {"t": LeaseState.LOST}
    assert await TaskRepository(one).finish(ME, [finished(second)]) == {"t"}


async def test_running_reports_leave_the_task_and_tell_the_owner(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "a", "b")
    tasks = await claim(one)
    reports = [
        RunningTask(lease_of(tasks[0]), progress='{"done": 1}'),
        RunningTask(lease_of(tasks[1]), checkpoint="phase_1"),
    ]
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        assert await TaskRepository(one).report_running(ME, reports) == {"a", "b"}
        assert await listening.so_far() == [(owner_channel(rows.OWNER), JOB)]
    told = {each.task_id: each for each in await ResultRepository(with_job).unprocessed(JOB)}
    assert {each.status for each in told.values()} == {ResultStatus.RUNNING}
    assert told[TaskId("a")].progress == {"done": 1}
    assert told[TaskId("b")].checkpoint == "phase_1"
    assert await TaskRepository(one).finish(ME, [finished(tasks[0])]) == {"a"}


async def test_a_checkpoint_is_saved_under_the_lease_and_told(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        saved = await CheckpointRepository(one).save_under_lease(ME, lease_of(task), "p", {"n": 1}, ["a/b"])
        assert saved
        assert await listening.so_far() == [(owner_channel(rows.OWNER), JOB)]
    found = await CheckpointRepository(with_job).get(job_id=JOB, node_id="node")
    assert (found.task_id, found.phase, found.data, found.artifacts) == ("t", "p", {"n": 1}, ["a/b"])
    (told,) = await ResultRepository(with_job).unprocessed(JOB)
    assert (told.status, told.checkpoint) == (ResultStatus.RUNNING, "p")
    assert await CheckpointRepository(one).save_under_lease(ME, lease_of(task), "q", {}, [])
    found = await CheckpointRepository(with_job).get(job_id=JOB, node_id="node")
    assert (found.phase, found.data, found.artifacts) == ("q", {}, [])


# Giving back


async def test_a_task_that_is_given_back_can_be_claimed_at_once_and_the_queue_is_told(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    async with ear(database, queue_channel("q")) as listening:
        assert await TaskRepository(one).abandon(ME, [lease_of(task)]) == {"t"}
        assert await listening.so_far() == [(queue_channel("q"), "")]
    (again,) = await claim(one, OTHER)
    assert (again.delivery_count, again.available_at) == (2, LONG_AGO)


async def test_giving_back_of_ones_own_accord_does_not_count(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "t")
    for _ in range(3):
        (task,) = await claim(one)
        assert task.delivery_count == 1
        await TaskRepository(one).abandon(ME, [lease_of(task)], counts=False)


async def test_a_task_can_be_given_back_for_later(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    await TaskRepository(one).abandon(ME, [lease_of(task)], delay_seconds=300)
    assert await claim(one) == []
    assert (await TaskRepository(one).seconds_to_next(["q"]) or 0) > 290


# Silent workers and poison


async def test_expired_leases_go_back_to_their_queues_which_are_told(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "expired", "held")
    await claim(one)
    await expire(with_job, "expired")
    async with ear(database, queue_channel("q"), owner_channel(rows.OWNER)) as listening:
        reaped = await TaskRepository(with_job).reap_expired()
        assert [(task.task_id, task.status) for task in reaped] == [("expired", MessageStatus.QUEUED)]
        assert await listening.so_far() == [(queue_channel("q"), "")]
    assert await ResultRepository(with_job).unprocessed(JOB) == []
    assert [task.task_id for task in await claim(one, OTHER)] == ["expired"]


async def test_now_can_be_given_and_no_more_than_the_limit_is_reaped(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "a", "b", "c")
    await claim(one)
    tasks = TaskRepository(with_job)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert await tasks.reap_expired(datetime.now(UTC)) == []
    assert len(await tasks.reap_expired(later, limit=2)) == 2
    assert len(await tasks.reap_expired(later)) == 1


async def test_a_task_that_ends_every_worker_dies_and_its_node_is_told(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "t", max_deliveries=2)
    for _ in range(2):
        await claim(one)
        await expire(with_job, "t")
        async with ear(database, owner_channel(rows.OWNER), queue_channel("q")) as listening:
            await TaskRepository(with_job).reap_expired()
            told = await listening.so_far()
    assert told == [(owner_channel(rows.OWNER), JOB)]
    row = await TaskRepository(with_job).get(task_id="t")
    assert (row.status, row.dead_reason) == (
        MessageStatus.DEAD,
        "poison task: delivered 2 times without a result",
    )
    (result,) = await ResultRepository(with_job).unprocessed(JOB)
    assert (result.status, result.retryable, result.error_message) == (ResultStatus.FAILED, False, row.dead_reason)
    assert await claim(one) == []


async def test_a_worker_can_set_a_task_aside(database: TestDatabase, with_job: Connection, one: Connection) -> None:
    await queued(with_job, "t")
    (task,) = await claim(one)
    async with ear(database, owner_channel(rows.OWNER)) as listening:
        assert await TaskRepository(one).dead_letter(ME, lease_of(task), "cannot be read")
        assert await listening.so_far() == [(owner_channel(rows.OWNER), JOB)]
    (result,) = await ResultRepository(with_job).unprocessed(JOB)
    assert (result.status, result.retryable, result.error_message) == (ResultStatus.FAILED, False, "cannot be read")


# Dead letters


async def test_dead_letters_are_paged_by_queue(with_job: Connection) -> None:
    for number in range(5):
        created = LONG_AGO + timedelta(seconds=number // 2)
        await queued(with_job, f"d{number}", status="dead", dead_reason="r", created_at=created)
    await queued(with_job, "elsewhere", status="dead", dead_reason="r", queue="another")
    tasks = TaskRepository(with_job)
    seen, before = [], None
    while page := await tasks.dead("q", 2, before=before):
        seen += [task.task_id for task in page]
        before = (page[-1].created_at, page[-1].task_id)
    assert seen == ["d4", "d3", "d2", "d1", "d0"]
    assert len(await tasks.dead()) == 6


async def test_a_dead_letter_is_tried_again_while_its_node_waits(
    database: TestDatabase, with_job: Connection, one: Connection
) -> None:
    await queued(with_job, "job_node_0", status="dead", dead_reason="r", delivery_count=10)
    tasks = TaskRepository(with_job)
    async with ear(database, queue_channel("q")) as listening:
        assert await tasks.requeue(TaskId("job_node_0")) is RequeueOutcome.REQUEUED
        assert await listening.so_far() == [(queue_channel("q"), "")]
    assert await tasks.requeue(TaskId("job_node_0")) is RequeueOutcome.NOT_DEAD
    assert await tasks.requeue(TaskId("none")) is RequeueOutcome.NOT_FOUND
    (task,) = await claim(one)
    assert task.delivery_count == 1


async def test_a_dead_letter_of_a_failed_job_can_be_resumed(with_job: Connection) -> None:
    await queued(with_job, "job_node_0", "other_attempt", status="dead", dead_reason="r")
    await with_job.execute("UPDATE dagapp.dag_nodes SET status = 'failed', error_message = 'e', ended_at = now()")
    await with_job.execute("UPDATE dagapp.dag_jobs SET status = 'failed', error_message = 'e', ended_at = now()")
    tasks = TaskRepository(with_job)
    assert await tasks.requeue(TaskId("job_node_0")) is RequeueOutcome.JOB_FAILED
    assert await tasks.requeue(TaskId("other_attempt")) is RequeueOutcome.NOT_AWAITED


async def test_a_dead_letter_that_nobody_waits_for_stays(with_job: Connection, one: Connection) -> None:
    await queued(with_job, "job_node_0", "other_attempt", status="dead", dead_reason="r")
    tasks = TaskRepository(with_job)
    assert await tasks.requeue(TaskId("other_attempt")) is RequeueOutcome.NOT_AWAITED
    await with_job.execute("UPDATE dagapp.dag_nodes SET status = 'failed', error_message = 'e', ended_at = now()")
    assert await tasks.requeue(TaskId("job_node_0")) is RequeueOutcome.NOT_AWAITED
    assert await claim(one) == []
    assert len(await tasks.dead()) == 2


async def test_a_dead_letter_can_be_discarded_and_nothing_else(with_job: Connection) -> None:
    await queued(with_job, "dead", status="dead", dead_reason="r")
    await queued(with_job, "alive")
    tasks = TaskRepository(with_job)
    assert await tasks.discard(TaskId("dead"))
    assert not await tasks.discard(TaskId("dead"))
    assert not await tasks.discard(TaskId("alive"))
    assert await tasks.dead() == []


# What the role of a worker allows


async def test_a_worker_can_neither_add_nor_remove_tasks_nor_write_events(
    with_job: Connection, one: Connection
) -> None:
    with pytest.raises(PermissionDenied):
        await TaskRepository(one).insert(rows.task("t"))
    with pytest.raises(PermissionDenied):
        await NodeRepository(one).insert(rows.node("n"))
