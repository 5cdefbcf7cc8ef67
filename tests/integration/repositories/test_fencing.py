"""A writer that lost the job, or read an older version, changes nothing; of two at once, one wins."""

import asyncio
from typing import Any

import pytest
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW, OWNER

from graticule.core.errors import Conflict, IllegalTransition, NotFound, OwnershipLost, StaleVersion, Unavailable
from graticule.core.ids import AssetId, JobId, NodeId, OwnerId
from graticule.core.models import GeospatialAsset, LayerMetadata
from graticule.core.states import JobStatus, NodeStatus
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.repositories.jobs import JobRepository, Ownership
from graticule.repositories.layers import LayerMetadataRepository
from graticule.repositories.nodes import NodeRepository

JOB, NODE, OTHER = JobId("job"), NodeId("node"), OwnerId("orchestrator-2")
STRANGERS = {
    "another owner": Ownership(OTHER, 1),
    "an older term": Ownership(OWNER, 0),
    "a later term": Ownership(OWNER, 2),
    "nobody": Ownership(None, 1),
}


async def test_a_stranger_moves_neither_a_job_nor_its_nodes(with_job: Connection) -> None:
    jobs, nodes = JobRepository(with_job), NodeRepository(with_job)
    job, node = await jobs.get(job_id=JOB), await nodes.get(job_id=JOB, node_id=NODE)
    for stranger in STRANGERS.values():
        for new in JobStatus:
            with pytest.raises(OwnershipLost, match=f"belongs to {OWNER} in term 1"):
                await jobs.transition(JOB, new, stranger, LATER, error_message="e")
        for step in NodeStatus:
            with pytest.raises(OwnershipLost, match="no longer held in term"):
                await nodes.transition(JOB, NODE, step, stranger, LATER, error_message="e")
    assert await jobs.get(job_id=JOB) == job
    assert await nodes.get(job_id=JOB, node_id=NODE) == node


async def test_the_owner_is_told_of_an_illegal_step_and_not_that_it_lost_the_job(with_job: Connection) -> None:
    mine = Ownership(OWNER, 1)
    with pytest.raises(IllegalTransition):
        await JobRepository(with_job).transition(JOB, JobStatus.COMPLETED, mine, LATER)
    with pytest.raises(IllegalTransition):
        await NodeRepository(with_job).transition(JOB, NODE, NodeStatus.RUNNING, mine, LATER)


async def test_a_job_of_nobody_is_moved_by_nobody_only(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    await jobs.insert(rows.job("free"))
    with pytest.raises(OwnershipLost, match="belongs to nobody in term 0"):
        await jobs.transition(JobId("free"), JobStatus.RUNNING, Ownership(OWNER, 0), NOW)
    assert (await jobs.transition(JobId("free"), JobStatus.RUNNING, Ownership(None, 0), NOW)).status == "running"


async def test_a_claim_raises_the_term_and_voids_what_the_former_owner_writes(with_job: Connection) -> None:
    jobs, nodes = JobRepository(with_job), NodeRepository(with_job)
    claimed = await jobs.claim(JOB, OTHER, 1, LATER)
    assert (claimed.owner_id, claimed.owner_epoch, claimed.updated_at) == (OTHER, 2, LATER)
    for former in (Ownership(OWNER, 1), Ownership(OTHER, 1), Ownership(OWNER, 2)):
        with pytest.raises(OwnershipLost):
            await jobs.transition(JOB, JobStatus.RUNNING, former, LATER)
        with pytest.raises(OwnershipLost):
            await nodes.transition(JOB, NODE, NodeStatus.READY, former, LATER)
    assert (await jobs.transition(JOB, JobStatus.RUNNING, Ownership(OTHER, 2), LATER)).status == "running"
    assert (await nodes.transition(JOB, NODE, NodeStatus.READY, Ownership(OTHER, 2), LATER)).status == "ready"


async def test_a_claim_of_another_term_or_of_an_ended_job_is_refused_and_changes_nothing(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    before = await jobs.get(job_id=JOB)
    for term in (0, 2, -1):
        with pytest.raises(OwnershipLost, match=f"is pending and in term 1, not {term}"):
            await jobs.claim(JOB, OTHER, term, LATER)
    assert await jobs.get(job_id=JOB) == before
    for status in ("completed", "failed", "cancelled"):
        ended = await jobs.insert(rows.job(status, status=status, ended_at=NOW, error_message="e"))
        with pytest.raises(OwnershipLost):
            await jobs.claim(JobId(status), OTHER, 0, LATER)
        assert await jobs.get(job_id=status) == ended
    with pytest.raises(NotFound):
        await jobs.claim(JobId("nowhere"), OTHER, 0, LATER)


async def _attempt(pool: Database, action: Any) -> str:
    """Run an action on a connection of its own, and tell how it ended."""
    try:
        async with pool.transaction() as connection:
            await action(connection)
    except Conflict as error:
        return type(error).__name__
    return "won"


async def test_of_claims_at_once_exactly_one_wins(pool: Database, with_job: Connection) -> None:
    def claim(owner: str) -> Any:
        return lambda connection: JobRepository(connection).claim(JOB, OwnerId(owner), 1, LATER)

    outcomes = await asyncio.gather(*(_attempt(pool, claim(f"o{number}")) for number in range(3)))
    assert sorted(outcomes) == ["OwnershipLost", "OwnershipLost", "won"]
    job = await JobRepository(with_job).get(job_id=JOB)
    assert (job.owner_id, job.owner_epoch) == (f"o{outcomes.index('won')}", 2)


async def test_a_claim_waits_for_a_step_under_way_and_the_step_is_then_void_or_done(
    pool: Database, with_job: Connection
) -> None:
    async with pool.transaction() as step:
        await JobRepository(step).transition(JOB, JobStatus.RUNNING, Ownership(OWNER, 1), NOW)
        await with_job.execute("SET lock_timeout = '100ms'")
        with pytest.raises(Unavailable):
            await JobRepository(with_job).claim(JOB, OTHER, 1, LATER)
    assert (await JobRepository(with_job).claim(JOB, OTHER, 1, LATER)).status == "running"


async def test_a_step_on_a_node_alone_cannot_be_overtaken_by_a_claim(pool: Database, with_job: Connection) -> None:
    """Else a paused owner commits its node after the new owner has read it: written in a term that is over."""
    async with pool.transaction() as step:
        await NodeRepository(step).transition(JOB, NODE, NodeStatus.READY, Ownership(OWNER, 1), NOW)
        await with_job.execute("SET lock_timeout = '100ms'")
        with pytest.raises(Unavailable):
            await JobRepository(with_job).claim(JOB, OTHER, 1, LATER)


async def test_a_step_on_a_node_that_waits_for_a_claim_finds_itself_fenced_off(
    pool: Database, with_job: Connection
) -> None:
    nodes = NodeRepository(with_job)
    async with pool.transaction() as claimer:
        await JobRepository(claimer).claim(JOB, OTHER, 1, LATER)
        step = asyncio.create_task(nodes.transition(JOB, NODE, NodeStatus.READY, Ownership(OWNER, 1), NOW))
        await asyncio.wait({step}, timeout=0.2)
    with pytest.raises(OwnershipLost):
        await step
    assert (await nodes.get(job_id=JOB, node_id=NODE)).status == "pending"


async def test_of_steps_at_once_of_one_job_exactly_one_is_made(pool: Database, with_job: Connection) -> None:
    def move(new: JobStatus) -> Any:
        return lambda connection: JobRepository(connection).transition(JOB, new, Ownership(OWNER, 1), LATER)

    outcomes = await asyncio.gather(
        _attempt(pool, move(JobStatus.RUNNING)),
        _attempt(pool, move(JobStatus.RUNNING)),
        _attempt(pool, move(JobStatus.RUNNING)),
    )
    assert sorted(outcomes) == ["IllegalTransition", "IllegalTransition", "won"]
    assert (await JobRepository(with_job).get(job_id=JOB)).status == "running"


async def test_the_errors_of_the_fence_pass_the_seam_too(
    pool: Database, with_job: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question whether the job is still held is asked of the database as well, and it may be gone by then."""
    nodes = NodeRepository(with_job)

    async def refuse_and_lose_the_connection(*_: Any, **__: Any) -> Any:
        await with_job.close()
        raise IllegalTransition("refused")

    monkeypatch.setattr(nodes, "_transition", refuse_and_lose_the_connection)
    with pytest.raises(Unavailable):
        await nodes.transition(JOB, NODE, NodeStatus.READY, Ownership(OWNER, 1), NOW)


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
    async with pool.transaction() as holder:
        await AssetRepository(holder).lock(ASSET)
        with pytest.raises(Unavailable):
            await AssetRepository(with_job).lock(ASSET)
        await AssetRepository(with_job).lock(AssetId("f" * 32))
    await AssetRepository(with_job).lock(ASSET)
