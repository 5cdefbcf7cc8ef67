"""How instances share the work: orphans, messages, and what one has too much of."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.orchestrator.conftest import NewInstance
from tests.integration.orchestrator.instances import Instance, until
from tests.integration.orchestrator.test_intake import intake, jobs, message, send
from tests.integration.orchestrator.test_membership import CHAIN, submitted

from graticule.core.errors import Unavailable
from graticule.core.states import MessageStatus
from graticule.orchestrator.intake import COURTESY_SECONDS
from graticule.orchestrator.membership import MOST_UNEVEN
from graticule.repositories.messages import MessageRepository

SCANS = {"orphan_scan_interval_seconds": 0.1}
ASKED = {"workflow_id": "flow"}


async def numbers(instance: Instance) -> Counter[str | None]:
    """Count the active jobs of each owner."""
    return Counter(job.owner_id for job in await jobs(instance) if job.ended_at is None)


async def members(*instances: Instance) -> None:
    """Make instances known to each other, without a loop."""
    for instance in instances:
        await instance.loop._member.join()


async def test_the_jobs_of_one_that_vanished_are_shared_by_the_others(new_instance: NewInstance) -> None:
    first, second, third = new_instance(CHAIN), new_instance(CHAIN, **SCANS), new_instance(CHAIN, **SCANS)
    first.vanishes()
    async with second.running(), third.running():
        async with first.running():
            await submitted(first, 60)

        async def all_shared() -> bool:
            return await numbers(first) == {"owner-b": 30, "owner-c": 30}

        await until(all_shared)


async def test_an_instance_gives_away_what_is_more_than_its_share(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN, **SCANS), new_instance(CHAIN, **SCANS)
    async with first.running():
        await submitted(first, 60)
        async with second.running():

            async def all_shared() -> bool:
                return await numbers(first) == {"owner-a": 30, "owner-b": 30}

            await until(all_shared)
            for instance in (first, second):
                assert await instance.loop._member.take_orphans() == []
            assert await all_shared()
    terms = Counter(job.owner_epoch for job in await jobs(first))
    assert terms[2] == 30  # these never moved before the hand-over at the end


async def test_a_few_jobs_more_than_its_share_stay_where_they_are(new_instance: NewInstance) -> None:
    first, second = new_instance(CHAIN), new_instance(CHAIN)
    await members(first, second)
    await submitted(first, 2 * MOST_UNEVEN)
    assert await first.loop._member.take_orphans() == []
    assert await numbers(first) == {"owner-a": 2 * MOST_UNEVEN}


async def test_what_others_do_not_take_is_taken_after_a_while(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, silent = new_instance(CHAIN), new_instance(CHAIN)
    await members(first, silent)
    await submitted(first, 2)
    orphans = await submitted(first, 2)
    await first.execute("UPDATE dagapp.dag_jobs SET owner_id = NULL WHERE job_id = ANY (%(jobs)s)", jobs=orphans)
    await first.execute(
        "UPDATE dagapp.dag_orchestrators SET lock_key = lock_key"
    )  # nobody holds a lock: both seem dead
    monkeypatch.setattr("graticule.orchestrator.membership.PATIENCE_SECONDS", 0.2)
    member = first.loop._member

    async def none_is_dead(*_: object) -> dict[str, bool]:
        return {}

    monkeypatch.setattr("graticule.repositories.ownership.OwnershipRepository.dead_owners", none_is_dead)
    assert await member.take_orphans() == []  # the other has none, and these are its share

    async def all_taken() -> bool:
        return bool(await member.take_orphans())

    await until(all_taken)
    assert await numbers(first) == {"owner-a": 4}
    await submitted(first, 20)
    assert await member.take_orphans() == []
    assert await numbers(first) == {"owner-a": 24}  # it gives nothing away: nobody took what it left


async def test_each_takes_its_share_of_the_messages_and_leaves_the_rest(new_instance: NewInstance) -> None:
    instances = [new_instance(CHAIN) for _ in range(3)]
    await members(*instances)
    for number in range(30):
        await send(instances[0], f"m{number:02}", ASKED)
    takers = [intake(instance) for instance in instances]
    for taken, taker in zip((10, 20, 30), takers, strict=True):
        await taker.take()
        assert len(await jobs(instances[0])) == taken
        assert taker.leaves_some == (taken < 30)
    assert set((await numbers(instances[0])).values()) == {10}


async def test_messages_that_nobody_else_takes_are_taken_beyond_the_share(new_instance: NewInstance) -> None:
    first, silent = new_instance(CHAIN), new_instance(CHAIN)
    await members(first, silent)
    waiting = datetime.now(UTC) - timedelta(seconds=COURTESY_SECONDS + 1)
    for number in range(10):
        await send(first, f"m{number}", ASKED, available_at=waiting)
    await intake(first).take()
    assert await numbers(first) == {"owner-a": 10}


async def test_a_loop_that_left_messages_to_others_looks_again(new_instance: NewInstance) -> None:
    first, silent = new_instance(CHAIN), new_instance(CHAIN)
    await members(silent)
    async with first.running():
        await silent.execute("UPDATE dagapp.dag_orchestrators SET heartbeat_at = now()")
        for number in range(10):
            await send(first, f"m{number}", ASKED)

        async def all_taken() -> bool:
            return await numbers(first) == {"owner-a": 10}

        await until(all_taken)


async def test_messages_in_the_hands_of_one_that_is_gone_are_free_before_their_lease_ends(
    new_instance: NewInstance,
) -> None:
    first, gone = new_instance(CHAIN), new_instance(CHAIN)
    await members(first, gone)
    await send(first, "m", ASKED)
    async with gone.pool.connection() as connection:
        (held,) = await MessageRepository(connection).claim(gone.owner_id, "orchestrator-jobs", 10, 3600)
    assert held.delivery_count == 1

    async def is_freed() -> bool:
        await first.loop._member.take_orphans()
        return (await message(first, "m")).status is MessageStatus.QUEUED

    await until(is_freed)
    assert (await message(first, "m")).delivery_count == 1


async def test_messages_in_the_hands_of_one_that_stops_are_free_at_once(new_instance: NewInstance) -> None:
    stopping = new_instance(CHAIN)
    await members(stopping)
    await send(stopping, "m", ASKED)
    async with stopping.pool.connection() as connection:
        assert await MessageRepository(connection).claim(stopping.owner_id, "orchestrator-jobs", 10, 3600)
    await stopping.loop._member.leave()
    freed = await message(stopping, "m")
    assert (freed.status, freed.delivery_count) == (MessageStatus.QUEUED, 0)


async def test_a_message_of_which_no_job_can_ever_be_made_is_set_aside_at_last(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(CHAIN)
    await send(instance, "m", ASKED, max_deliveries=3)
    taker = intake(instance)

    async def away(*_: object) -> None:
        raise Unavailable("It took too long.")

    monkeypatch.setattr(instance.jobs, "add_within", away)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await taker.take()
    await taker.take()
    dead = await message(instance, "m")
    assert (dead.status, dead.dead_reason) == (MessageStatus.DEAD, "delivered 3 times, and no job could be made")


async def test_after_an_error_messages_are_given_back_and_taken_anew(
    new_instance: NewInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(CHAIN)
    await send(instance, "m", ASKED)
    taker, submit = intake(instance), instance.jobs.add_within

    async def away(*_: object) -> None:
        raise Unavailable("The database is away.")

    monkeypatch.setattr(instance.jobs, "add_within", away)
    with pytest.raises(Unavailable):
        await taker.take()
    assert (await message(instance, "m")).status is MessageStatus.LEASED
    monkeypatch.setattr(instance.jobs, "add_within", submit)
    await taker.take()
    done = await message(instance, "m")
    assert (done.status, done.delivery_count) == (MessageStatus.DONE, 2)
