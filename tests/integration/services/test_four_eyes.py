"""Four eyes: nobody approves what they submitted, and two reviewers approve what the public is to see."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import LiteralString

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
OLGA = Caller("olga", frozenset({ClientRole.ADMIN}))
RAISE: LiteralString = """
    UPDATE dagapp.geospatial_assets
    SET clearance_state = 'public', clearance_changed_by = %s, made_public_at = now(), made_public_by = 'x'
    WHERE asset_id = %s
"""
EXPORT: LiteralString = """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, asset_id,
                                 version_ordinal, purpose)
    SELECT 'by hand', workflow_id, workflow_version, workflow_hash, 'pending', asset_id, 0, 'export'
    FROM dagapp.dag_jobs WHERE asset_id = %s LIMIT 1
"""


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


async def by(desk: Desk, caller: Caller, decide: Callable[[], Awaitable[AssetChange]]) -> AssetChange:
    """Decide as someone else than the submitter."""
    submitter, desk.caller = desk.caller, caller
    try:
        return await decide()
    finally:
        desk.caller = submitter


async def approve(desk: Desk, caller: Caller, asset_id: str, level: str) -> AssetChange:
    return await by(desk, caller, lambda: desk.approve(asset_id, level))


async def clear(desk: Desk, caller: Caller, asset_id: str, level: str) -> AssetChange:
    return await by(desk, caller, lambda: desk.clear(asset_id, level))


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


async def refused(decision: Awaitable[object]) -> str:
    with pytest.raises(Refused) as error:
        await decision
    assert code_of(error.value) == "second_person_required"
    return str(error.value)


async def refused_by_database(desk: Desk, statement: LiteralString, *given: str) -> str:
    with pytest.raises(Conflict) as error:
        await desk.execute(statement, *given)
    return str(error.value.__cause__)


async def exports(desk: Desk, asset_id: str) -> list[int | None]:
    return [job.version_ordinal for job in await desk.jobs(asset_id, JobPurpose.EXPORT)]


async def with_one_reviewer(desk: Desk) -> str:
    """Return a public asset with two versions: ruth alone approved the first, as ouo, and two people the second."""
    asset_id = await waiting(desk)
    await approve(desk, RUTH, asset_id, "ouo")
    await waiting(desk, "V2", "b")
    await approve(desk, OMAR, asset_id, "public")
    await approve(desk, RUTH, asset_id, "public")
    assert await exports(desk, asset_id) == [1]
    return asset_id


async def test_who_submitted_does_not_approve_what_was_processed_again(careful: Desk) -> None:
    asset_id = await waiting(careful)
    rita, careful.caller = careful.caller, OLGA
    again = await careful.reprocess(asset_id)
    careful.caller = rita
    await careful.process(again, "b")
    for level in ("ouo", "public"):
        assert "You submitted revision 2" in await refused(careful.approve(asset_id, level))
    by_hand = "UPDATE dagapp.asset_versions SET approval_state = 'approved', reviewer = 'rita', reviewed_at = now(),"
    cause = await refused_by_database(careful, f"{by_hand} approved_revision = revision WHERE asset_id = %s", asset_id)
    assert "rita submitted the revision" in cause
    approved = await approve(careful, OLGA, asset_id, "ouo")  # who pressed the button has submitted nothing
    assert approved.version is not None
    assert approved.version.approved_by == "olga"


async def test_an_overwrite_does_not_hide_who_approved_what_is_in_service(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "ouo")
    await careful.process(await careful.submit("V1", overwrite=True), "b")
    await refused(clear(careful, RUTH, asset_id, "public"))
    assert "Nobody but ruth has approved version 0" in await refused_by_database(careful, RAISE, "ruth", asset_id)
    await by(careful, OMAR, lambda: careful.reject(asset_id))
    await refused(clear(careful, RUTH, asset_id, "public"))
    assert "Nobody but ruth has approved version 0" in await refused_by_database(careful, RAISE, "ruth", asset_id)
    raised = await clear(careful, OMAR, asset_id, "public")
    assert raised.asset.clearance_state is ClearanceState.PUBLIC
    version = await careful.version(asset_id)
    assert (version.approved_by, version.seconded_by) == ("ruth", "omar")
    assert (await careful.history(asset_id))[-2:] == ["endorsed", "clearance_changed"]


async def test_who_submitted_what_is_in_service_does_not_make_it_public_after_an_overwrite(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "ouo")
    await careful.process(await careful.submit("V1", overwrite=True, caller=OLGA), "b")
    assert "You submitted revision 1" in await refused(clear(careful, careful.caller, asset_id, "public"))
    await refused_by_database(careful, RAISE, "rita", asset_id)
    await clear(careful, OMAR, asset_id, "public")
    await clear(careful, OMAR, asset_id, "ouo")
    assert "rita submitted version 0" in await refused_by_database(careful, RAISE, "rita", asset_id)
    assert (await clear(careful, OLGA, asset_id, "public")).job_id is not None


async def test_an_earlier_version_is_copied_once_another_reviewer_approves_it(careful: Desk) -> None:
    asset_id = await with_one_reviewer(careful)
    earlier = {"ordinal": 0, "revision": 1}
    await refused(by(careful, RUTH, lambda: careful.approve(asset_id, "public", **earlier)))
    await refused(careful.approve(asset_id, "public", **earlier))  # rita has submitted it
    assert "Nobody but ruth has approved version 0" in await refused_by_database(careful, EXPORT, asset_id)
    assert await exports(careful, asset_id) == [1]
    before = (await careful.asset(asset_id)).version
    seconded = await by(careful, OMAR, lambda: careful.approve(asset_id, "public", **earlier, note="seen"))
    assert seconded.changed
    assert seconded.asset.version == before + 1
    assert await exports(careful, asset_id) == [1, 0]
    event = next(each for each in reversed(await careful.events(asset_id)) if each.event_type == "asset_endorsed")
    assert (event.actor, event.version_ordinal, event.data) == ("omar", 0, {"revision": 1, "note": "seen"})
    again = await by(careful, OMAR, lambda: careful.approve(asset_id, "public", **earlier))
    assert not again.changed


@pytest.mark.parametrize("deed", ["revoke", "delete"])
async def test_what_one_reviewer_approved_is_not_shown_when_the_next_version_goes(careful: Desk, deed: str) -> None:
    asset_id = await with_one_reviewer(careful)
    decide = careful.revoke(asset_id) if deed == "revoke" else careful.delete(asset_id, 1)
    gone = await decide  # one person is enough, also the submitter
    assert await exports(careful, asset_id) == [1]
    assert gone.asset.latest_approved_version_ordinal == 0
    assert gone.warning == (
        "The public does not see version 0 (V1): only ruth has approved it. It will once another reviewer has approved "
        "it with the clearance public."
    )
    assert [effect for effect in gone.effects if "public" in effect] == ["Version 1 (V2) leaves the public services."]
    await refused(by(careful, RUTH, lambda: careful.approve(asset_id, "public", ordinal=0, revision=1)))
    await refused_by_database(careful, EXPORT, asset_id)
    shown = await by(careful, OMAR, lambda: careful.approve(asset_id, "public", ordinal=0, revision=1))
    assert shown.effects == ["Version 0 (V1) enters the public services at revision 1."]
    assert await exports(careful, asset_id) == [1, 0]


async def test_what_two_reviewers_approved_is_shown_again_when_the_next_version_goes(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "ouo")
    await clear(careful, OMAR, asset_id, "public")
    await clear(careful, OMAR, asset_id, "ouo")
    await waiting(careful, "V2", "b")
    await approve(careful, OMAR, asset_id, "public")
    await approve(careful, RUTH, asset_id, "public")
    gone = await careful.revoke(asset_id)
    assert gone.warning is None
    assert await exports(careful, asset_id) == [0, 1, 0]


async def test_who_submitted_a_version_does_not_publish_it_by_the_url_mode(careful: Desk) -> None:
    asset_id = await with_one_reviewer(careful)
    assert "You submitted revision 1 of version 0" in await refused(careful.set_url_mode(asset_id, "all_versions"))
    await refused(by(careful, RUTH, lambda: careful.set_url_mode(asset_id, "all_versions")))
    await refused_by_database(careful, EXPORT, asset_id)
    assert await exports(careful, asset_id) == [1]
    await by(careful, OMAR, lambda: careful.set_url_mode(asset_id, "all_versions"))
    assert await exports(careful, asset_id) == [1, 0]
    await careful.set_url_mode(asset_id, "latest_only")  # one person is enough


async def test_approvals_last_when_the_same_content_is_processed_again(careful: Desk) -> None:
    asset_id = await waiting(careful)
    await approve(careful, RUTH, asset_id, "public")
    await approve(careful, OMAR, asset_id, "public")
    await careful.finish((await careful.jobs(asset_id, JobPurpose.EXPORT))[-1].job_id, {"external_blob_path": "x"})
    await careful.process(await careful.reprocess(asset_id), "a")
    version = await careful.version(asset_id)
    assert (version.approved_revision, version.approved_by, version.seconded_by) == (2, "omar", "ruth")
    assert len(await careful.renewal.renew((await careful.renewal.assets())[0])) == 1
    await careful.revoke(asset_id)
    version = await careful.version(asset_id)
    assert (version.approved_by, version.seconded_by) == (None, None)


async def test_a_copy_from_before_the_rule_is_not_renewed_until_two_have_approved_it(desk: Desk) -> None:
    asset_id = await desk.exported("V1")
    await desk.execute("UPDATE dagapp.platforms SET four_eyes = true")
    try:
        await desk.process(await desk.reprocess(asset_id), "a")
        assert await desk.renewal.assets() == []
        await by(desk, OMAR, lambda: desk.approve(asset_id, "public", ordinal=0, revision=2))
        assert await exports(desk, asset_id) == [0, 0]
    finally:
        await desk.execute("UPDATE dagapp.platforms SET four_eyes = false")


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
