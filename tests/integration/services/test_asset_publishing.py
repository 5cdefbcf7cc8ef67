"""Copies for the public: which jobs a decision starts, with which outputs, and what their ends mean."""

import asyncio
from typing import Any

import pytest
from tests.conftest import TestDatabase
from tests.integration.services.desk import REFS, Desk, cog
from tests.integration.services.items import put_item

from graticule.config import Settings
from graticule.core.errors import Refused
from graticule.core.ids import AssetId, JobId
from graticule.core.models import Job
from graticule.core.models.engine import JobPurpose
from graticule.core.states import ClearanceState, JobStatus
from graticule.orchestrator.renewals import Renewals
from graticule.services.publishing import CopyRenewal

EXPORT, REVERSAL, UNPUBLISH = JobPurpose.EXPORT, JobPurpose.REVERSAL, JobPurpose.UNPUBLISH
OUTSIDE = (EXPORT, REVERSAL, UNPUBLISH)


async def outside(desk: Desk, asset_id: str) -> list[tuple[JobPurpose | None, int | None, JobStatus]]:
    """Give the jobs that make or remove copies: what for, of which version, and how they stand."""
    return [(job.purpose, job.version_ordinal, job.status) for job in await desk.jobs(asset_id, *OUTSIDE)]


async def last(desk: Desk, asset_id: str, purpose: JobPurpose) -> Job:
    return (await desk.jobs(asset_id, purpose))[-1]


async def copies(desk: Desk, asset_id: str) -> list[str | None]:
    return [version.external_blob_path for version in await desk.versions(asset_id)]


def told(job: Job, *names: str) -> tuple[Any, ...]:
    return tuple(job.input_params.get(name) for name in names)


async def test_public_starts_an_export_of_the_approved_outputs_and_its_result_is_kept(
    desk: Desk, database: TestDatabase
) -> None:
    receipt = await desk.submit()
    names = await desk.names(receipt)
    await desk.process(receipt, stac_collection_id=names["stac_collection_id"])
    put_item(database, names["stac_collection_id"], names["stac_item_id"])
    changed = await desk.approve(receipt.asset_id, "public")
    (job,) = await desk.jobs(receipt.asset_id, *OUTSIDE)
    assert (changed.job_id, job.workflow_id, job.purpose) == (job.job_id, "adf_export", EXPORT)
    assert told(job, "asset_id", "version_ordinal", "revision", "data_type") == (receipt.asset_id, 0, 1, "raster")
    assert told(job, "blob_path") == (cog(0, 1),)
    catalogued = ("stac_item_id", "stac_collection_id")
    assert told(job, *catalogued) == tuple(names[each] for each in catalogued)
    version = await desk.version(receipt.asset_id)
    assert (version.external_blob_path, version.export_run_id, version.job_count) == (None, None, 1)
    assert version.current_job_id == receipt.job_id, "an export is no processing"
    await desk.finish(job.job_id, {"external_blob_path": "public/cog.tif", "export_run_id": "run-7"})
    version = await desk.version(receipt.asset_id)
    assert (version.external_blob_path, version.export_run_id) == ("public/cog.tif", "run-7")
    assert (await desk.history(receipt.asset_id))[-2:] == ["approved", "export_completed"]


async def test_ouo_starts_nothing(desk: Desk) -> None:
    asset_id = await desk.approved(level="ouo")
    assert await outside(desk, asset_id) == []


@pytest.mark.parametrize("by", ["approve", "clearance"])
async def test_an_upgrade_exports_what_is_in_service_while_a_newer_revision_awaits_its_decision(
    desk: Desk, by: str
) -> None:
    asset_id = await desk.approved()
    if by == "clearance":
        await desk.process(await desk.submit(overwrite=True), "b")
        await desk.clear(asset_id, "public")
    else:
        await desk.reprocess(asset_id)
        await desk.approve(asset_id, "public", 0)
    job = await last(desk, asset_id, EXPORT)
    assert told(job, "revision", "blob_path") == (1, cog(0, 1))


async def test_the_next_version_of_a_public_asset_is_exported_and_the_one_before_is_left(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.approved("V2", "public", content="b")
    assert (await outside(desk, asset_id))[1:] == [(EXPORT, 1, JobStatus.RUNNING)]
    assert await copies(desk, asset_id) == ["V1", None]


async def test_a_downgrade_warns_and_removes_the_copies_of_every_version_that_has_some(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.exported("V2", content="b")
    changed = await desk.clear(asset_id, "ouo")
    assert changed.warning is not None
    assert "public" in changed.warning
    reversals = await desk.jobs(asset_id, REVERSAL)
    assert [told(job, "version_ordinal", "external_blob_path") for job in reversals] == [(0, "V1"), (1, "V2")]
    assert {job.workflow_id for job in reversals} == {"adf_reversal"}
    assert await copies(desk, asset_id) == ["V1", "V2"], "they are there until they are removed"
    for job in reversals:
        await desk.finish(job.job_id)
    assert await copies(desk, asset_id) == [None, None]
    assert [version.export_run_id for version in await desk.versions(asset_id)] == [None, None]
    assert (await desk.history(asset_id))[-3:] == ["clearance_changed", "reversal_completed", "reversal_completed"]


async def test_an_approval_for_ouo_takes_a_public_asset_back_and_warns(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    second = await desk.submit("V2")
    await desk.process(second, "b")
    changed = await desk.approve(asset_id, "ouo")
    assert changed.warning is not None
    assert changed.asset.clearance_state is ClearanceState.OUO
    assert (await outside(desk, asset_id))[1:] == [(REVERSAL, 0, JobStatus.RUNNING)]


async def test_an_upgrade_neither_warns_nor_does_what_changes_nothing(desk: Desk) -> None:
    asset_id = await desk.approved()
    upgraded = await desk.clear(asset_id, "public")
    again = await desk.clear(asset_id, "public")
    assert (upgraded.warning, upgraded.changed) == (None, True)
    assert (again.warning, again.changed, again.job_id) == (None, False, None)
    assert len(await outside(desk, asset_id)) == 1


async def test_a_downgrade_ends_an_export_that_is_under_way_and_removes_what_it_may_have_made(desk: Desk) -> None:
    asset_id = await desk.approved(level="public")
    export = await last(desk, asset_id, EXPORT)
    await desk.bench.report(await desk.bench.task_of(export.job_id, "work"), output={"external_blob_path": "late"})
    await desk.clear(asset_id, "ouo")
    await desk.end_cancelled()
    assert await outside(desk, asset_id) == [(EXPORT, 0, JobStatus.CANCELLED), (REVERSAL, 0, JobStatus.RUNNING)]
    assert await copies(desk, asset_id) == [None]
    await desk.finish((await last(desk, asset_id, REVERSAL)).job_id)
    assert "export_failed" in await desk.history(asset_id)


async def test_an_upgrade_ends_a_reversal_that_is_under_way_and_makes_the_copies_anew(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.clear(asset_id, "ouo")
    await desk.clear(asset_id, "public")
    await desk.end_cancelled()
    assert await outside(desk, asset_id) == [
        (EXPORT, 0, JobStatus.COMPLETED),
        (REVERSAL, 0, JobStatus.CANCELLED),
        (EXPORT, 0, JobStatus.RUNNING),
    ]


@pytest.mark.parametrize("how", ["fails", "completes"])
async def test_copies_are_removed_again_only_if_the_last_reversal_did_not(desk: Desk, how: str) -> None:
    asset_id = await desk.exported("V1")
    await desk.clear(asset_id, "ouo")
    reversal = await last(desk, asset_id, REVERSAL)
    await (desk.fail if how == "fails" else desk.finish)(reversal.job_id)
    await desk.revoke(asset_id, 0)
    found = [job.status for job in await desk.jobs(asset_id, REVERSAL)]
    assert found == ([JobStatus.FAILED, JobStatus.RUNNING] if how == "fails" else [JobStatus.COMPLETED])


@pytest.mark.parametrize("deed", ["revoke", "delete"])
async def test_an_exported_version_that_leaves_the_service_is_withdrawn_and_its_successor_exported(
    desk: Desk, deed: str
) -> None:
    asset_id = await desk.approved("V1", "ouo")
    await desk.exported("V2", content="b")
    changed = await getattr(desk, deed)(asset_id, 1)
    reversal = await last(desk, asset_id, REVERSAL)
    assert changed.job_id == reversal.job_id
    assert told(reversal, "version_ordinal", "external_blob_path") == (1, "V2")
    assert told(await last(desk, asset_id, EXPORT), "version_ordinal", "blob_path") == (0, cog(0, 1))
    assert changed.asset.clearance_state is ClearanceState.PUBLIC


@pytest.mark.parametrize("deed", ["revoke", "delete"])
async def test_a_version_without_copies_leaves_the_service_without_a_job(desk: Desk, deed: str) -> None:
    asset_id = await desk.approved("V1", "ouo")
    changed = await getattr(desk, deed)(asset_id, 0)
    assert changed.job_id is None
    assert await outside(desk, asset_id) == []


@pytest.mark.parametrize("deed", ["revoke", "delete"])
async def test_a_version_whose_export_is_under_way_leaves_the_service_and_the_export_ends(
    desk: Desk, deed: str
) -> None:
    asset_id = await desk.approved("V1", "public")
    await getattr(desk, deed)(asset_id, 0)
    await desk.end_cancelled()
    assert await outside(desk, asset_id) == [(EXPORT, 0, JobStatus.CANCELLED), (REVERSAL, 0, JobStatus.RUNNING)]


async def test_an_overwrite_leaves_the_public_copy_until_the_new_revision_is_approved(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.process(await desk.submit("V1", overwrite=True), "b")
    assert await copies(desk, asset_id) == ["V1"]
    assert len(await outside(desk, asset_id)) == 1
    await desk.approve(asset_id, "public")
    assert told(await last(desk, asset_id, EXPORT), "revision", "blob_path") == (2, cog(0, 2))
    assert await copies(desk, asset_id) == ["V1"]
    await desk.finish((await last(desk, asset_id, EXPORT)).job_id, {"external_blob_path": "V1 anew"})
    assert await copies(desk, asset_id) == ["V1 anew"]


async def test_a_failed_export_leaves_a_failure_that_is_told_of_and_the_approval_as_it_was(desk: Desk) -> None:
    asset_id = await desk.approved("V1", "public")
    before = await desk.version(asset_id)
    await desk.fail((await last(desk, asset_id, EXPORT)).job_id, "there is no such handler")
    assert await desk.version(asset_id) == before
    failed = (await desk.events(asset_id))[-1]
    assert failed.event_type == "asset_export_failed"
    assert "there is no such handler" in str(failed.data["error"])


# The engine must not have to give the job up: the error is to name the field.
async def test_an_export_whose_result_cannot_be_kept_fails_with_a_clear_error(desk: Desk) -> None:
    asset_id = await desk.approved("V1", "public")
    job_id = (await last(desk, asset_id, EXPORT)).job_id
    await desk.finish(job_id, {"external_blob_path": "x" * 2000})
    assert await copies(desk, asset_id) == [None]
    failed = (await desk.events(asset_id))[-1]
    assert failed.event_type == "asset_export_failed"
    assert "external_blob_path" in str(failed.data["error"])


async def test_a_decision_whose_workflow_is_missing_changes_nothing(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    before = await desk.snapshot()
    shelf: Any = desk.reviews._publishing._workflows
    del shelf.library.graphs["adf_export"]
    with pytest.raises(Exception, match="adf_export"):
        await desk.approve(receipt.asset_id, "public")
    assert await desk.snapshot() == before


async def test_jobs_of_a_version_are_of_its_own_even_with_the_inputs_of_an_earlier_one(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.clear(asset_id, "ouo")
    await desk.finish((await last(desk, asset_id, REVERSAL)).job_id)
    await desk.clear(asset_id, "public")
    first, second = await desk.jobs(asset_id, EXPORT)
    assert first.input_params == {**second.input_params}
    assert JobId(first.job_id) != second.job_id


async def report(desk: Desk, job_id: JobId | None, output: Any = None) -> None:
    assert job_id is not None
    await desk.bench.report(await desk.bench.task_of(job_id, "work"), output=output)


async def test_two_jobs_of_one_version_may_end_in_one_step(desk: Desk) -> None:
    asset_id = await desk.exported()
    revoked = await desk.revoke(asset_id)
    again = await desk.submit(overwrite=True, callback_url="https://example.org/told")
    await report(desk, revoked.job_id)
    await report(desk, again.job_id, {"content_hash": "b" * 64, "blob_path": cog(0, 2)})
    await desk.bench.look_around()
    version = await desk.version(asset_id)
    assert (version.processing_state, version.blob_path) == ("completed", cog(0, 2))
    assert (version.external_blob_path, version.export_run_id, version.exported_revision) == (None, None, None)
    assert (await desk.request(again.request_id)).status == "completed"
    assert [each["status"] for each in await desk.callbacks()] == ["completed"]


async def test_an_export_and_its_reversal_in_one_step_leave_nothing(desk: Desk) -> None:
    asset_id = await desk.approved(level="public")
    export = (await last(desk, asset_id, EXPORT)).job_id
    await report(desk, export, {"external_blob_path": "public/late.tif"})
    reversal = (await desk.clear(asset_id, "ouo")).job_id
    await report(desk, reversal)
    await desk.bench.look_around()
    assert await copies(desk, asset_id) == [None]


async def test_a_failed_export_does_not_go_on_when_its_version_is_public_no_more(desk: Desk) -> None:
    asset_id = await desk.approved(level="public")
    export = (await last(desk, asset_id, EXPORT)).job_id
    await desk.fail(export)
    await desk.clear(asset_id, "ouo")
    with pytest.raises(Refused, match="not public any more"):
        await desk.bench.jobs.resume(export)
    await desk.clear(asset_id, "public")
    with pytest.raises(Refused, match="a later job took its place"):
        await desk.bench.jobs.resume(export)


async def test_a_failed_unpublication_goes_on_with_its_versions_when_the_asset_was_revived(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    withdrawn = (await desk.unpublish(asset_id)).job_id
    assert withdrawn is not None
    await desk.fail(withdrawn)
    await desk.exported("V2", content="b")
    await desk.bench.jobs.resume(withdrawn)
    await desk.finish(withdrawn)
    assert await copies(desk, asset_id) == [None, "V2"]


@pytest.mark.parametrize("reversal_ends", ["late", "failed", "cancelled"])
async def test_a_withdrawn_revision_stays_withdrawn_when_the_next_one_is_approved(
    desk: Desk, reversal_ends: str
) -> None:
    asset_id = await desk.exported("V1")
    reversal = (await desk.clear(asset_id, "ouo")).job_id
    await ended(desk, reversal, reversal_ends)
    await desk.process(await desk.submit("V1", overwrite=True), "b")
    await desk.approve(asset_id, "public")
    version = await desk.version(asset_id)
    assert (version.exported_revision, version.external_blob_path) == (None, "V1"), "what is removed is known"
    export = await last(desk, asset_id, EXPORT)
    assert told(export, "revision", "exported_revision") == (2, None), "nothing is kept"
    await desk.finish(export.job_id, {"external_blob_path": "V1 anew"})
    assert (await desk.version(asset_id)).exported_revision == 2


@pytest.mark.parametrize("reversal_ends", ["late", "failed", "cancelled"])
@pytest.mark.parametrize("export_ends", ["completed", "late", "failed", "cancelled"])
async def test_what_is_public_again_is_exported_again_however_its_jobs_ended(
    desk: Desk, export_ends: str, reversal_ends: str
) -> None:
    asset_id = await desk.approved("V1", "public")
    await ended(desk, (await last(desk, asset_id, EXPORT)).job_id, export_ends)
    reversal = (await desk.clear(asset_id, "ouo")).job_id
    await ended(desk, reversal, reversal_ends)
    assert (await desk.version(asset_id)).exported_revision is None
    export = (await desk.clear(asset_id, "public")).job_id
    await desk.finish(export, {"external_blob_path": "V1"})
    await desk.end_cancelled()
    assert (await desk.version(asset_id)).exported_revision == 1
    assert (await outside(desk, asset_id))[-1] == (EXPORT, 0, JobStatus.COMPLETED)


async def ended(desk: Desk, job_id: JobId | None, how: str) -> None:
    assert job_id is not None
    if how == "completed":
        await desk.finish(job_id)
    elif how == "failed":
        await desk.fail(job_id)
    elif how == "cancelled":
        await desk.bench.jobs.cancel(job_id, "operator")
        await desk.end_cancelled()


async def test_an_export_is_told_which_copy_the_public_reads(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    assert told(await last(desk, asset_id, EXPORT), "exported_revision", "external_blob_path") == (None, None)
    await desk.process(await desk.submit("V1", overwrite=True), "b")
    await desk.process(await desk.submit("V1", overwrite=True), "c")
    await desk.approve(asset_id, "public")
    export = await last(desk, asset_id, EXPORT)
    assert told(export, "revision", "exported_revision", "external_blob_path") == (3, 1, "V1")


async def test_what_removes_copies_is_told_of_those_of_earlier_revisions(desk: Desk) -> None:
    asset_id = await desk.exported()
    (first,) = await copies(desk, asset_id)
    await desk.process(await desk.submit(overwrite=True), "b")
    await desk.approve(asset_id, "public")
    second = await last(desk, asset_id, EXPORT)
    assert [each["external_blob_path"] for each in second.input_params["copies"]] == [first]  # type: ignore[union-attr,index,call-overload]
    await desk.finish(second.job_id, {"external_blob_path": "public/second.tif", "export_run_id": "second"})
    await desk.clear(asset_id, "ouo")
    reversal = await last(desk, asset_id, REVERSAL)
    told_of = [each["external_blob_path"] for each in reversal.input_params["copies"]]  # type: ignore[union-attr,index,call-overload]
    assert told_of == [first, "public/second.tif"]


async def test_a_public_version_that_was_processed_again_is_exported_when_it_is_cleared_again(desk: Desk) -> None:
    asset_id = await desk.exported()
    assert not (await desk.clear(asset_id, "public")).changed
    await desk.process(await desk.reprocess(asset_id))
    cleared = await desk.clear(asset_id, "public")
    assert cleared.changed
    assert told(await last(desk, asset_id, EXPORT), "revision") == (2,)
    assert not (await desk.clear(asset_id, "public")).changed, "it is under way"


async def test_with_all_versions_each_one_in_service_is_exported(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.approved("V2")
    await desk.clear(asset_id, "public")
    assert [job.version_ordinal for job in await desk.jobs(asset_id, EXPORT)] == [1]
    await desk.set_url_mode(asset_id, "all_versions")
    assert [job.version_ordinal for job in await desk.jobs(asset_id, EXPORT)] == [1, 0]


async def test_the_version_that_is_named_is_exported(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.approved("V2")
    await desk.approve(asset_id, "public", 0)
    assert sorted(job.version_ordinal or 0 for job in await desk.jobs(asset_id, EXPORT)) == [0, 1]


async def renewed(desk: Desk) -> list[JobId]:
    """Let an orchestrator look for outdated copies, and give the exports that it starts."""
    return [job_id for asset_id in await desk.renewal.assets() for job_id in await desk.renewal.renew(asset_id)]


async def test_the_copies_follow_a_revision_that_keeps_its_approval(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    again = await desk.reprocess(asset_id)
    assert await renewed(desk) == [], "it is being made"
    await desk.process(again)
    (job_id,) = await renewed(desk)
    export = await last(desk, asset_id, EXPORT)
    assert (export.job_id, export.submitted_by) == (job_id, "orchestrator")
    assert told(export, "revision", "exported_revision", "blob_path") == (2, 1, cog(0, 2))
    assert await renewed(desk) == [], "it is under way"
    await desk.finish(job_id, {"external_blob_path": "V1 anew"})
    assert (await desk.version(asset_id)).exported_revision == 2
    assert await renewed(desk) == []


@pytest.mark.parametrize("how", ["failed", "cancelled"])
async def test_an_export_that_did_not_succeed_is_not_begun_again_by_itself(desk: Desk, how: str) -> None:
    asset_id = await desk.exported("V1")
    await desk.process(await desk.reprocess(asset_id))
    (job_id,) = await renewed(desk)
    await ended(desk, job_id, how)
    assert await renewed(desk) == []
    await desk.process(await desk.reprocess(asset_id))
    assert len(await renewed(desk)) == 1, "the next revision is another matter"


async def test_a_revision_that_awaits_its_approval_is_not_for_the_public(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.process(await desk.reprocess(asset_id), "b")
    assert (await desk.version(asset_id)).approval_state == "pending_review"
    assert await renewed(desk) == []


@pytest.mark.parametrize("deed", ["clear", "revoke", "delete", "unpublish"])
async def test_what_was_withdrawn_is_not_renewed(desk: Desk, deed: str) -> None:
    asset_id = await desk.exported("V1")
    await desk.process(await desk.reprocess(asset_id))
    assert await desk.renewal.assets() == [asset_id]
    given: dict[str, list[Any]] = {"clear": ["ouo"], "delete": [0]}
    await getattr(desk, deed)(asset_id, *given.get(deed, []))
    assert await desk.renewal.assets() == []
    await desk.execute("UPDATE dagapp.asset_versions SET exported_revision = 1")  # as an older release left it
    assert await desk.renewal.renew(AssetId(asset_id)) == [], "whoever saw it before looks again"


async def test_what_the_public_s_addresses_do_not_reach_is_renewed_when_they_do(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.exported("V2", content="b")
    await desk.process(await desk.reprocess(asset_id, 0))
    assert await renewed(desk) == []
    await desk.set_url_mode(asset_id, "all_versions")
    assert told(await last(desk, asset_id, EXPORT), "version_ordinal", "revision") == (0, 2)
    assert await renewed(desk) == [], "the decision has begun it"


async def test_of_many_who_renew_one_does(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.process(await desk.reprocess(asset_id))
    started = await asyncio.gather(*(desk.renewal.renew(AssetId(asset_id)) for _ in range(4)))
    assert sorted(len(each) for each in started) == [0, 0, 0, 1]


async def test_an_orchestrator_renews_copies_and_one_that_cannot_be_renewed_holds_up_no_other(desk: Desk) -> None:
    bad, good = [await desk.exported("V1", platform_refs=REFS | {"resource_id": each}) for each in ("bad", "good")]
    for asset_id in (bad, good):
        await desk.process(await desk.reprocess(asset_id))
    done, tried = asyncio.Event(), list[str]()

    class Breaking(CopyRenewal):
        async def renew(self, asset_id: AssetId) -> list[JobId]:
            tried.append(asset_id)
            if asset_id == bad:
                raise LookupError("it cannot be read")
            started = await super().renew(asset_id)
            done.set()
            return started

    settings = Settings(orchestrator_poll_interval=0.05)
    async with Renewals(Breaking(desk.pool, desk.reviews._publishing), settings).running(), asyncio.timeout(10):
        await done.wait()
        while tried.count(bad) < 2:  # noqa: ASYNC110 - it goes on by itself
            await asyncio.sleep(0.01)
    assert told(await last(desk, good, EXPORT), "revision") == (2,)
    assert len(await desk.jobs(bad, EXPORT)) == 1
