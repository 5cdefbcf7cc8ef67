"""Four eyes: nobody approves what they submitted, and two reviewers approve what the public is to see."""

from collections.abc import AsyncIterator

import pytest
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import Conflict, Refused
from graticule.core.exchange import AssetChange
from graticule.core.models.engine import JobPurpose
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.states import ApprovalState, ClearanceState

REVIEWER = frozenset({ClientRole.REVIEWER})
RUTH, OMAR = Caller("ruth", REVIEWER), Caller("omar", REVIEWER)


@pytest.fixture
async def careful(desk: Desk) -> AsyncIterator[Desk]:
    """Return a desk whose platform wants four eyes; its data are submitted by `rita`."""
    await desk.execute("UPDATE dagapp.platforms SET four_eyes = true")
    yield desk
    await desk.execute("UPDATE dagapp.platforms SET four_eyes = false")


async def waiting(desk: Desk, label: str = "V1", content: str = "a") -> str:
    receipt = await desk.submit(label)
    await desk.process(receipt, content)
    return receipt.asset_id


async def approve(desk: Desk, caller: Caller, asset_id: str, level: str) -> AssetChange:
    submitter, desk.caller = desk.caller, caller
    try:
        return await desk.approve(asset_id, level)
    finally:
        desk.caller = submitter


async def clear(desk: Desk, caller: Caller, asset_id: str, level: str) -> AssetChange:
    submitter, desk.caller = desk.caller, caller
    try:
        return await desk.clear(asset_id, level)
    finally:
        desk.caller = submitter


async def test_who_submitted_a_revision_does_not_approve_it(careful: Desk) -> None:
    asset_id = await waiting(careful)
    for level in ("ouo", "public"):
        with pytest.raises(Refused) as refused:
            await careful.approve(asset_id, level)
        assert code_of(refused.value) == "second_person_required"
    approved = await approve(careful, RUTH, asset_id, "ouo")
    assert approved.version is not None
    assert (approved.version.approval_state, approved.version.reviewer) == (ApprovalState.APPROVED, "ruth")


async def test_the_public_sees_what_two_reviewers_approved(careful: Desk) -> None:
    asset_id = await waiting(careful)
    first = await approve(careful, RUTH, asset_id, "public")
    assert first.version is not None
    assert (first.version.approval_state, first.version.endorsed_by) == (ApprovalState.PENDING_REVIEW, "ruth")
    assert (first.effects, first.job_id) == ([], None)
    assert first.warning is not None
    with pytest.raises(Refused) as again:
        await approve(careful, RUTH, asset_id, "public")
    assert code_of(again.value) == "second_person_required"
    second = await approve(careful, OMAR, asset_id, "public")
    assert second.asset.clearance_state is ClearanceState.PUBLIC
    assert [job.purpose for job in await careful.jobs(asset_id, JobPurpose.EXPORT)] == [JobPurpose.EXPORT]
    assert (await careful.history(asset_id))[-2:] == ["endorsed", "approved"]


async def test_an_endorsement_counts_for_its_revision_only(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "public")
    await careful.process(await careful.submit("V1", overwrite=True), "b")
    after = await approve(careful, OMAR, asset_id, "public")
    assert after.version is not None
    assert (after.version.approval_state, after.version.endorsed_by) == (ApprovalState.PENDING_REVIEW, "omar")


async def test_another_reviewer_raises_the_clearance(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "ouo")
    with pytest.raises(Refused) as refused:
        await clear(careful, RUTH, asset_id, "public")
    assert code_of(refused.value) == "second_person_required"
    with pytest.raises(Refused) as of_submitter:
        await clear(careful, careful.caller, asset_id, "public")
    assert code_of(of_submitter.value) == "second_person_required"
    raised = await clear(careful, OMAR, asset_id, "public")
    assert raised.asset.clearance_state is ClearanceState.PUBLIC
    lowered = await clear(careful, OMAR, asset_id, "ouo")
    assert lowered.asset.clearance_state is ClearanceState.OUO


async def test_the_next_version_of_a_public_asset_needs_two_as_well_and_nothing_is_withdrawn(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "public")
    await approve(careful, OMAR, asset_id, "public")
    await waiting(careful, "V2", "b")
    await approve(careful, OMAR, asset_id, "public")
    asset = await careful.asset(asset_id)
    assert (asset.clearance_state, asset.latest_approved_version_ordinal) == (ClearanceState.PUBLIC, 0)
    await approve(careful, RUTH, asset_id, "public")
    assert (await careful.asset(asset_id)).latest_approved_version_ordinal == 1


async def test_all_versions_reach_the_public_only_when_two_have_approved_each(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "ouo")
    await waiting(careful, "V2", "b")
    await approve(careful, OMAR, asset_id, "public")
    await approve(careful, RUTH, asset_id, "public")
    careful.caller = RUTH
    with pytest.raises(Refused) as refused:
        await careful.set_url_mode(asset_id, "all_versions")
    assert code_of(refused.value) == "second_person_required"
    careful.caller = OMAR
    await careful.set_url_mode(asset_id, "all_versions")


async def test_without_the_rule_one_person_is_enough(desk: Desk) -> None:
    asset_id = await waiting(desk)
    assert (await desk.approve(asset_id, "public")).asset.clearance_state is ClearanceState.PUBLIC


async def test_the_database_holds_the_rule_too(careful: Desk) -> None:
    asset_id = await waiting(careful)
    with pytest.raises(Conflict) as of_submitter:
        await careful.execute(
            "UPDATE dagapp.asset_versions SET approval_state = 'approved', reviewer = 'rita', reviewed_at = now(),"
            " approved_revision = revision WHERE asset_id = %s",
            asset_id,
        )
    assert "rita submitted the revision" in str(of_submitter.value.__cause__)
    await approve(careful, RUTH, asset_id, "ouo")
    with pytest.raises(Conflict) as of_one_reviewer:
        await careful.execute(
            "UPDATE dagapp.geospatial_assets SET clearance_state = 'public', clearance_changed_by = 'ruth',"
            " made_public_at = now(), made_public_by = 'ruth' WHERE asset_id = %s",
            asset_id,
        )
    assert "Nobody but ruth has approved" in str(of_one_reviewer.value.__cause__)
