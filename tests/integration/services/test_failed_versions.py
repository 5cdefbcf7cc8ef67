"""A version that could not be processed: there is nothing to review, and nothing else waits for it."""

import pytest
from tests.integration.services.desk import Desk, code_of

from graticule.core.errors import Refused
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.states import ApprovalState, ProcessingState
from graticule.repositories.asset_views import AssetFilter
from graticule.services.asset_reading import AssetReader

OPERATOR = Caller("olga", frozenset({ClientRole.OPERATOR}))
FAILED, PENDING = ApprovalState.FAILED, ApprovalState.PENDING_REVIEW


async def failed(desk: Desk, label: str = "V1") -> str:
    receipt = await desk.submit(label)
    await desk.fail(receipt.job_id)
    return receipt.asset_id


async def test_failed_version_is_failed_wherever_it_is_read(desk: Desk) -> None:
    asset_id = await failed(desk)
    reader = AssetReader(desk.pool)
    assert (await desk.version(asset_id)).approval_state is FAILED
    asset = await reader.asset((await desk.asset(asset_id)).asset_id, OPERATOR)
    assert asset.newest_version is not None
    assert asset.newest_version.approval_state is FAILED
    assert await reader.waiting() == []
    by_state = {
        state: [each.asset_id for each in await reader.assets(AssetFilter(approval_state=state), caller=OPERATOR)]
        for state in ApprovalState
    }
    assert {state for state, found in by_state.items() if found} == {FAILED}
    ended = [event for event in await desk.events(asset_id) if event.event_type == "asset_processing_failed"]
    assert ended[-1].data["approval_state"] == "failed"


async def test_failed_version_is_stored_in_the_words_of_older_releases(desk: Desk) -> None:
    asset_id = await failed(desk)
    await desk.process(await desk.submit(overwrite=True))
    stored = await desk.rows("SELECT approval_state::text FROM dagapp.asset_revisions WHERE asset_id = %s", asset_id)
    assert stored == [{"approval_state": "pending_review"}]
    (logged,) = await desk.revisions(asset_id)
    assert (logged.approval_state, logged.processing_state) == (FAILED, ProcessingState.FAILED)
    assert "it failed" in str(logged.last_error)


@pytest.mark.parametrize("decide", [Desk.approve, Desk.reject])
async def test_failed_version_cannot_be_decided_on(desk: Desk, decide: object) -> None:
    asset_id = await failed(desk)
    with pytest.raises(Refused) as refused:
        await decide(desk, asset_id)  # type: ignore[operator]
    assert code_of(refused.value) == "not_processed"
    assert "overwrite=true" in str(refused.value.hint)
    assert "graticule asset retry" in str(refused.value.hint)


async def test_failed_version_does_not_block_the_next_label(desk: Desk) -> None:
    asset_id = await failed(desk)
    second = await desk.submit("V2")
    await desk.process(second)
    assert (await desk.approve(asset_id)).asset.latest_approved_version_ordinal == 1
    # Nothing awaits a decision, so the first may be tried again now.
    await desk.process(await desk.retry(asset_id, 0), "b")
    assert (await desk.version(asset_id, 0)).approval_state is PENDING


async def test_several_failed_versions_stand_beside_each_other(desk: Desk) -> None:
    asset_id = await failed(desk, "V1")
    await failed(desk, "V2")
    await desk.process(await desk.submit("V3"))
    assert [each.approval_state for each in await desk.versions(asset_id)] == [FAILED, FAILED, PENDING]


async def test_failed_version_waits_while_a_newer_one_awaits_its_approval(desk: Desk) -> None:
    """Two versions never await their first approval at once, whichever way the failed one would go on."""
    receipt = await desk.submit()
    await desk.fail(receipt.job_id)
    second = await desk.submit("V2")
    await desk.process(second)
    assert receipt.job_id is not None
    for go_on in (
        lambda: desk.retry(receipt.asset_id, 0),
        lambda: desk.submit("V1", overwrite=True),
        lambda: desk.bench.jobs.resume(receipt.job_id),
    ):
        with pytest.raises(Refused) as refused:
            await go_on()
        assert code_of(refused.value) in {"version_unresolved", "job_superseded"}
    await desk.reject(receipt.asset_id, 1)
    with pytest.raises(Refused, match="version 1 is rejected"):
        await desk.bench.jobs.resume(receipt.job_id)
    await desk.delete(receipt.asset_id, 1)
    await desk.bench.jobs.resume(receipt.job_id)
    await desk.process(receipt)
    assert (await desk.version(receipt.asset_id, 0)).approval_state is PENDING


async def test_a_version_beside_a_revoked_one_waits_while_that_is_processed_again(desk: Desk) -> None:
    """It may turn out to have another content: then both would await their approval, and its job could not end."""
    asset_id = await desk.approved("V1")
    await desk.approved("V2", content="c")
    for ordinal in (0, 1):
        await desk.revoke(asset_id, ordinal)
    again = await desk.reprocess(asset_id, 0)
    with pytest.raises(Refused) as refused:
        await desk.submit("V2", overwrite=True)
    assert code_of(refused.value) == "version_processing"
    await desk.fail(again.job_id)
    second = await desk.submit("V2", overwrite=True)
    assert again.job_id is not None
    with pytest.raises(Refused, match="version 1 is pending_review"):
        await desk.bench.jobs.resume(again.job_id)
    await desk.process(second, "d")
    await desk.reject(asset_id, 1)
    await desk.delete(asset_id, 1)
    await desk.bench.jobs.resume(again.job_id)
    await desk.process(again, "b")
    assert (await desk.version(asset_id, 0)).approval_state is PENDING


async def test_job_count_is_of_processing_alone(desk: Desk) -> None:
    asset_id = await desk.exported()
    await desk.clear(asset_id, "ouo")
    assert len(await desk.jobs(asset_id)) == 3
    assert (await desk.version(asset_id)).job_count == 1
    await desk.process(await desk.submit(overwrite=True), "b")
    assert (await desk.version(asset_id)).job_count == 2
