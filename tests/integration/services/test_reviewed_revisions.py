"""A decision is about the revision that its reviewer looked at: however it is named, another one refuses it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from tests.integration.services.desk import Desk, code_of
from tests.integration.services.test_asset_races import asset_row_held

from graticule.core.asset_views import PartnerEvent
from graticule.core.errors import InvalidInput, NotFound, Refused
from graticule.core.exchange import AssetChange, SubmissionReceipt
from graticule.core.models.engine import JobPurpose
from graticule.core.states import ApprovalState
from graticule.repositories.assets import AssetVersionRepository

Names = Mapping[str, Any]
Decide = Callable[[Desk, str, Names], Awaitable[AssetChange]]
HASHES = {1: "1" * 64, 2: "2" * 64}
ASSET_ALONE: Names = {"revision": None}

DECISIONS: Mapping[str, Decide] = {
    "approve": lambda desk, asset_id, names: desk.approve(asset_id, **names),
    "reject": lambda desk, asset_id, names: desk.reject(asset_id, **names),
    "revoke": lambda desk, asset_id, names: desk.revoke(asset_id, **names),
    "clearance": lambda desk, asset_id, names: desk.clear(asset_id, "public", **names),
    "approve again": lambda desk, asset_id, names: desk.approve(asset_id, "public", **names),
}
OF_WHAT_WAITS = ("approve", "reject")
OF_WHAT_IS_SERVED = ("revoke", "clearance", "approve again")


async def submit_and_process(desk: Desk, revision: int) -> SubmissionReceipt:
    """Send a version for the first time, or again, and process it."""
    receipt = await desk.submit(overwrite=revision > 1)
    await desk.process(receipt, content=str(revision), output_hash=HASHES[revision])
    assert receipt.revision == revision
    return receipt


def ways_to_name(receipt: SubmissionReceipt, revision: int) -> dict[str, Names]:
    return {
        "revision": {"revision": revision},
        "revision and ordinal": {"revision": revision, "ordinal": 0},
        "output hash": {"revision": None, "output_hash": HASHES[revision]},
        "both": {"revision": revision, "output_hash": HASHES[revision]},
        "request": {"revision": None, "request_id": receipt.request_id},
        "job": {"revision": None, "job_id": receipt.job_id},
    }


NAMES = ("revision", "revision and ordinal", "output hash", "both", "request", "job")


async def catch_refusal(decision: Awaitable[AssetChange]) -> Refused:
    with pytest.raises(Refused) as refused:
        await decision
    return refused.value


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
@pytest.mark.parametrize("name", NAMES)
async def test_what_was_overwritten_after_it_was_looked_at_is_not_decided_on(
    desk: Desk, decision: str, name: str
) -> None:
    first = await submit_and_process(desk, 1)
    second = await submit_and_process(desk, 2)
    before = await desk.snapshot()
    names = ways_to_name(first, 1)[name]
    refused = await catch_refusal(DECISIONS[decision](desk, first.asset_id, names))
    assert code_of(refused) == "revision_changed"
    assert refused.current is not None
    assert refused.current["versions"][0]["revision"] == 2
    assert f"/api/view/preview/{first.asset_id}/0" in str(refused.hint)
    assert await desk.snapshot() == before
    done = await DECISIONS[decision](desk, first.asset_id, ways_to_name(second, 2)[name])
    assert done.version is not None
    assert done.version.approval_state is not ApprovalState.PENDING_REVIEW


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
async def test_an_asset_alone_names_what_waits_while_there_was_a_single_revision(desk: Desk, decision: str) -> None:
    first = await submit_and_process(desk, 1)
    alone: tuple[Names, ...] = (ASSET_ALONE, {**ASSET_ALONE, "ordinal": 0})
    for names in alone:
        other = await desk.submit(platform_refs={"dataset_id": decision, "resource_id": str(len(names))})
        await desk.process(other)
        assert (await DECISIONS[decision](desk, other.asset_id, names)).changed
    await submit_and_process(desk, 2)
    for names in alone:
        refused = await catch_refusal(DECISIONS[decision](desk, first.asset_id, names))
        assert code_of(refused) == "revision_required"
        assert "revision 2" in str(refused)


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
async def test_what_is_processed_again_cannot_be_decided_on_by_what_its_preview_still_shows(
    desk: Desk, decision: str
) -> None:
    first = await submit_and_process(desk, 1)
    second = await desk.submit(overwrite=True)
    shown: list[Names] = [
        {"revision": 1},
        {"revision": None, "output_hash": HASHES[1]},
        {"revision": None, "job_id": first.job_id},
    ]
    for names in shown:
        assert code_of(await catch_refusal(DECISIONS[decision](desk, first.asset_id, names))) == "revision_changed"
    await desk.process(second, "2", output_hash=HASHES[2])
    for names in shown:
        assert code_of(await catch_refusal(DECISIONS[decision](desk, first.asset_id, names))) == "revision_changed"


@pytest.mark.parametrize("decision", OF_WHAT_IS_SERVED)
@pytest.mark.parametrize("name", NAMES)
async def test_a_decision_on_what_is_served_names_the_revision_in_service(desk: Desk, decision: str, name: str) -> None:
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id)
    second = await submit_and_process(desk, 2)
    if decision == "approve again":  # otherwise it is about what waits
        await desk.approve(first.asset_id)
        first, second, served = second, first, 2
    else:
        served = 1
    act = DECISIONS[decision]
    refused = await catch_refusal(act(desk, first.asset_id, ways_to_name(second, 3 - served)[name]))
    assert code_of(refused) == "revision_changed"
    assert f"Revision {served} of version 0 is in service" in str(refused)
    assert code_of(await catch_refusal(act(desk, first.asset_id, ASSET_ALONE))) == "revision_required"
    assert (await act(desk, first.asset_id, ways_to_name(first, served)[name])).changed


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_number_alone_names_none_of_several_versions(desk: Desk, decision: str) -> None:
    """Each has a revision 1: what was looked at may not be what the decision would be about by now."""
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id)
    second = await desk.submit("V2")
    await desk.process(second, content="2", output_hash=HASHES[2])
    if decision == "approve again":
        await desk.approve(first.asset_id)
    before = await desk.snapshot()
    refused = await catch_refusal(DECISIONS[decision](desk, first.asset_id, {"revision": 1}))
    assert code_of(refused) == "revision_required"
    ordinal = int(decision not in {"revoke", "clearance"})
    assert f"--version {ordinal} --revision 1" in str(refused.hint)
    assert await desk.snapshot() == before
    assert (await DECISIONS[decision](desk, first.asset_id, {"revision": 1, "ordinal": ordinal})).changed


@pytest.mark.parametrize("names", [ASSET_ALONE, {"revision": 1}, {"revision": None, "output_hash": HASHES[2]}])
@pytest.mark.parametrize("resolved", ["rejected", "deleted", "failed"])
async def test_an_approval_of_what_waits_no_longer_clears_no_other_version(
    desk: Desk, names: Names, resolved: str
) -> None:
    """A reviewer looks at version 1, another one rejects it: the first must not make version 0 public."""
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id)
    second = await desk.submit("V2")
    if resolved == "failed":
        await desk.fail(second.job_id)
    else:
        await desk.process(second, content="2", output_hash=HASHES[2])
    if resolved == "rejected":
        await desk.reject(first.asset_id, ordinal=1)
    elif resolved == "deleted":
        await desk.delete(first.asset_id, 1)
    before = await desk.snapshot()
    refused = await catch_refusal(desk.approve(first.asset_id, "public", **names))
    assert code_of(refused) in {"revision_required", "revision_changed"}
    assert await desk.snapshot() == before
    assert (await desk.approve(first.asset_id, "public", ordinal=0, revision=1)).changed


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
@pytest.mark.parametrize("is_in_service", [False, True])
async def test_an_asset_alone_does_not_name_what_took_the_place_of_what_was_looked_at(
    desk: Desk, decision: str, is_in_service: bool
) -> None:
    """A partner spoils the version that was looked at by an overwrite that fails, and sends another one."""
    first = await submit_and_process(desk, 1)
    if is_in_service:  # in an earlier revision
        await desk.approve(first.asset_id)
        await submit_and_process(desk, 2)
    await desk.fail((await desk.submit(overwrite=True)).job_id)
    await desk.process(await desk.submit("V2"), content="2")
    before = await desk.snapshot()
    refused = await catch_refusal(DECISIONS[decision](desk, first.asset_id, ASSET_ALONE))
    assert code_of(refused) == "revision_required"
    assert "--version 1 --revision 1" in str(refused.hint)
    assert await desk.snapshot() == before
    assert (await DECISIONS[decision](desk, first.asset_id, {**ASSET_ALONE, "ordinal": 1})).changed


async def test_an_asset_alone_names_what_waits_beside_a_version_that_never_could_be_looked_at(desk: Desk) -> None:
    await desk.fail((await desk.submit()).job_id)
    second = await desk.submit("V2")
    await desk.process(second)
    assert (await desk.approve(second.asset_id, **ASSET_ALONE)).asset.latest_approved_version_ordinal == 1


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
@pytest.mark.parametrize("how", ["deleted", "unpublished"])
async def test_an_asset_alone_does_not_name_what_came_after_a_version_that_was_removed(
    desk: Desk, decision: str, how: str
) -> None:
    first = await submit_and_process(desk, 1)
    await (desk.delete(first.asset_id, 0) if how == "deleted" else desk.unpublish(first.asset_id))
    await desk.process(await desk.submit("V2"), content="2")
    refused = await catch_refusal(DECISIONS[decision](desk, first.asset_id, ASSET_ALONE))
    assert code_of(refused) == "revision_required"
    assert (await DECISIONS[decision](desk, first.asset_id, {**ASSET_ALONE, "ordinal": 1})).changed


@pytest.mark.parametrize("decision", OF_WHAT_WAITS)
async def test_an_asset_alone_does_not_name_what_was_submitted_after_an_approval(desk: Desk, decision: str) -> None:
    """A decision that is repeated, or that a second reviewer of the first version makes, is not one on the next."""
    asset_id = await desk.approved("V1")
    await desk.process(await desk.submit("V2"), content="2")
    refused = await catch_refusal(DECISIONS[decision](desk, asset_id, ASSET_ALONE))
    assert code_of(refused) == "revision_required"
    assert (await DECISIONS[decision](desk, asset_id, {**ASSET_ALONE, "ordinal": 1})).changed


@pytest.mark.parametrize("decision", OF_WHAT_IS_SERVED)
async def test_an_asset_alone_does_not_name_what_took_the_place_of_a_version(desk: Desk, decision: str) -> None:
    asset_id = await desk.approved("V1")
    await desk.revoke(asset_id)
    await desk.delete(asset_id, 0)
    await desk.approved("V2")
    assert code_of(await catch_refusal(DECISIONS[decision](desk, asset_id, ASSET_ALONE))) == "revision_required"


@pytest.mark.parametrize("decision", OF_WHAT_IS_SERVED)
async def test_an_asset_alone_does_not_name_one_of_several_versions_in_service(desk: Desk, decision: str) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2")
    assert code_of(await catch_refusal(DECISIONS[decision](desk, asset_id, ASSET_ALONE))) == "revision_required"
    assert (await DECISIONS[decision](desk, asset_id, {**ASSET_ALONE, "ordinal": 1})).changed


async def test_a_clearance_names_the_latest_version_in_service(desk: Desk) -> None:
    asset_id = await desk.approved("V1")
    await desk.approved("V2")
    refused = await catch_refusal(desk.clear(asset_id, "public", ordinal=0, revision=1))
    assert code_of(refused) == "revision_changed"
    assert (await desk.clear(asset_id, "public", ordinal=1, revision=1)).changed


async def test_what_keeps_its_approval_when_it_is_processed_again_is_another_revision_all_the_same(desk: Desk) -> None:
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id)
    again = await desk.reprocess(first.asset_id)
    assert (await desk.clear(first.asset_id, "public", revision=1)).changed, "it is in service until the next is made"
    await desk.process(again, "1", output_hash=HASHES[2])
    assert (await desk.version(first.asset_id)).approved_revision == 2
    assert code_of(await catch_refusal(desk.revoke(first.asset_id, revision=1))) == "revision_changed"
    assert code_of(await catch_refusal(desk.revoke(first.asset_id, revision=None))) == "revision_required"
    await desk.revoke(first.asset_id, revision=2, output_hash=HASHES[2])


async def test_a_request_and_what_is_said_beside_it_agree(desk: Desk) -> None:
    first = await submit_and_process(desk, 1)
    other = await desk.submit(platform_refs={"dataset_id": "another", "resource_id": "dem"})
    named: list[Names] = [
        {"revision": 2, "request_id": first.request_id},
        {"ordinal": 3, "revision": None, "request_id": first.request_id},
        {"revision": None, "request_id": other.request_id},
        {"revision": None, "job_id": other.job_id},
    ]
    for names in named:
        with pytest.raises(InvalidInput):
            await desk.approve(first.asset_id, **names)
    await desk.approve(first.asset_id, ordinal=0, revision=1, request_id=first.request_id)


async def test_a_job_that_processed_no_version_names_none(desk: Desk) -> None:
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id, "public")
    (export,) = await desk.jobs(first.asset_id, JobPurpose.EXPORT)
    for job_id in (export.job_id, "there is none"):
        with pytest.raises(NotFound, match="is not the one that processed a version"):
            await desk.revoke(first.asset_id, revision=None, job_id=job_id)
    await desk.revoke(first.asset_id, revision=None, job_id=first.job_id)


async def test_a_note_is_kept_when_an_approval_changes_the_clearance_alone(desk: Desk) -> None:
    asset_id = await desk.approved()
    await desk.approve(asset_id, "public", note="It is out of the embargo.")
    (changed,) = [each for each in await desk.events(asset_id) if each.event_type == "asset_clearance_changed"]
    assert PartnerEvent.of(changed).details == {"clearance_state": "public", "note": "It is out of the embargo."}


async def test_another_name_of_the_reviewer_is_kept_beside_the_callers(desk: Desk) -> None:
    first = await submit_and_process(desk, 1)
    await desk.approve(first.asset_id, reviewer="user@example.com")
    await desk.clear(first.asset_id, "public", reviewer="rita")
    await desk.revoke(first.asset_id, reviewer="someone else")
    await submit_and_process(desk, 2)
    await desk.reject(first.asset_id, reviewer="a third")
    decided = [event for event in await desk.events(first.asset_id) if event.event_type in DECIDED]
    assert [(event.actor, event.data.get("reviewer_named")) for event in decided] == [
        ("rita", "user@example.com"),
        ("rita", None),
        ("rita", "someone else"),
        ("rita", "a third"),
    ]
    assert (await desk.version(first.asset_id)).reviewer == "rita"


DECIDED = {"asset_approved", "asset_clearance_changed", "asset_revoked", "asset_rejected"}


# At the same time


@pytest.mark.parametrize("again", ["overwrite", "reprocess"])
async def test_of_an_approval_and_a_new_revision_at_once_the_approval_is_of_what_was_seen_or_refused(
    desk: Desk, again: str
) -> None:
    first = await submit_and_process(desk, 1)
    async with asset_row_held(desk, first.asset_id):
        redo = desk.submit(overwrite=True) if again == "overwrite" else desk.reprocess(first.asset_id)
        revising = asyncio.ensure_future(redo)
        await desk.until_waiting(1)
        approving = asyncio.ensure_future(desk.approve(first.asset_id, revision=1))
        await desk.until_waiting(2)
    await revising
    with pytest.raises(Refused) as refused:
        await approving
    assert code_of(refused.value) == "stale_version", "the asset has changed since the approval was read"
    await desk.process(await revising, "2", output_hash=HASHES[2])
    assert code_of(await catch_refusal(desk.approve(first.asset_id, revision=1))) == "revision_changed"
    assert (await desk.version(first.asset_id)).approved_revision is None


async def test_the_database_writes_no_decision_on_another_revision(desk: Desk) -> None:
    first = await submit_and_process(desk, 1)
    seen = await desk.version(first.asset_id)
    await submit_and_process(desk, 2)
    there = await desk.version(first.asset_id)
    now = desk.pool.now()
    async with desk.pool.connection() as connection, connection.transaction(force_rollback=True):
        versions = AssetVersionRepository(connection)
        for other in (seen, there.model_copy(update={"output_hash": HASHES[1]})):
            assert await versions.approve(other, "rita", now) is None
        assert await versions.reject(seen, "clouds", "rita", now) is None
        approved = await versions.approve(there, "rita", now)
        assert approved is not None
        assert await versions.revoke(seen.model_copy(update={"approved_revision": 1}), "wrong", "rita", now) is None
        assert await versions.revoke(approved, "wrong", "rita", now) is not None
