"""The status document of a request, through all that can become of the revision that it made."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import Refused
from graticule.core.exchange import PlatformStatus
from graticule.core.ids import PlatformId
from graticule.core.models.engine import JobPurpose
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.services.asset_reading import AssetReader
from graticule.services.platform_statistics import PlatformStatistics
from graticule.services.service_addresses import ServiceAddresses

PARTNER = Caller("portal", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
REVIEWER = Caller("rob", frozenset({ClientRole.REVIEWER}))
OPERATOR = Caller("olga", frozenset({ClientRole.OPERATOR}))
SERVE = ServiceAddresses("https://serve.example.org", "https://maps.example.org")
CRS = {"outcome": "ok", "findings": [], "facts": {"crs": "EPSG:32620"}}
OTHER_CRS = {"outcome": "ok", "findings": [], "facts": {"crs": "EPSG:4326"}}


async def status(desk: Desk, key: str | UUID, caller: Caller = PARTNER) -> PlatformStatus:
    return await AssetReader(desk.pool).status(str(key), caller, SERVE)


async def told(desk: Desk, key: str | UUID, *names: str, caller: Caller = PARTNER) -> dict[str, Any]:
    """Return some fields of the document, as JSON."""
    return (await status(desk, key, caller)).model_dump(mode="json", include={*names})


async def last_job(desk: Desk, asset_id: str, purpose: JobPurpose) -> Any:
    return (await desk.jobs(asset_id, purpose))[-1].job_id


# A request answers for its own revision


async def test_superseded_request_keeps_its_own_decision_and_findings(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first, "a", validation=CRS)
    await desk.reject(first.asset_id, note="the eastern third")
    second = await desk.submit(overwrite=True)
    await desk.process(second, "b", validation=OTHER_CRS)
    await desk.approve(first.asset_id)

    old, new = await status(desk, first.request_id), await status(desk, second.request_id)
    assert (old.approval_state, new.approval_state) == ("rejected", "approved")
    assert (old.version.revision, new.version.revision) == (1, 2)
    assert (old.model_dump()["revision"], new.model_dump()["revision"]) == (1, 2)
    assert old.decision is not None
    assert (old.decision.state, old.decision.reason, old.decision.note) == ("rejected", "clouds", "the eastern third")
    assert old.state_reason == "Rejected: clouds"
    assert old.superseded_by is not None
    assert (old.superseded_by.request_id, old.superseded_by.revision) == (second.request_id, 2)
    assert old.validation is not None
    assert new.validation is not None
    assert (old.validation.facts, new.validation.facts) == (CRS["facts"], OTHER_CRS["facts"])
    assert (old.service_urls, old.in_service, old.next_step) == ({}, None, None)
    assert new.service_urls
    assert old.superseded_at is not None
    assert old.processing_completed_at is not None
    assert old.processing_completed_at < old.superseded_at
    assert new.superseded_by is None


async def test_superseded_request_that_was_in_service_is_told_of_its_revocation(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first)
    await desk.approve(first.asset_id)
    second = await desk.submit(overwrite=True)
    assert (await told(desk, first.request_id, "approval_state", "in_service")) == {
        "approval_state": "approved",
        "in_service": {"ordinal": 0, "label": "V1", "revision": 1},
    }
    await desk.revoke(first.asset_id, note="the bridge is missing")
    old = await status(desk, first.request_id)
    assert (old.approval_state, old.state_reason) == ("rejected", "Revoked: wrong place")
    assert old.decision is not None
    assert old.withdrawn_at == old.decision.at is not None
    assert old.decision.note == "the bridge is missing"
    # The new revision is under way, and nobody has decided on it.
    assert await told(desk, second.request_id, "approval_state", "decision") == {
        "approval_state": "pending_review",
        "decision": None,
    }
    await desk.process(second, "b")


async def test_failed_overwrite_does_not_touch_what_the_first_request_is_told(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first)
    await desk.approve(first.asset_id)
    before = await status(desk, first.request_id)
    second = await desk.submit(overwrite=True)
    await desk.fail(second.job_id)
    new = await status(desk, second.request_id)
    assert (new.status, new.approval_state, new.decision) == ("failed", "failed", None)
    assert new.state_reason == new.error is not None
    assert "overwrite=true" in str(new.next_step)
    after = await status(desk, first.request_id)
    assert after.model_dump(exclude={"state_reason"}) == before.model_dump(exclude={"state_reason"})
    assert after.state_reason == "Revision 2 failed; revision 1 stays in service."


async def test_request_in_service_is_told_how_far_the_next_revision_is(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first)
    await desk.approve(first.asset_id)
    second = await desk.submit(overwrite=True)
    names = ("state_reason", "superseded_by", "superseded_at", "in_service")
    served = {"ordinal": 0, "label": "V1", "revision": 1}
    stays: dict[str, Any] = {"superseded_by": None, "superseded_at": None, "in_service": served}

    async def first_is_told() -> dict[str, Any]:
        return await told(desk, first.request_id, *names)

    assert await first_is_told() == {
        "state_reason": "Revision 2 is being processed; revision 1 stays in service.",
        **stays,
    }
    await desk.process(second, "b")
    assert await first_is_told() == {
        "state_reason": "Revision 2 waits for a decision; revision 1 stays in service.",
        **stays,
    }
    await desk.reject(first.asset_id)
    assert await first_is_told() == {"state_reason": "Revision 2 was rejected; revision 1 stays in service.", **stays}
    third = await desk.submit(overwrite=True)
    await desk.process(third, "c")
    await desk.approve(first.asset_id)
    replaced = await first_is_told()
    assert replaced.pop("superseded_at") is not None
    assert replaced == {
        "state_reason": "Revision 3 has taken its place.",
        "superseded_by": {"request_id": str(third.request_id), "revision": 3},
        "in_service": None,
    }


async def test_approved_revision_out_of_reach_does_not_count_as_in_service(desk: Desk) -> None:
    first = await desk.submit("V1")
    await desk.process(first)
    await desk.approve(first.asset_id)
    newer = await desk.submit("V2")
    await desk.process(newer, "b")
    await desk.approve(first.asset_id)
    second = await desk.submit("V1", overwrite=True)
    await desk.process(second, "c")
    assert await told(desk, first.request_id, "state_reason", "in_service") == {
        "state_reason": "Revision 2 waits for a decision; revision 1 stays approved.",
        "in_service": None,
    }


async def test_reprocessing_of_the_same_content_keeps_the_decision(desk: Desk) -> None:
    first = await desk.submit()
    await desk.process(first)
    await desk.approve(first.asset_id, note="fine")
    again = await desk.reprocess(first.asset_id)
    assert (await status(desk, again.request_id)).approval_state == "pending_review"
    await desk.process(again)
    kept = await status(desk, again.request_id)
    assert (kept.approval_state, kept.decision and kept.decision.note) == ("approved", "fine")


async def test_revision_that_an_older_release_logged_answers_with_what_there_is(
    desk: Desk, database: TestDatabase
) -> None:
    """The history has decisions and their reasons; what nobody kept is null."""
    first = await desk.submit()
    await desk.process(first, validation=CRS)
    await desk.reject(first.asset_id)
    second = await desk.submit(overwrite=True)
    with psycopg.connect(database.url()) as admin:
        admin.execute(
            "UPDATE dagapp.asset_revisions SET reviewed_at = NULL, rejection_reason = NULL, processing_state = NULL,"
            " processing_started_at = NULL, processing_completed_at = NULL, validation = NULL"
        )
    old = await status(desk, first.request_id)
    assert (old.approval_state, old.state_reason) == ("rejected", "Rejected: clouds")
    assert (old.processing_state, old.processing_completed_at, old.validation) == ("completed", None, None)
    assert old.reviewed_at is not None
    await desk.process(second, "b")


# Why, and what next


STORIES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "under way": (["submit"], {"status": "processing", "approval_state": "pending_review", "state_reason": None}),
    "failed": (["submit", "fail"], {"status": "failed", "approval_state": "failed"}),
    "waiting": (["submit", "process"], {"status": "completed", "approval_state": "pending_review", "decision": None}),
    "rejected": (
        ["submit", "process", "reject"],
        {"approval_state": "rejected", "state_reason": "Rejected: clouds", "service_urls": {}, "withdrawn_at": None},
    ),
    "approved": (["submit", "process", "approve"], {"approval_state": "approved", "state_reason": None}),
    "revoked": (
        ["submit", "process", "approve", "revoke"],
        {"approval_state": "rejected", "state_reason": "Revoked: wrong place", "service_urls": {}},
    ),
    "deleted": (["submit", "process", "delete"], {"state_reason": "The version was deleted.", "next_step": None}),
    "unpublished": (
        ["submit", "process", "approve", "unpublish"],
        {"state_reason": "The asset was unpublished.", "service_urls": {}, "next_step": None},
    ),
}


@pytest.mark.parametrize("story", STORIES)
async def test_document_says_how_a_request_stands_and_why(desk: Desk, story: str) -> None:
    steps, expected = STORIES[story]
    receipt = await desk.submit(clearance_level="public")
    for step in steps[1:]:
        match step:
            case "process":
                await desk.process(receipt)
            case "fail":
                await desk.fail(receipt.job_id)
            case "delete":
                await desk.delete(receipt.asset_id, 0)
            case _:
                await getattr(desk, step)(receipt.asset_id)
    document = (await status(desk, receipt.request_id)).model_dump(mode="json")
    assert {name: document[name] for name in expected} == expected
    assert (document["clearance_requested"], document["data_type"]) == ("public", "raster")
    times = ["accepted_at", "processing_started_at", "processing_completed_at", "reviewed_at", "withdrawn_at"]
    known = [document[name] for name in times if document[name] is not None]
    assert known == sorted(known)
    await desk.end_cancelled()


async def test_only_staff_see_who_decided(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    await desk.approve(receipt.asset_id)
    by = [(await status(desk, receipt.request_id, caller)).decision for caller in (PARTNER, REVIEWER)]
    assert [decision and decision.by for decision in by] == [None, "rita"]


# What is in service


async def test_asset_names_what_is_in_service_while_a_new_version_waits(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    second = await desk.submit("V2")
    await desk.process(second, "b")
    of_asset = await status(desk, asset_id)
    assert of_asset.request_id == second.request_id
    assert of_asset.service_urls["tiles"] == f"https://serve.example.org/tiles/{asset_id}"
    assert of_asset.in_service is not None
    assert (of_asset.in_service.ordinal, of_asset.in_service.label) == (0, "V1")
    assert await told(desk, second.request_id, "service_urls", "in_service") == {
        "service_urls": {},
        "in_service": None,
    }


# Copies for the public


async def test_copy_is_told_of_through_its_life(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    seen = [await status(desk, receipt.request_id)]
    await desk.approve(receipt.asset_id, "public")
    seen.append(await status(desk, receipt.request_id))
    await desk.finish(await last_job(desk, receipt.asset_id, JobPurpose.EXPORT), {"external_blob_path": "x"})
    seen.append(await status(desk, receipt.request_id))
    await desk.clear(receipt.asset_id, "ouo")
    seen.append(await status(desk, receipt.request_id))
    await desk.finish(await last_job(desk, receipt.asset_id, JobPurpose.REVERSAL))
    seen.append(await status(desk, receipt.request_id))
    assert [each.export.state for each in seen] == ["none", "running", "completed", "withdrawn", "withdrawn"]
    assert [each.export.at is not None for each in seen] == [False, True, True, False, True]
    assert [each.exported_at is not None for each in seen] == [False, False, True, True, True]
    assert len({each.exported_at for each in seen[2:]}) == 1
    assert [each.cleared_at is not None for each in seen] == [False, True, True, True, True]
    assert len({each.cleared_at for each in seen[1:]}) == 1
    first = seen[1].made_public_at
    assert first is not None
    assert {each.made_public_at for each in seen[1:]} == {first}


async def test_failed_export_is_told_to_partner_and_reviewer(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    await desk.approve(receipt.asset_id, "public")
    export = await last_job(desk, receipt.asset_id, JobPurpose.EXPORT)
    await desk.fail(export, "disk full on node-7")
    for caller in (PARTNER, REVIEWER):
        document = await status(desk, receipt.request_id, caller)
        assert (document.clearance_state, document.export.state) == ("public", "failed")
        assert document.state_reason == document.export.error is not None
        assert "node-7" not in document.model_dump_json()
    document = await status(desk, receipt.request_id, OPERATOR)
    assert document.state_reason == document.export.error
    assert document.export.error == "The copy for the public could not be made: disk full on node-7."
    await desk.bench.jobs.resume(export)
    assert (await status(desk, receipt.request_id)).export.state == "running"
    await desk.finish(export, {"external_blob_path": "x"})
    assert (await status(desk, receipt.request_id)).export.state == "completed"


async def test_failed_reversal_is_told_until_another_removes_the_copies(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.clear(asset_id, "ouo")
    reversal = await last_job(desk, asset_id, JobPurpose.REVERSAL)
    await desk.fail(reversal)
    assert (await status(desk, asset_id)).export.state == "failed"
    assert "could not be removed" in str((await status(desk, asset_id)).state_reason)
    assert (await status(desk, asset_id, OPERATOR)).state_reason == (
        "The copies for the public could not be removed: it failed. Nobody is shown them any more."
    )
    await desk.bench.jobs.resume(reversal)
    await desk.finish(reversal)
    assert (await told(desk, asset_id, "export", "state_reason"))["state_reason"] is None
    assert (await status(desk, asset_id)).export.state == "withdrawn"


async def test_copy_of_an_earlier_revision_is_withdrawn_by_the_next(desk: Desk) -> None:
    asset_id = await desk.exported()
    first = (await status(desk, asset_id)).request_id
    second = await desk.submit(overwrite=True)
    await desk.process(second, "b")
    before = await status(desk, first)
    assert before.export.state == "completed"
    await desk.approve(asset_id, "public")
    await desk.finish(await last_job(desk, asset_id, JobPurpose.EXPORT), {"external_blob_path": "y"})
    old, new = await status(desk, first), await status(desk, second.request_id)
    assert (old.export.state, new.export.state) == ("withdrawn", "completed")
    assert old.export.at == new.export.at is not None
    assert old.exported_at == before.exported_at is not None


# The review queue


async def test_reviewer_sees_the_clearance_that_was_proposed(desk: Desk) -> None:
    await desk.process(await desk.submit(clearance_level="public"))
    (waiting,) = await AssetReader(desk.pool).waiting()
    assert waiting.clearance_requested == "public"


async def test_note_is_bounded(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    with pytest.raises(ValueError, match="at most 2000 characters"):
        await desk.approve(receipt.asset_id, note="x" * 2001)
    with pytest.raises(Refused) as refused:
        await desk.revoke(receipt.asset_id)
    assert code_of(refused.value) == "not_approved"


# What needs attention


async def attention(desk: Desk) -> list[tuple[str, str | None]]:
    return [(each.purpose, each.job_id) for each in await PlatformStatistics(desk.pool).failed()]


async def test_failed_export_needs_attention_until_it_is_done_or_unwanted(desk: Desk) -> None:
    asset_id = await desk.approved("V1", "public")
    export = await last_job(desk, asset_id, JobPurpose.EXPORT)
    assert await attention(desk) == []
    await desk.fail(export, "disk full")
    (found,) = await PlatformStatistics(desk.pool).failed()
    assert (found.purpose, found.job_id, found.asset_id, found.version_ordinal) == ("export", export, asset_id, 0)
    assert "disk full" in str(found.error)
    await desk.bench.jobs.resume(export)
    assert await attention(desk) == []
    await desk.fail(export)
    await desk.clear(asset_id, "ouo")
    reversal = await last_job(desk, asset_id, JobPurpose.REVERSAL)
    await desk.fail(reversal)
    assert await attention(desk) == [("reversal", reversal)]
    await desk.bench.jobs.resume(reversal)
    await desk.finish(reversal)
    assert await attention(desk) == []


async def test_failed_removal_of_an_unpublished_asset_needs_attention(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.unpublish(asset_id)
    removal = await last_job(desk, asset_id, JobPurpose.UNPUBLISH)
    await desk.fail(removal)
    assert await attention(desk) == [("unpublish", removal)]
    assert (await status(desk, asset_id)).export.state == "failed"
    await desk.bench.jobs.resume(removal)
    await desk.finish(removal)
    assert await attention(desk) == []
    assert (await status(desk, asset_id)).export.state == "withdrawn"


async def test_failures_of_all_kinds_come_newest_first_in_pages(desk: Desk) -> None:
    public = await desk.approved("V1", "public")
    await desk.fail(await last_job(desk, public, JobPurpose.EXPORT))
    other = await desk.submit("V1", platform_refs={"dataset_id": "other", "resource_id": "dem"})
    await desk.fail(other.job_id)
    numbers = PlatformStatistics(desk.pool)
    both = await numbers.failed()
    assert [each.purpose for each in both] == ["process", "export"]
    first = both[0]
    after = await numbers.failed((first.failed_at, first.asset_id, first.version_ordinal), 1)
    assert [each.purpose for each in after] == ["export"]
