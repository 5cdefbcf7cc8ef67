"""What a new revision, a decision and a removal mean for what is in service: rule by rule."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase
from tests.integration.services.desk import RITA, Desk, code_of, cog
from tests.integration.services.engine import Shelf
from tests.integration.services.items import put_item

from graticule.core.errors import NotFound, Refused, Unavailable
from graticule.core.models.engine import DefinitionSource, JobPurpose
from graticule.core.models.platform import AssetVersion
from graticule.core.states import ApprovalState, ClearanceState, JobStatus, ProcessingState
from graticule.services.publishing import PublishingJobs
from graticule.services.reviewed_files import ReviewedFiles
from graticule.services.reviews import ReviewService
from graticule.storage.local import LocalStorage
from graticule.storage.protocol import BlobInfo

NEVER = datetime.max.replace(tzinfo=UTC)
PENDING, APPROVED, REJECTED = ApprovalState.PENDING_REVIEW, ApprovalState.APPROVED, ApprovalState.REJECTED


def approval(version: AssetVersion) -> tuple[ApprovalState, int | None]:
    return version.approval_state, version.approved_revision


async def in_service(desk: Desk, asset_id: str, ordinal: int = 0) -> str | None:
    """Give the blob of the revision in service, as whoever serves it finds it."""
    version = await desk.version(asset_id, ordinal)
    if version.approved_revision in {None, version.revision}:
        return version.blob_path if version.approved_revision else None
    revisions = await desk.revisions(asset_id, ordinal)
    return str(next(each.outputs["blob_path"] for each in revisions if each.revision == version.approved_revision))


# Overwrite


async def test_an_overwrite_keeps_what_is_in_service_until_the_new_revision_is_approved(desk: Desk) -> None:
    asset_id = await desk.approved()
    again = await desk.submit(overwrite=True, file_name="ddh/dem/better.tif")
    assert (again.version_ordinal, again.revision) == (0, 2)
    version = await desk.version(asset_id)
    assert approval(version) == (PENDING, 1)
    assert (version.reviewer, version.reviewed_at) == (None, None)
    assert version.blob_path == cog(0, 1), "the outputs become current when processing completes"
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal == 0
    await desk.process(again, "b")
    assert (await desk.version(asset_id)).blob_path == cog(0, 2)
    assert await in_service(desk, asset_id) == cog(0, 1)
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal == 0
    await desk.approve(asset_id)
    assert approval(await desk.version(asset_id)) == (APPROVED, 2)
    assert await in_service(desk, asset_id) == cog(0, 2)


async def test_an_overwrite_awaits_a_decision_although_the_content_is_the_same(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.process(await desk.submit(overwrite=True), "a")
    assert approval(await desk.version(asset_id)) == (PENDING, 1)
    assert await in_service(desk, asset_id) == cog(0, 1)


async def test_a_superseded_revision_is_logged_as_it_was(desk: Desk) -> None:
    asset_id = await desk.exported()
    before = await desk.version(asset_id)
    await desk.submit(overwrite=True)
    (logged,) = await desk.revisions(asset_id)
    assert (logged.revision, logged.job_id, logged.content_hash) == (1, before.current_job_id, "a" * 64)
    assert (logged.approval_state, logged.clearance_state, logged.reviewer) == (APPROVED, ClearanceState.PUBLIC, "rita")
    assert logged.outputs == {
        "blob_path": cog(0, 1),
        "stac_item_id": before.stac_item_id,
        "external_blob_path": "V1",
        "export_run_id": before.export_run_id,
    }


async def test_the_paths_of_a_new_revision_stand_beside_those_of_the_old(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first)
    second = await desk.submit(overwrite=True)
    jobs = await desk.jobs(first.asset_id)
    prefixes = [job.input_params["blob_prefix"] for job in jobs]
    assert prefixes == [f"ddh/0038272_dem/{first.asset_id[:8]}/v0/r{number}" for number in (1, 2)]
    assert [job.job_id for job in jobs] == [first.job_id, second.job_id]


async def test_a_rejected_revision_leaves_the_earlier_one_in_service(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.process(await desk.submit(overwrite=True), "b")
    await desk.reject(asset_id)
    version = await desk.version(asset_id)
    assert approval(version) == (REJECTED, 1)
    assert version.rejection_reason == "clouds"
    assert await in_service(desk, asset_id) == cog(0, 1)
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal == 0
    await desk.process(await desk.submit(overwrite=True), "c")
    version = await desk.version(asset_id)
    assert (*approval(version), version.rejection_reason) == (PENDING, 1, None)
    await desk.approve(asset_id)
    assert await in_service(desk, asset_id) == cog(0, 3)


async def test_a_revision_that_failed_leaves_the_earlier_one_in_service_and_has_no_outputs_in_the_log(
    desk: Desk,
) -> None:
    asset_id = await desk.approved()
    await desk.fail((await desk.submit(overwrite=True)).job_id)
    assert await in_service(desk, asset_id) == cog(0, 1)
    with pytest.raises(Refused) as refused:
        await desk.approve(asset_id)
    assert code_of(refused.value) == "not_processed"
    await desk.process(await desk.submit(overwrite=True), "c")
    first, second = await desk.revisions(asset_id)
    assert (first.outputs["blob_path"], second.outputs) == (cog(0, 1), {})
    assert second.content_hash is None
    assert await in_service(desk, asset_id) == cog(0, 1)


async def test_outputs_become_current_all_together(desk: Desk) -> None:
    """What the new revision does not have, the old one leaves nothing of."""
    receipt = await desk.submit()
    made = {"table_name": (await desk.names(receipt))["table_name"], "bbox": [5.9, 45.8, 10.5, 47.8]}
    await desk.process(receipt, **made, output_hash="f" * 64)
    assert (await desk.version(receipt.asset_id)).bbox == [5.9, 45.8, 10.5, 47.8]
    await desk.process(await desk.submit(overwrite=True), "b")
    version = await desk.version(receipt.asset_id)
    assert (version.table_name, version.output_hash, version.bbox) == (None, None, None)
    assert version.content_hash == "b" * 64


async def test_a_table_that_is_gone_is_not_approved(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt, table_name=(await desk.names(receipt))["table_name"])
    with pytest.raises(Refused, match="it is not there") as refused:
        await desk.approve(receipt.asset_id)
    assert code_of(refused.value) == "outputs_changed"
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, None)


async def test_a_file_that_is_gone_is_not_approved(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    await desk.bench.storage.delete(cog(0, 1))
    before = await desk.asset(receipt.asset_id)
    with pytest.raises(Refused, match="is missing") as refused:
        await desk.approve(receipt.asset_id)
    assert code_of(refused.value) == "outputs_changed"
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, None)
    assert await desk.asset(receipt.asset_id) == before


async def test_a_version_whose_item_is_gone_is_not_approved(desk: Desk, database: TestDatabase) -> None:
    receipt = await desk.submit()
    names = await desk.names(receipt)
    await desk.process(receipt, stac_collection_id=names["stac_collection_id"])
    with pytest.raises(Refused, match=f"its item '{names['stac_item_id']}' is missing from the catalog") as refused:
        await desk.approve(receipt.asset_id)
    assert code_of(refused.value) == "outputs_changed"
    put_item(database, names["stac_collection_id"], names["stac_item_id"])
    await desk.approve(receipt.asset_id)


async def test_item_that_was_changed_is_not_approved(desk: Desk, database: TestDatabase) -> None:
    receipt = await desk.submit()
    names = await desk.names(receipt)
    collection_id, item_id = names["stac_collection_id"], names["stac_item_id"]
    put_item(database, collection_id, item_id)
    await desk.process(receipt, stac_collection_id=collection_id)
    with psycopg.connect(database.url()) as admin:
        change = "UPDATE pgstac.items SET content = content || %s WHERE id = %s"
        admin.execute(change, (Jsonb({"more": 1}), item_id))
    with pytest.raises(Refused, match=f"its item '{item_id}' was changed in the catalog") as refused:
        await desk.approve(receipt.asset_id)
    assert code_of(refused.value) == "outputs_changed"
    with psycopg.connect(database.url()) as admin:
        admin.execute("UPDATE pgstac.items SET content = content - 'more' WHERE id = %s", (item_id,))
    await desk.approve(receipt.asset_id)


async def test_each_revision_keeps_the_hash_of_its_item(desk: Desk, database: TestDatabase) -> None:
    """The hash is the same after the item has taken the id of its version."""

    def hash_of_item(version: AssetVersion) -> str:
        with psycopg.connect(database.url()) as admin:
            names = (version.stac_collection_id, version.stac_item_id)
            (found,) = admin.execute("SELECT dagapp.hash_item(%s, %s)", names).fetchone() or ("",)
            return str(found)

    first = await desk.submit()
    names = await desk.names(first)
    put_item(database, names["stac_collection_id"], names["stac_item_id"])
    await desk.process(first, stac_collection_id=names["stac_collection_id"])
    await desk.approve(first.asset_id)
    old = await desk.version(first.asset_id)
    assert old.item_hash == hash_of_item(old)
    second = await desk.submit(overwrite=True)
    names = await desk.names(second)
    put_item(database, names["stac_collection_id"], names["stac_item_id"])
    await desk.process(second, "b", stac_collection_id=names["stac_collection_id"])
    waiting = await desk.version(first.asset_id)
    assert waiting.item_hash == hash_of_item(waiting) != old.item_hash
    (logged,) = await desk.revisions(first.asset_id)
    assert logged.outputs["item_hash"] == old.item_hash == hash_of_item(old)
    await desk.approve(first.asset_id)
    served = await desk.version(first.asset_id)
    assert (served.stac_item_id, served.item_hash) == (old.stac_item_id, waiting.item_hash)
    assert served.item_hash == hash_of_item(served)


class SlowStorage(LocalStorage):
    """A storage that does not answer."""

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        await asyncio.Event().wait()
        yield BlobInfo(prefix, 0, "", NEVER)


async def test_nothing_is_decided_while_the_storage_does_not_answer(desk: Desk, tmp_path: Path) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    publishing = PublishingJobs(desk.bench.jobs, Shelf())  # type: ignore[arg-type]
    files = ReviewedFiles(desk.pool, SlowStorage(tmp_path), seconds=0.1)
    reviews, desk.reviews = desk.reviews, ReviewService(desk.pool, publishing, files)
    with pytest.raises(Unavailable, match="Nothing was decided"):
        await desk.approve(receipt.asset_id)
    desk.reviews = reviews
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, None)
    await desk.approve(receipt.asset_id)


async def test_an_approval_counts_only_for_the_files_that_were_looked_at(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    find_fault = desk.reviews._files.find_fault

    async def find_and_reprocess(*args: Any) -> str | None:
        found = await find_fault(*args)
        await desk.process(await desk.reprocess(receipt.asset_id), "b")
        return found

    desk.reviews._files.find_fault = find_and_reprocess  # type: ignore[method-assign,assignment]
    with pytest.raises(Refused) as refused:
        await desk.approve(receipt.asset_id)
    assert code_of(refused.value) == "stale_version"
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, None)


# Reprocess


async def test_a_reprocessing_keeps_the_approval_when_the_content_is_the_same(desk: Desk) -> None:
    asset_id = await desk.approved()
    again = await desk.reprocess(asset_id)
    assert again.revision == 2
    assert approval(await desk.version(asset_id)) == (APPROVED, 1)
    assert await in_service(desk, asset_id) == cog(0, 1)
    await desk.process(again, "a")
    version = await desk.version(asset_id)
    assert (*approval(version), version.reviewer) == (APPROVED, 2, "rita")
    assert await in_service(desk, asset_id) == cog(0, 2)


async def test_a_reprocessing_voids_the_approval_when_the_content_is_another(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.process(await desk.reprocess(asset_id), "b")
    version = await desk.version(asset_id)
    assert (*approval(version), version.reviewer, version.reviewed_at) == (PENDING, 1, None, None)
    assert await in_service(desk, asset_id) == cog(0, 1)
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal == 0


@pytest.mark.parametrize("source", DefinitionSource)
async def test_a_reprocessing_by_a_workflow_of_a_folder_voids_the_approval(
    desk: Desk, source: DefinitionSource
) -> None:
    """It says itself what the content hash of its source is, and may have read another file."""
    asset_id = await desk.approved()
    again = await desk.reprocess(asset_id)
    await desk.announce(source)
    await desk.process(again, "a")
    is_kept = source is not DefinitionSource.FOLDER
    assert approval(await desk.version(asset_id)) == ((APPROVED, 2) if is_kept else (PENDING, 1))
    assert await in_service(desk, asset_id) == cog(0, 2 if is_kept else 1)


async def test_a_reprocessing_of_the_same_source_repeats_what_was_asked(desk: Desk) -> None:
    first = await desk.submit(priority=7, callback_url="https://example.org/told")
    await desk.process(first)
    again = await desk.reprocess(first.asset_id)
    asked, before = [(await desk.request(each.request_id)).request_body for each in (again, first)]
    assert asked == {**before, "reprocess": "a better program"}
    assert again.request_id != first.request_id
    job = await desk.bench.job(again.job_id)  # type: ignore[arg-type]
    assert (job.priority, job.callback_url) == (7, "https://example.org/told")
    assert (await desk.version(first.asset_id)).priority == 7


# A content hash that nobody told cannot be unchanged.
async def test_a_reprocessing_without_a_content_hash_does_not_keep_the_approval(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.bench.storage.put(cog(0, 1), b"a")
    await desk.finish(receipt.job_id, {"blob_path": cog(0, 1)})
    await desk.approve(receipt.asset_id)
    await desk.finish((await desk.reprocess(receipt.asset_id)).job_id, {"blob_path": cog(0, 2)})
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table_name", "roads_v1_8c1f7fde_v0"),
        ("stac_item_id", "roads-v1-8c1f7fde-v0"),
        ("stac_collection_id", "pb-roads-8c1f7fde"),
        ("blob_path", "silver/pb/roads/8c1f7fde/v0/r1/cog.tif"),
        ("blob_path", cog(0, 1)),
        ("blob_path", cog(0, 2).replace("/r2/", "/r2/../r1/")),
        ("blob_path", cog(0, 2).replace("/r2/", "/r21/")),
    ],
)
async def test_a_result_cannot_put_what_another_job_made_into_service(desk: Desk, field: str, value: str) -> None:
    """The approval would last through it: the content hash is the worker's word, too."""
    asset_id = await desk.approved()
    await desk.process(await desk.reprocess(asset_id), **{field: value})
    version = await desk.version(asset_id)
    assert (version.processing_state, version.approved_revision) == ("failed", 1)
    assert version.last_error is not None
    assert f"{field}: '{value}' is not an output of this version" in version.last_error
    assert await in_service(desk, asset_id) == cog(0, 1)


# A rejection is of one content; another one has not been looked at.
async def test_a_reprocessing_of_a_rejected_version_to_another_content_awaits_a_decision(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt, "a")
    await desk.reject(receipt.asset_id)
    await desk.process(await desk.reprocess(receipt.asset_id), "a")
    assert approval(await desk.version(receipt.asset_id)) == (REJECTED, None)
    await desk.process(await desk.reprocess(receipt.asset_id), "b")
    assert approval(await desk.version(receipt.asset_id)) == (PENDING, None)


async def test_a_reprocessing_that_failed_does_not_let_two_versions_be_unresolved(desk: Desk) -> None:
    """The approval of a version whose reprocessing failed may be void after a retry, so nothing may come beside it."""
    asset_id = await desk.approved()
    again = await desk.reprocess(asset_id)
    await desk.fail(again.job_id)
    with pytest.raises(Refused) as refused:
        await desk.submit("V2")
    assert code_of(refused.value) == "version_unresolved"
    assert again.job_id is not None
    await desk.bench.jobs.resume(again.job_id)
    await desk.process(again, "b")
    assert approval(await desk.version(asset_id)) == (PENDING, 1)


async def test_a_version_whose_reprocessing_failed_is_not_retried_beside_an_unresolved_one(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2", content="b")
    await desk.revoke(asset_id, 1)
    await desk.fail((await desk.reprocess(asset_id, 0)).job_id)
    try:
        await desk.submit("V2", overwrite=True)
    except Refused as refused:
        code = refused.code
    else:
        with pytest.raises(Refused) as refusal:
            await desk.retry(asset_id, 0)
        code = refusal.value.code
    assert code == "version_unresolved", "only one of the two can be under way"


# What was revoked awaits a decision again when another content comes of it.
@pytest.mark.parametrize("end", ["completes", "is resumed"])
async def test_a_revoked_version_that_is_reprocessed_does_not_spoil_the_version_beside_it(desk: Desk, end: str) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2", content="b")
    await desk.revoke(asset_id, 0)
    again = await desk.reprocess(asset_id, 0)
    assert again.job_id is not None
    if end == "is resumed":
        await desk.fail(again.job_id)
    with contextlib.suppress(Refused):
        await desk.submit("V2", overwrite=True)
    if end == "is resumed":
        await desk.bench.jobs.resume(again.job_id)
    await desk.process(again, "c")
    assert (await desk.version(asset_id, 0)).processing_state is ProcessingState.COMPLETED


# Decisions


async def test_approving_an_older_version_does_not_lower_the_latest(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2", content="b")
    await desk.process(await desk.submit("V1", overwrite=True), "c")
    changed = await desk.approve(asset_id, "ouo", 0)
    assert changed.asset.latest_approved_version_ordinal == 1
    assert approval(await desk.version(asset_id, 0)) == (APPROVED, 2)


async def test_older_versions_are_untouched_by_an_approval(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    before = await desk.version(asset_id, 0)
    await desk.approved("V2", content="b")
    assert await desk.version(asset_id, 0) == before
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal == 1


async def test_a_revoked_version_leaves_the_service_and_the_latest_falls_back(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2", content="b")
    await desk.approved("V3", content="c")
    await desk.delete(asset_id, 1)
    changed = await desk.revoke(asset_id, 2)
    assert changed.asset.latest_approved_version_ordinal == 0
    version = await desk.version(asset_id, 2)
    assert approval(version) == (REJECTED, None)
    assert (version.rejection_reason, version.reviewer) == ("wrong place", "rita")
    assert version.revoked_at is not None
    assert (await desk.revoke(asset_id, 0)).asset.latest_approved_version_ordinal is None


async def test_what_was_revoked_is_unresolved_until_it_is_overwritten_or_deleted(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.revoke(asset_id)
    with pytest.raises(Refused) as refused:
        await desk.submit("V2")
    assert code_of(refused.value) == "version_unresolved"
    assert "Version 0 is unresolved. Approve, delete, or resubmit" in refused.value.message
    await desk.process(await desk.submit("V1", overwrite=True), "b")
    version = await desk.version(asset_id)
    assert (*approval(version), version.revoked_at) == (PENDING, None, None)
    await desk.approve(asset_id)
    await desk.approved("V2", content="c")
    await desk.revoke(asset_id, 1)
    await desk.delete(asset_id, 1)
    assert (await desk.submit("V3")).version_ordinal == 2


async def test_a_version_can_be_revoked_while_another_one_awaits_its_decision(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    second = await desk.submit("V2")
    await desk.revoke(asset_id, 0)
    await desk.process(second, "b")
    with pytest.raises(Refused) as refused:
        await desk.submit("V1", overwrite=True)
    assert code_of(refused.value) == "version_unresolved"
    await desk.process(await desk.submit("V2", overwrite=True), "c")
    assert (await desk.approve(asset_id)).asset.latest_approved_version_ordinal == 1


async def test_a_version_that_is_revoked_while_it_is_reprocessed_stays_out_of_service(desk: Desk) -> None:
    asset_id = await desk.approved()
    again = await desk.reprocess(asset_id)
    await desk.revoke(asset_id)
    await desk.process(again, "a")
    version = await desk.version(asset_id)
    assert approval(version) == (REJECTED, None)
    assert version.processing_state is ProcessingState.COMPLETED
    assert (await desk.asset(asset_id)).latest_approved_version_ordinal is None


async def test_approving_what_is_approved_changes_only_the_clearance(desk: Desk) -> None:
    asset_id = await desk.approved()
    version = await desk.version(asset_id)
    changed = await desk.approve(asset_id, "public", 0)
    assert changed.asset.clearance_state is ClearanceState.PUBLIC
    assert (await desk.version(asset_id)).model_dump(exclude={"job_count", "updated_at"}) == version.model_dump(
        exclude={"job_count", "updated_at"}
    )
    again = await desk.approve(asset_id, "public", 0)
    assert (again.changed, again.job_id) == (False, None)
    assert (await desk.history(asset_id))[-2:] == ["approved", "clearance_changed"]


async def test_the_first_clearance_and_publication_are_kept_and_the_last_change_stands_beside_them(desk: Desk) -> None:
    asset_id = await desk.approved(level="ouo")
    cleared = await desk.asset(asset_id)
    assert (cleared.made_public_at, cleared.clearance_changed_at) == (None, cleared.cleared_at)
    desk.caller = replace(RITA, name="paul")
    await desk.clear(asset_id, "public")
    public = await desk.asset(asset_id)
    assert (public.made_public_by, public.clearance_changed_at) == ("paul", public.made_public_at)
    desk.caller = RITA
    await desk.clear(asset_id, "ouo")
    lowered = await desk.asset(asset_id)
    await desk.clear(asset_id, "public")
    again = await desk.asset(asset_id)
    for asset in (lowered, again):
        assert (asset.cleared_at, asset.cleared_by) == (cleared.cleared_at, "rita")
        assert (asset.made_public_at, asset.made_public_by) == (public.made_public_at, "paul")
        assert asset.clearance_changed_by == "rita"
    times = [each.clearance_changed_at or NEVER for each in (cleared, public, lowered, again)]
    assert times == sorted({*times})


async def test_an_older_release_cannot_overwrite_the_first_times(desk: Desk) -> None:
    asset_id = await desk.approved(level="public")
    before = await desk.asset(asset_id)
    await desk.execute(
        "UPDATE dagapp.geospatial_assets SET clearance_state = 'ouo', cleared_at = now(), cleared_by = 'olga',"
        " made_public_at = NULL, made_public_by = NULL, updated_at = now() WHERE asset_id = %s",
        asset_id,
    )
    after = await desk.asset(asset_id)
    kept = {"cleared_at", "cleared_by", "made_public_at", "made_public_by"}
    assert after.model_dump(include=kept) == before.model_dump(include=kept)
    assert (after.clearance_changed_by, after.clearance_changed_at) == ("olga", after.updated_at)


async def test_an_older_release_cannot_count_an_export_as_an_attempt(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.execute("UPDATE dagapp.asset_versions SET job_count = job_count + 1 WHERE asset_id = %s", asset_id)
    assert (await desk.version(asset_id)).job_count == 1


async def test_who_names_no_version_means_the_one_that_the_deed_suits(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    second = await desk.submit("V2")
    assert (await desk.revoke(asset_id)).version.version_ordinal == 0  # type: ignore[union-attr]
    await desk.process(second, "b")
    assert (await desk.approve(asset_id)).version.version_ordinal == 1  # type: ignore[union-attr]


# Removal and revival


async def test_an_unpublished_asset_keeps_its_rows_and_a_submission_revives_it(desk: Desk) -> None:
    asset_id = await desk.approved("V1", "public")
    await desk.approved("V2", "public", content="b")
    removed = await desk.unpublish(asset_id, reason="a mistake")
    assert (removed.asset.deleted_by, removed.asset.latest_approved_version_ordinal) == ("rita", None)
    assert [version.deleted_by for version in await desk.versions(asset_id)] == ["rita", "rita"]
    revived = await desk.submit("V1")
    assert (revived.asset_id, revived.version_ordinal, revived.revision) == (asset_id, 2, 1)
    asset = await desk.asset(asset_id)
    assert (asset.clearance_state, asset.deleted_at, asset.deleted_by) == (ClearanceState.UNCLEARED, None, None)
    assert asset.latest_approved_version_ordinal is None
    first = {"cleared_at", "cleared_by", "made_public_at", "made_public_by"}
    assert asset.model_dump(include=first) == removed.asset.model_dump(include=first)
    assert [version.version_label for version in await desk.versions(asset_id)] == ["V1", "V2", "V1"]
    await desk.process(revived, "c")
    assert (await desk.approve(asset_id)).asset.latest_approved_version_ordinal == 2
    await desk.end_cancelled()


async def test_ordinals_are_never_used_again(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.delete(asset_id, 0)
    second = await desk.submit("V1")
    assert second.version_ordinal == 1
    await desk.delete(asset_id, 1)
    await desk.unpublish(asset_id)
    assert (await desk.submit("V1")).version_ordinal == 2
    await desk.end_cancelled()


async def test_a_version_that_is_deleted_while_it_is_processed_has_its_job_cancelled(desk: Desk) -> None:
    receipt = await desk.submit("V1", callback_url="https://example.org/told")
    await desk.delete(receipt.asset_id, 0)
    following = await desk.submit("V1")
    await desk.end_cancelled()
    job = await desk.bench.job(receipt.job_id)  # type: ignore[arg-type]
    assert (job.status, job.cancel_requested_by) == (JobStatus.CANCELLED, "rita")
    version = await desk.version(receipt.asset_id, 0)
    assert (version.processing_state, version.last_error) == (ProcessingState.FAILED, "Processing was cancelled.")
    assert (await desk.request(receipt.request_id)).status == "failed"
    assert await desk.callbacks() == [
        {"request_id": str(receipt.request_id), "platform_id": "ddh", "status": "failed"},
    ]
    await desk.process(following)


async def test_what_is_unpublished_while_it_is_processed_ends_and_only_then_is_withdrawn_by_one_job(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    second = await desk.submit("V2")
    removed = await desk.unpublish(asset_id)
    await desk.end_cancelled()
    assert (await desk.bench.job(second.job_id)).status is JobStatus.CANCELLED  # type: ignore[arg-type]
    (job,) = await desk.jobs(asset_id, JobPurpose.UNPUBLISH)
    assert removed.job_id == job.job_id
    told: Any = job.input_params["versions"]
    assert [(each["version_ordinal"], each["external_blob_path"]) for each in told] == [(0, "V1"), (1, None)]
    revived = await desk.submit("V1")
    await desk.process(revived, "b")
    await desk.approve(asset_id, "public")
    (export,) = [job for job in await desk.jobs(asset_id, JobPurpose.EXPORT) if job.version_ordinal == 2]
    await desk.finish(export.job_id, {"external_blob_path": "new"})
    await desk.finish(job.job_id)
    assert [each.external_blob_path for each in await desk.versions(asset_id)] == [None, None, "new"]
    assert (await desk.history(asset_id))[-1] == "unpublish_completed"


@pytest.mark.parametrize("deed", ["approve", "reject", "revoke", "retry", "reprocess", "delete"])
async def test_a_version_or_an_asset_that_is_not_there_is_not_found(desk: Desk, deed: str) -> None:
    receipt = await desk.submit()
    act = getattr(desk, deed)
    more = {} if deed == "delete" else {"ordinal": 7}
    given = [7] if deed == "delete" else []
    with pytest.raises(NotFound, match="has no version 7"):
        await act(receipt.asset_id, *given, **more)
    with pytest.raises(NotFound, match="There is no asset"):
        await act("0" * 32, *given, **more)
