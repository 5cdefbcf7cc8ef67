"""Many orchestrators, no leader: each keeps to its own jobs, and those of one that is gone are shared by the others."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from pydantic import JsonValue
from tests.conftest import TestDatabase
from tests.integration.orchestrator.conftest import NewInstance
from tests.integration.orchestrator.instances import Instance, until, working
from tests.integration.services.engine import DONE, SENT, flow

from graticule.core import backoff
from graticule.core.errors import Unavailable
from graticule.core.ids import JobId, OwnerId, WorkerId
from graticule.core.models import Orchestrator
from graticule.core.states import JobStatus, ResultStatus
from graticule.orchestrator.membership import CERTAIN_SECONDS, MOST_UNEVEN, Membership, new_owner_id
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.processes import OrchestratorRepository
from graticule.repositories.tasks import ClaimedTask, Delivery, FinishedTask, TaskRepository
from graticule.services.jobs import Submission
from graticule.services.step_reading import Wake

CHAIN = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: b}
  b: {handler: echo, next: end}""")


def echo(task: ClaimedTask) -> JsonValue:
    return task.params


async def submitted(instance: Instance, count: int) -> list[JobId]:
    made = await instance.jobs.submit_many([Submission(workflow_id="flow")] * count)
    return [each.job.job_id for each in made]


async def owners(instance: Instance, jobs: list[JobId]) -> set[str | None]:
    return {(await instance.job(job_id)).owner_id for job_id in jobs}


async def row_of(instance: Instance) -> Orchestrator:
    async with instance.pool.connection() as connection:
        return await OrchestratorRepository(connection).get(owner_id=instance.owner_id)


async def dead_owners(instance: Instance, threshold: float = 120) -> list[str]:
    async with instance.pool.connection() as connection:
        return [*await OwnershipRepository(connection).dead_owners(instance.owner_id, threshold)]


async def test_two_loops_advance_each_its_own_jobs(new_instance: NewInstance, database: TestDatabase) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    async with first.running(), second.running(), working(database, echo):
        mine, other = await submitted(first, 10), await submitted(second, 10)
        assert set(await first.ended(*mine, *other)) == {JobStatus.COMPLETED}
    assert set().union(*first.batches) == set(mine)
    assert set().union(*second.batches) == set(other)
    assert await owners(first, mine) == {"owner-a"}
    assert await owners(first, other) == {"owner-b"}


async def test_an_instance_that_runs_is_not_taken_for_dead(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    async with first.running(), second.running():
        jobs = await submitted(first, 3)
        assert await dead_owners(second) == []
        await asyncio.sleep(0.3)  # several scans
        assert await owners(first, jobs) == {"owner-a"}
        row = await row_of(first)
        assert (row.stopped_at, row.lock_key) == (None, first.loop._member.lock_key)


async def test_a_stopping_instance_hands_its_jobs_over_at_once(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)  # neither scans: only the word of the first can move them
    async with second.running():
        async with first.running():
            jobs = await submitted(first, MOST_UNEVEN)  # so few that they are not shared out before
            await first.finish(jobs[0], "a", "kept")
        assert (await row_of(first)).stopped_at is not None

        async def all_taken() -> bool:
            return await owners(second, jobs) == {"owner-b"}

        await until(all_taken)
        async with working(database, echo):
            assert set(await second.ended(*jobs)) == {JobStatus.COMPLETED}
    assert (await first.job(jobs[1])).owner_epoch == 3  # given up, and taken
    assert (await first.event(jobs[0], "job_reclaimed")).actor == "owner-b"
    assert (await first.node(jobs[0], "a")).output == "kept"
    assert [task.node_id for task in await first.tasks(jobs[0], None)] == ["a", "b"]


async def test_a_result_that_came_between_two_owners_is_not_lost(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    async with first.running():
        job_id = await first.submit()
    assert (await first.job(job_id)).owner_id is None
    await first.report(await first.task_of(job_id, "a"), output="between")
    async with second.running():
        await until(lambda: is_done(second, job_id, "a"))


async def test_a_result_that_is_committed_after_the_job_changed_hands_is_found(new_instance: NewInstance) -> None:
    """Its notification goes to the owner that its statement saw: here to none."""
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    async with first.running():
        job_id = await first.submit()
    await first.claim()
    (task,) = await first.tasks(job_id, None)
    finished = FinishedTask(Delivery(task.task_id, task.delivery_count), ResultStatus.COMPLETED, output='"late"')
    async with second.running():
        async with first.pool.connection() as connection, connection.transaction():
            assert await TaskRepository(connection).finish(WorkerId("worker-1"), [finished])
            await until(lambda: is_taken(second, job_id))
        await until(lambda: is_done(second, job_id, "a"))


async def is_taken(instance: Instance, job_id: JobId) -> bool:
    """The job has a new owner, which has looked at it."""
    return any(job_id in batch for batch in instance.batches) and not instance.loop._inbox._held


async def is_done(instance: Instance, job_id: JobId, node_id: str) -> bool:
    return (await instance.node(job_id, node_id)).status is DONE


async def test_a_vanished_instance_is_noticed_by_its_free_lock(
    new_instance: NewInstance, database: TestDatabase
) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    first.vanishes()
    async with second.running():
        async with first.running():
            jobs = await submitted(first, 5)
        async with working(database, echo):
            assert set(await second.ended(*jobs)) == {JobStatus.COMPLETED}
    assert await owners(second, jobs) == {"owner-b"}
    assert {(await first.job(job_id)).owner_epoch for job_id in jobs} == {2}
    row = await row_of(first)
    assert row.stopped_at is not None
    assert row.heartbeat_at > datetime.now(UTC) - timedelta(seconds=100)  # it was not its heartbeat


async def test_an_instance_that_loses_its_session_for_a_moment_keeps_its_jobs(
    new_instance: NewInstance, admin: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", CERTAIN_SECONDS / 2)  # long enough to be seen without a session
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    looks = second.loop._member
    async with first.running(), second.running():
        jobs = await submitted(first, 3)
        calm = looks.next_look_seconds
        await admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks"
            " WHERE locktype = 'advisory' AND ((classid::bigint << 32) | objid::bigint) = %s",
            [first.loop._member.lock_key],
        )
        assert await looks.take_orphans() == []
        assert looks.next_look_seconds <= CERTAIN_SECONDS  # it is looked at again, soon

        async def is_back() -> bool:
            return await looks.take_orphans() == [] and looks.next_look_seconds == calm

        await until(is_back)
        assert await owners(first, jobs) == {"owner-a"}


async def test_an_instance_goes_on_beating_after_a_beat_that_failed(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[str] = []
    beat = OrchestratorRepository.beat

    async def failing_once(self: OrchestratorRepository, owner_id: OwnerId) -> bool:
        beats.append(owner_id)
        if len(beats) == 1:
            raise Unavailable("The connection was lost.")
        return await beat(self, owner_id)

    monkeypatch.setattr(OrchestratorRepository, "beat", failing_once)
    async with new_instance(CHAIN, heartbeat_interval_seconds=0.05).running():

        async def beats_again() -> bool:
            return len(beats) > 3

        await until(beats_again)


async def test_an_instance_without_heartbeat_is_taken_for_dead_although_it_holds_its_lock(
    new_instance: NewInstance,
) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    async with first.running():
        jobs = await submitted(first, 2)
        await first.execute("UPDATE dagapp.dag_orchestrators SET heartbeat_at = now() - interval '119 seconds'")
        async with second.running():
            assert await dead_owners(second) == []
            await first.execute(
                "UPDATE dagapp.dag_orchestrators SET heartbeat_at = now() - interval '121 seconds'"
                " WHERE owner_id = 'owner-a'"
            )

            async def all_taken() -> bool:
                return await owners(second, jobs) == {"owner-b"}

            await until(all_taken)


async def test_an_instance_that_comes_back_changes_nothing_that_is_no_longer_its_own(
    new_instance: NewInstance,
) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    job_id = await first.submit()
    async with first.pool.connection() as connection:
        ownership = OwnershipRepository(connection)
        await ownership.take_orphans(second.owner_id, [first.owner_id], datetime.now(UTC), 10)
    await first.report(await first.task_of(job_id, "a"), output=1)
    before = await first.snapshot()
    await first.advance(job_id, wake=Wake(due={"a"}, expired={"a": False}))
    await first.look_around()
    assert await first.snapshot() == before
    await second.look_around()
    assert (await first.node(job_id, "b")).status is SENT


async def test_survivors_share_the_jobs_and_none_is_taken_twice(new_instance: NewInstance) -> None:
    first, second, third = (new_instance(CHAIN) for _ in range(3))
    jobs = await submitted(first, 40)
    now = datetime.now(UTC)

    async def take(instance: Instance) -> dict[JobId, bool]:
        async with instance.pool.connection() as connection, connection.transaction():
            return await OwnershipRepository(connection).take_orphans(instance.owner_id, [first.owner_id], now, 7)

    shares = await asyncio.gather(*(take(instance) for _ in range(3) for instance in (second, third)))
    taken = [job_id for share in shares for job_id in share]
    assert sorted(taken) == sorted(jobs)
    assert all(len(share) <= 7 for share in shares)
    assert {(await first.job(job_id)).owner_epoch for job_id in jobs} == {2}


async def test_more_orphans_than_fit_one_take_are_all_taken(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    jobs = await submitted(first, 600)
    async with first.running():
        pass
    async with second.running():

        async def all_taken() -> bool:
            async with second.pool.connection() as connection:
                return (await OwnershipRepository(connection).load(second.owner_id, 120)).own == len(jobs)

        await until(all_taken)
    await first.execute("DELETE FROM dagapp.dag_jobs WHERE job_id <> ALL (%(kept)s)", kept=[jobs[0]])


async def test_ended_jobs_stay_with_their_owner(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    cancelled, failed = await submitted(first, 2)
    await first.jobs.cancel(cancelled)
    await first.fail(failed, "a")
    async with first.running():
        pass
    async with second.pool.connection() as connection:
        assert (
            await OwnershipRepository(connection).take_orphans(second.owner_id, [first.owner_id], datetime.now(UTC), 9)
            == {}
        )
    assert await owners(first, [cancelled, failed]) == {"owner-a"}


async def test_a_late_result_of_an_ended_job_whose_owner_is_gone_is_recorded_too(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN, orchestrator_poll_interval=0.05)
    job_id = await first.submit()
    task = await first.task_of(job_id, "a")
    await first.jobs.cancel(job_id)
    async with first.running():
        pass
    await first.report(task, output="late")
    async with second.running():

        async def is_processed() -> bool:
            return await second.waiting_results(job_id) == 0

        await until(is_processed, 3)


async def test_jobs_of_a_closed_instance_are_taken(new_instance: NewInstance) -> None:
    """A submission that came while the instance was closing its row."""
    first, second = new_instance(CHAIN), new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    async with first.running():
        pass
    job_id = await first.submit()
    async with second.running():

        async def is_taken() -> bool:
            return await owners(second, [job_id]) == {"owner-b"}

        await until(is_taken)


async def test_jobs_of_an_instance_that_never_became_a_member_are_taken(new_instance: NewInstance) -> None:
    """It took a submission by HTTP and died before its loop could make its row."""
    first, second = new_instance(CHAIN), new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    job_id = await first.submit()
    async with second.running():

        async def is_taken() -> bool:
            return await owners(second, [job_id]) == {"owner-b"}

        await first.execute("UPDATE dagapp.dag_jobs SET updated_at = now() - interval '1 day'")
        await until(is_taken, 3)


async def test_jobs_of_an_instance_that_is_about_to_become_a_member_are_left_to_it(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    job_id = await first.submit()
    assert await second.loop._member.take_orphans() == []
    assert await owners(second, [job_id]) == {"owner-a"}


async def test_a_lost_session_is_joined_again_under_the_same_name(
    new_instance: NewInstance, admin: psycopg.AsyncConnection
) -> None:
    async with new_instance(CHAIN).running() as instance:
        before = await row_of(instance)
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'graticule-orchestrator-listener'"
        )

        async def holds_its_lock() -> bool:
            cursor = await admin.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
                " AND ((classid::bigint << 32) | objid::bigint) = %s",
                [before.lock_key],
            )
            return await cursor.fetchone() == (1,)

        await until(holds_its_lock)
        after = await row_of(instance)
        assert after.model_copy(update={"heartbeat_at": before.heartbeat_at}) == before


async def test_an_instance_that_was_taken_for_dead_takes_part_again(new_instance: NewInstance) -> None:
    """Its row was closed while it was paused; it lives, and its next jobs are not everyone's."""
    first = new_instance(CHAIN, heartbeat_interval_seconds=0.05)
    second = new_instance(CHAIN, orphan_scan_interval_seconds=0.05)
    async with first.running(), second.running():
        await first.execute("UPDATE dagapp.dag_orchestrators SET stopped_at = now() WHERE owner_id = 'owner-a'")

        async def is_member_again() -> bool:
            return (await row_of(first)).stopped_at is None

        await until(is_member_again, 3)


async def test_the_heartbeat_is_one_write_per_instance(new_instance: NewInstance) -> None:
    async with new_instance(CHAIN, heartbeat_interval_seconds=0.05).running() as instance:
        jobs = await submitted(instance, 3)
        before, first = [await instance.job(job_id) for job_id in jobs], (await row_of(instance)).heartbeat_at

        async def beaten() -> bool:
            return (await row_of(instance)).heartbeat_at > first

        await until(beaten)
        assert [await instance.job(job_id) for job_id in jobs] == before


async def test_every_start_is_another_instance() -> None:
    assert len({new_owner_id() for _ in range(100)}) == 100
    assert len(new_owner_id()) <= 128


async def test_joining_twice_makes_one_row(new_instance: NewInstance) -> None:
    instance = new_instance(CHAIN)
    member = Membership(instance.pool, instance.owner_id, instance.settings)
    await member.join()
    await member.join()
    assert (await row_of(instance)).lock_key == member.lock_key
