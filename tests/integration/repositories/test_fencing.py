"""A writer that lost the job, or read an older version, changes nothing; of two at once, one wins."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.locks import waiting_for_a_lock
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW, OWNER

from graticule.core.channels import EVENTS
from graticule.core.errors import Conflict, NotFound, StaleVersion, Unavailable
from graticule.core.ids import AssetId, JobId, OwnerId
from graticule.core.models import GeospatialAsset, LayerMetadata
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.events import EventRepository
from graticule.repositories.jobs import JobRepository
from graticule.repositories.layers import LayerMetadataRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.repositories.step_parts import Part
from graticule.repositories.steps import JobRow, StepRepository

JOB, OTHER, THIRD = JobId("job"), OwnerId("orchestrator-2"), OwnerId("orchestrator-3")


async def owner_and_term(connection: Connection, job_id: JobId = JOB) -> tuple[str | None, int]:
    job = await JobRepository(connection).get(job_id=job_id)
    return job.owner_id, job.owner_epoch


async def take(connection: Connection, owner: OwnerId = OTHER, dead: Sequence[OwnerId] = (OWNER,)) -> dict[JobId, bool]:
    return await OwnershipRepository(connection).take_orphans(owner, dead, LATER, 10)


async def test_every_change_of_hands_raises_the_term(with_job: Connection) -> None:
    ownership = OwnershipRepository(with_job)
    assert await take(with_job) == {JOB: True}
    assert await owner_and_term(with_job) == (OTHER, 2)
    assert await ownership.hand_over(OTHER, LATER) == 1
    assert await owner_and_term(with_job) == (None, 3)
    assert await take(with_job, THIRD, dead=()) == {JOB: False}
    assert await owner_and_term(with_job) == (THIRD, 4)
    await with_job.execute("UPDATE dagapp.dag_jobs SET status = 'failed', ended_at = now(), error_message = 'e'")
    assert await ownership.take_ended(JOB, OWNER, LATER)
    assert await owner_and_term(with_job) == (OWNER, 5)


async def test_what_a_former_owner_writes_is_void(with_job: Connection) -> None:
    await take(with_job)
    before = await JobRepository(with_job).get(job_id=JOB)
    row = {"job_id": JOB, "before": "pending", "status": "running"}

    async def write(owner: OwnerId, epoch: int) -> None:
        read = JobRow(JOB, epoch, before.updated_at, before.workflow_hash, before.status)
        await StepRepository(with_job, owner).write([read], {Part.JOBS: [row]}, LATER)

    for former, epoch in ((OWNER, 1), (OTHER, 1), (OWNER, 2)):
        assert await StepRepository(with_job, OWNER).read([JOB], {}, 1) == {}
        with pytest.raises(StaleVersion):
            await write(former, epoch)
    assert await JobRepository(with_job).get(job_id=JOB) == before
    await write(OTHER, 2)
    assert (await JobRepository(with_job).get(job_id=JOB)).status == "running"


async def test_a_take_over_is_an_event_of_which_all_are_told(database: TestDatabase, with_job: Connection) -> None:
    async with await psycopg.AsyncConnection.connect(database.url(), autocommit=True) as listener:
        await listener.execute(f"LISTEN {EVENTS}")
        await take(with_job)
        assert [told.channel async for told in listener.notifies(timeout=5, stop_after=1)] == [EVENTS]
    (event,) = await EventRepository(with_job).of_job(JOB)
    assert (event.event_type, event.actor, event.data) == ("job_reclaimed", OTHER, {"owner_epoch": 2})


async def test_only_active_jobs_of_the_dead_and_of_nobody_are_taken(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    for status in ("completed", "failed", "cancelled"):
        await jobs.insert(rows.job(status, status=status, ended_at=NOW, error_message="e", owner_id=OWNER))
        await jobs.insert(rows.job(f"free {status}", status=status, ended_at=NOW, error_message="e"))
    await jobs.insert(rows.job("free"))
    await jobs.insert(rows.job("running", status="running", owner_id=OWNER))
    await jobs.insert(rows.job("alive", owner_id=THIRD))
    assert await take(with_job, dead=()) == {"free": False}
    assert sorted(await take(with_job)) == [JOB, "running"]
    assert await owner_and_term(with_job, JobId("alive")) == (THIRD, 0)


async def test_a_handover_gives_up_the_active_jobs_of_one_instance_alone(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    await jobs.insert(rows.job("other", owner_id=OTHER, owner_epoch=1))
    await jobs.insert(rows.job("ended", status="cancelled", ended_at=NOW, owner_id=OWNER, owner_epoch=1))
    assert await OwnershipRepository(with_job).hand_over(OWNER, LATER) == 1
    assert await owner_and_term(with_job) == (None, 2)
    assert await owner_and_term(with_job, JobId("other")) == (OTHER, 1)
    assert await owner_and_term(with_job, JobId("ended")) == (OWNER, 1)


@pytest.mark.parametrize("status", ["pending", "running", "completed", "cancelled"])
async def test_only_a_failed_job_is_taken_in_order_to_be_resumed(with_job: Connection, status: str) -> None:
    ended = {"ended_at": NOW} if status in {"completed", "cancelled"} else {}
    job = await JobRepository(with_job).insert(rows.job("j", status=status, owner_id=OWNER, owner_epoch=1, **ended))
    assert not await OwnershipRepository(with_job).take_ended(JobId("j"), OTHER, LATER)
    assert await JobRepository(with_job).get(job_id="j") == job


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_an_ended_job_is_not_asked_to_end(with_job: Connection, status: str) -> None:
    job = await JobRepository(with_job).insert(rows.job("j", status=status, ended_at=NOW, error_message="e"))
    assert not await OwnershipRepository(with_job).request_cancel(JobId("j"), "ann", LATER)
    assert await JobRepository(with_job).get(job_id="j") == job


@pytest.mark.parametrize("owner", [OWNER, None])
async def test_whoever_owns_it_an_active_job_can_be_asked_to_end(with_job: Connection, owner: str | None) -> None:
    await JobRepository(with_job).insert(rows.job("j", owner_id=owner))
    ownership = OwnershipRepository(with_job)
    assert await ownership.request_cancel(JobId("j"), "ann", NOW)
    assert await ownership.request_cancel(JobId("j"), "bob", LATER)
    job = await JobRepository(with_job).get(job_id="j")
    assert (job.cancel_requested_at, job.cancel_requested_by, job.owner_epoch) == (NOW, "ann", 0)


async def _attempt(pool: Database, action: Any) -> str:
    """Run an action on a connection of its own, and tell how it ended."""
    try:
        async with pool.connection() as connection, connection.transaction():
            await action(connection)
    except Conflict as error:
        return type(error).__name__
    return "won"


async def test_of_takes_at_once_exactly_one_wins(pool: Database, with_job: Connection) -> None:
    async def taken(owner: str) -> list[JobId]:
        async with pool.connection() as connection, connection.transaction():
            return [*await take(connection, OwnerId(owner))]

    shares = await asyncio.gather(*(taken(f"o{number}") for number in range(3)))
    assert sorted(shares) == [[], [], [JOB]]
    assert await owner_and_term(with_job) == (f"o{shares.index([JOB])}", 2)


async def as_read(connection: Connection) -> JobRow:
    """Give the job's row as a step reads it."""
    ((snapshot, _),) = (await StepRepository(connection, OWNER).read([JOB], {}, 1)).values()
    return snapshot.job


async def test_a_job_whose_step_is_being_written_is_not_taken(pool: Database, with_job: Connection) -> None:
    """Else a paused owner commits its step after the new owner has read the job: written in a term that is over."""
    async with pool.connection() as step, step.transaction():
        await StepRepository(step, OWNER).hold([await as_read(step)])
        await with_job.execute("SET lock_timeout = '100ms'")
        assert await take(with_job) == {}
        with pytest.raises(Unavailable):
            await OwnershipRepository(with_job).hand_over(OWNER, LATER)
    assert await take(with_job) == {JOB: True}


async def test_a_step_that_waits_for_a_take_over_finds_the_job_gone(pool: Database, with_job: Connection) -> None:
    read = await as_read(with_job)
    async with pool.connection() as taker, taker.transaction():
        assert await take(taker) == {JOB: True}
        step = asyncio.create_task(StepRepository(with_job, OWNER).hold([read]))
        await waiting_for_a_lock(taker)
    with pytest.raises(StaleVersion):
        await step


async def test_of_steps_at_once_from_one_picture_exactly_one_is_written(pool: Database, with_job: Connection) -> None:
    read, row = await as_read(with_job), {"job_id": JOB, "before": "pending", "status": "running"}

    async def start(connection: Connection) -> None:
        await StepRepository(connection, OWNER).write([read], {Part.JOBS: [row]}, LATER)

    outcomes = await asyncio.gather(*(_attempt(pool, start) for _ in range(3)))
    assert sorted(outcomes) == ["StaleVersion", "StaleVersion", "won"]


async def test_replacing_raises_the_version_and_refuses_what_read_an_older_one(with_job: Connection) -> None:
    assets = AssetRepository(with_job)
    first = await assets.get(asset_id=ASSET)
    changed = await assets.replace(first.model_copy(update={"latest_approved_version_ordinal": 3}))
    assert (changed.version, changed.latest_approved_version_ordinal) == (first.version + 1, 3)
    for stale in (first, changed.model_copy(update={"version": 99})):
        with pytest.raises(StaleVersion, match="it is at version 2 now") as refused:
            await assets.replace(stale.model_copy(update={"latest_approved_version_ordinal": 7}))
        assert "Read it again" in (refused.value.hint or "")
    assert await assets.get(asset_id=ASSET) == changed


async def test_every_model_with_a_version_is_replaced_whole(with_job: Connection) -> None:
    await AssetVersionRepository(with_job).insert(rows.version())
    metadata = LayerMetadataRepository(with_job)
    values: dict[str, Any] = {"asset_id": ASSET, "version_ordinal": 0, "created_at": NOW, "updated_at": NOW}
    first = await metadata.insert(LayerMetadata(**values, title="old", keywords=["a"]))
    rich = next(row for row in rows.rich_rows() if isinstance(row, LayerMetadata))
    wanted = rich.model_copy(update={"version_ordinal": 0, "version": first.version})
    assert await metadata.replace(wanted) == wanted.model_copy(update={"version": first.version + 1})
    asset = next(row for row in rows.rich_rows() if isinstance(row, GeospatialAsset))
    changed = asset.model_copy(update={"version": 1, "platform_id": "ddh"})
    assert await AssetRepository(with_job).replace(changed) == changed.model_copy(update={"version": 2})


async def test_a_row_that_is_not_there_cannot_be_replaced(connection: Connection) -> None:
    with pytest.raises(NotFound, match=f"There is no asset {ASSET}"):
        await AssetRepository(connection).replace(rows.asset())


async def test_of_replacements_at_once_exactly_one_wins(pool: Database, with_job: Connection) -> None:
    first = await AssetRepository(with_job).get(asset_id=ASSET)

    def replace(number: int) -> Any:
        changed = first.model_copy(update={"latest_approved_version_ordinal": number})
        return lambda connection: AssetRepository(connection).replace(changed)

    outcomes = await asyncio.gather(*(_attempt(pool, replace(number)) for number in range(3)))
    assert sorted(outcomes) == ["StaleVersion", "StaleVersion", "won"]
    found = await AssetRepository(with_job).get(asset_id=ASSET)
    assert (found.version, found.latest_approved_version_ordinal) == (2, outcomes.index("won"))


async def test_an_assets_lock_is_held_to_the_end_of_the_transaction(pool: Database, with_job: Connection) -> None:
    await with_job.execute("SET lock_timeout = '100ms'")
    async with pool.connection() as holder, holder.transaction():
        await AssetRepository(holder).lock(ASSET)
        with pytest.raises(Unavailable):
            await AssetRepository(with_job).lock(ASSET)
        await AssetRepository(with_job).lock(AssetId("f" * 32))
    await AssetRepository(with_job).lock(ASSET)
