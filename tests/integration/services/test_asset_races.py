"""Decisions and the engine's steps at the same time: the engine takes no lock of the asset."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import NotFound, Refused
from graticule.core.exchange import AssetChange, SubmissionReceipt
from graticule.core.ids import JobId
from graticule.core.models.engine import JobPurpose
from graticule.core.states import ApprovalState, JobStatus, ProcessingState
from graticule.dag.state import Resumed
from graticule.repositories.ownership import OwnershipRepository
from graticule.services.step_reading import Wake

ROUNDS = 50
# An approval of what is approved is a change of its clearance.
DECISIONS = ("approved", "rejected", "revoked", "url_mode_changed", "version_deleted", "unpublished")
TOLD = {**dict(zip(DECISIONS, DECISIONS, strict=True)), "clearance_changed": "approved"}
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@asynccontextmanager
async def asset_row_held(desk: Desk, asset_id: str) -> AsyncIterator[None]:
    """Let a decision come as far as to the row of its asset: it has read and written the version by then."""
    async with desk.pool.connection() as holding, holding.transaction():
        await holding.execute("SELECT FROM dagapp.geospatial_assets WHERE asset_id = %s FOR UPDATE", [asset_id])
        yield


@asynccontextmanager
async def resuming(desk: Desk, job_id: JobId) -> AsyncIterator[None]:
    """Resume a failed job, in a transaction that is still open."""
    async with desk.pool.connection() as connection, connection.transaction():
        assert await OwnershipRepository(connection).take_ended(job_id, desk.bench.owner_id, desk.pool.now())
        await desk.bench.steps.advance_within(connection, {job_id: Wake(resumed=Resumed(None, "otto"))})
        yield


async def export_of(desk: Desk, asset_id: str) -> JobId:
    return (await desk.jobs(asset_id, JobPurpose.EXPORT))[-1].job_id


async def reported(desk: Desk, job_id: JobId, output: Any) -> Awaitable[Any]:
    """Have the result of a job wait for the engine, and give the step that takes it."""
    await desk.bench.report(await desk.bench.task_of(job_id, "work"), output=output)
    return desk.bench.steps.advance({job_id: Wake()})


# Cancelling a job comes before its version is written: the engine locks in this order. Otherwise, a deadlock.
@pytest.mark.parametrize("deed", ["revoke", "delete", "overwritten and approved"])
async def test_a_decision_and_the_end_of_an_export_do_not_wait_for_each_other(desk: Desk, deed: str) -> None:
    asset_id = await desk.approved(level="public")
    export = await export_of(desk, asset_id)
    if deed == "overwritten and approved":
        await desk.process(await desk.submit(overwrite=True), "b")
    step = await reported(desk, export, {"external_blob_path": "x"})
    async with asset_row_held(desk, asset_id):
        acts: dict[str, Callable[[], Awaitable[AssetChange]]] = {
            "revoke": lambda: desk.revoke(asset_id, 0),
            "delete": lambda: desk.delete(asset_id, 0),
            "overwritten and approved": lambda: desk.approve(asset_id, "public"),
        }
        deciding = asyncio.ensure_future(acts[deed]())
        await desk.until_waiting(1)
        stepping = asyncio.ensure_future(step)
        await asyncio.wait([stepping], timeout=0.1)  # it ends, or waits for the version
    await asyncio.wait([deciding, stepping])
    await desk.end_cancelled()
    assert (deciding.exception(), stepping.exception()) == (None, None)


# What was read before the export ended is not what there is to be removed.
@pytest.mark.parametrize("deed", ["clear", "revoke", "delete"])
async def test_a_reversal_knows_the_copies_of_an_export_that_ended_while_it_was_decided(desk: Desk, deed: str) -> None:
    asset_id = await desk.approved(level="public")
    step = await reported(desk, await export_of(desk, asset_id), {"external_blob_path": "x", "export_run_id": "run"})
    async with asset_row_held(desk, asset_id):
        given = ["ouo"] if deed == "clear" else [0]
        deciding = asyncio.ensure_future(getattr(desk, deed)(asset_id, *given))
        await desk.until_waiting(1)
        stepping = asyncio.ensure_future(step)
        await asyncio.wait([stepping], timeout=0.1)
    await asyncio.gather(deciding, stepping)
    await desk.end_cancelled()
    (reversal,) = await desk.jobs(asset_id, JobPurpose.REVERSAL)
    export = await desk.bench.job(await export_of(desk, asset_id))
    if export.status is JobStatus.COMPLETED:
        assert reversal.input_params.get("external_blob_path") == "x"
        assert reversal.input_params.get("export_run_id") == "run"
    else:
        assert (await desk.version(asset_id)).external_blob_path is None


@pytest.mark.parametrize("deed", ["retry", "overwrite", "reprocess"])
async def test_what_is_resumed_while_it_is_decided_on_refuses_the_decision(desk: Desk, deed: str) -> None:
    receipt = await desk.submit()
    await desk.fail(receipt.job_id)
    assert receipt.job_id is not None
    async with resuming(desk, receipt.job_id):
        act = desk.submit(overwrite=True) if deed == "overwrite" else getattr(desk, deed)(receipt.asset_id)
        deciding = asyncio.ensure_future(act)
        await desk.until_waiting(1)
    with pytest.raises(Refused) as refused:
        await deciding
    assert code_of(refused.value) == "stale_version"
    version = await desk.version(receipt.asset_id)
    assert (version.processing_state, version.job_count) == (ProcessingState.PROCESSING, 1)
    assert (version.approval_state, version.revision) == (ApprovalState.PENDING_REVIEW, 1)
    assert await desk.revisions(receipt.asset_id) == []


async def test_a_version_that_ends_while_it_is_deleted_is_deleted_as_it_ended(desk: Desk) -> None:
    receipt = await desk.submit()
    assert receipt.job_id is not None
    step = await reported(desk, receipt.job_id, {"content_hash": "a" * 64})
    async with asset_row_held(desk, receipt.asset_id):
        deleting = asyncio.ensure_future(desk.delete(receipt.asset_id, 0))
        await desk.until_waiting(1)
        stepping = asyncio.ensure_future(step)
        await desk.until_waiting(2)
    await asyncio.gather(deleting, stepping)
    await desk.end_cancelled()
    version = await desk.version(receipt.asset_id)
    assert version.deleted_at is not None
    assert version.processing_state is ProcessingState.FAILED, "its end was asked for before it completed"


async def test_a_change_of_what_the_caller_has_not_seen_is_refused_with_what_there_is(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    seen = (await desk.asset(receipt.asset_id)).version
    await desk.set_url_mode(receipt.asset_id, "all_versions", expected_version=seen)
    before = await desk.snapshot()
    deeds = (desk.approve, desk.reject, desk.revoke, desk.retry, desk.reprocess, desk.unpublish)
    acts: list[Awaitable[Any]] = [deed(receipt.asset_id, expected_version=seen) for deed in deeds]
    acts += [desk.clear(receipt.asset_id, "ouo", expected_version=seen)]
    acts += [desk.set_url_mode(receipt.asset_id, "latest_only", expected_version=seen)]
    acts += [desk.delete(receipt.asset_id, 0, expected_version=seen)]
    for act in acts:
        with pytest.raises(Refused) as refused:
            await act
        assert code_of(refused.value) == "stale_version"
        assert refused.value.current is not None
        assert refused.value.current["version"] == seen + 1
        assert refused.value.current["versions"] == [
            {
                "version_ordinal": 0,
                "version_label": "V1",
                "revision": 1,
                "approved_revision": None,
                "processing_state": "completed",
                "approval_state": "pending_review",
            }
        ]
    assert await desk.snapshot() == before
    await desk.approve(receipt.asset_id, expected_version=seen + 1)


async def test_of_two_decisions_at_once_one_wins_and_the_other_is_told_how_it_stands(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    async with asset_row_held(desk, receipt.asset_id):
        first = asyncio.ensure_future(desk.approve(receipt.asset_id))
        await desk.until_waiting(1)
        second = asyncio.ensure_future(desk.reject(receipt.asset_id))
        await desk.until_waiting(2)
    await first
    with pytest.raises(Refused) as refused:
        await second
    assert code_of(refused.value) == "stale_version"
    assert refused.value.current is not None
    assert refused.value.current["latest_approved_version_ordinal"] == 0


class Crowd:
    """Everyone who acts on one asset at a time: people, partners, workers and the engine."""

    def __init__(self, desk: Desk, asset_id: str, seed: int) -> None:
        self.desk = desk
        self.asset_id = asset_id
        self.random = random.Random(seed)
        self.done: list[str] = []
        self.refused: list[str] = []

    async def act(self) -> None:
        deeds = (*["submit"] * 3, *["work"] * 4, "operate", "decide", "decide", "decide", "remove")
        try:
            await getattr(self, f"_{self.random.choice(deeds)}")()
        except Refused as refused:
            self.refused.append(refused.code)
        except NotFound:
            self.refused.append("not_found")

    async def _submit(self) -> None:
        label, overwrite = f"V{self.random.randrange(3)}", self.random.random() < 0.5
        receipt = await self.desk.submit(label, overwrite=overwrite)
        assert isinstance(receipt, SubmissionReceipt)
        self.done.append("submitted")

    async def _decide(self) -> None:
        desk, asset_id, level = self.desk, self.asset_id, self.random.choice(["ouo", "public"])
        mode = self.random.choice(["latest_only", "all_versions"])
        acts: list[tuple[str, Callable[[], Awaitable[AssetChange]]]] = [
            ("approved", lambda: desk.approve(asset_id, level)),
            ("rejected", lambda: desk.reject(asset_id)),
            ("revoked", lambda: desk.revoke(asset_id)),
            ("approved", lambda: desk.clear(asset_id, level)),
            ("url_mode_changed", lambda: desk.set_url_mode(asset_id, mode)),
        ]
        name, act = self.random.choice(acts)
        if (await act()).changed:
            self.done.append(name)

    async def check(self) -> None:
        """Hold what was done against the asset's history."""
        told = [TOLD[event] for event in await self.desk.history(self.asset_id) if event in TOLD]
        assert sorted(told) == sorted(name for name in self.done if name in TOLD)

    async def _remove(self) -> None:
        if self.random.random() < 0.2:
            await self.desk.unpublish(self.asset_id)
            self.done.append("unpublished")
        else:
            ordinals = [version.version_ordinal for version in await self.desk.versions(self.asset_id)]
            await self.desk.delete(self.asset_id, self.random.choice(ordinals[-2:]))
            self.done.append("version_deleted")

    async def _operate(self) -> None:
        failed = [job for job in await self.desk.jobs(self.asset_id) if job.status is JobStatus.FAILED]
        if failed and self.random.random() < 0.5:
            await self.desk.retry(self.asset_id)
        else:
            await self.desk.reprocess(self.asset_id)
        self.done.append("submitted")

    async def _work(self) -> None:
        running = [job for job in await self.desk.jobs(self.asset_id) if job.status is JobStatus.RUNNING]
        if not running:
            return
        job_id = self.random.choice(running).job_id
        task = await self.desk.bench.task_of(job_id, "work")
        content = self.random.choice("ab") * 64
        await self.desk.bench.report(task, output={"content_hash": content, "external_blob_path": content})
        await self.desk.bench.steps.advance({job_id: Wake()})


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_happens_at_once_nobody_waits_for_ever_and_the_rows_fit_together(desk: Desk, seed: int) -> None:
    receipt = await desk.submit("V0")
    await desk.process(receipt)
    before = await desk.rows(DEADLOCKS)
    crowd = Crowd(desk, receipt.asset_id, seed)
    for _ in range(ROUNDS):
        await asyncio.gather(crowd.act(), crowd.act(), crowd.act())
        await desk.end_cancelled()
    assert await desk.rows(DEADLOCKS) == before
    await crowd.check()
    assert len(set(crowd.done)) >= 5, "the rounds reached too little"
    assert len(set(crowd.refused)) >= 3


async def test_twenty_mixed_deeds_at_once_leave_what_the_rules_allow_and_every_success_its_event(desk: Desk) -> None:
    receipt = await desk.submit("V0")
    await desk.process(receipt)
    crowd = Crowd(desk, receipt.asset_id, seed=11)
    await asyncio.gather(*(crowd.act() for _ in range(20)))
    await desk.end_cancelled()
    await crowd.check()
    assert crowd.done
