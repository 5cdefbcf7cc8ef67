"""In every state of a version: a statement moves the row exactly when the rules let it, and else changes nothing.

Jobs and nodes are moved by steps alone: see `test_step_statements.py`. So are versions and requests while they are
processed: see `test_asset_requests.py` of the services.
"""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW

from graticule.core.errors import StaleVersion
from graticule.core.ids import AssetId, JobId
from graticule.core.models import AssetVersion
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection
from graticule.repositories.requests import RequestRepository

QUEUED, PROCESSING, COMPLETED, FAILED = ProcessingState
PENDING, APPROVED, REJECTED, _ = ApprovalState
AT_REST = (COMPLETED, FAILED)
REVIEWED: dict[str, Any] = {"reviewer": "r", "reviewed_at": NOW}
BY_APPROVAL: dict[ApprovalState, dict[str, Any]] = {
    PENDING: {},
    APPROVED: {**REVIEWED, "approved_revision": 1},
    REJECTED: {**REVIEWED, "rejection_reason": "bad"},
}
Move = Callable[[AssetVersionRepository, AssetVersion], Awaitable[AssetVersion | None]]
BEGUN = {"request_id": rows.REQUEST, "priority": 5, "estimated_completion_at": LATER}


async def _deleted(versions: AssetVersionRepository, version: AssetVersion) -> AssetVersion | None:
    found = await versions.delete(AssetId(version.asset_id), version.version_ordinal, "me", LATER)
    return found[0] if found else None


# Each with the states in which it may be done; none with a version that was deleted.
MOVES: dict[str, tuple[Move, Callable[[ProcessingState, ApprovalState], bool]]] = {
    "approve": (
        lambda versions, version: versions.approve(version, "me", LATER),
        lambda processing, approval: processing is COMPLETED and approval is PENDING,
    ),
    "reject": (
        lambda versions, version: versions.reject(version, "clouds", "me", LATER),
        lambda processing, approval: processing is COMPLETED and approval is PENDING,
    ),
    "revoke": (
        lambda versions, version: versions.revoke(version, "old", "me", LATER),
        lambda _, approval: approval is APPROVED,
    ),
    "overwrite": (
        lambda versions, version: versions.begin_revision(version, keeps_approval=False, now=LATER, **BEGUN),
        lambda processing, _: processing in AT_REST,
    ),
    "reprocess": (
        lambda versions, version: versions.begin_revision(version, keeps_approval=True, now=LATER, **BEGUN),
        lambda processing, _: processing in AT_REST,
    ),
    "retry": (
        lambda versions, version: versions.retry(version, LATER, LATER),
        lambda processing, _: processing is FAILED,
    ),
    "delete": (_deleted, lambda *_: True),
}


@pytest.mark.parametrize("name", MOVES)
async def test_a_version_is_moved_exactly_where_the_rules_let_it(with_job: Connection, name: str) -> None:
    versions = AssetVersionRepository(with_job)
    move, allows = MOVES[name]
    states = [*product(ProcessingState, BY_APPROVAL, (False, True))]
    await AssetRepository(with_job).insert_many([rows.asset(f"{number:032x}") for number in range(len(states))])
    for number, (processing, approval, is_deleted) in enumerate(states):
        given = {**BY_APPROVAL[approval], **({"deleted_at": NOW, "deleted_by": "x"} if is_deleted else {})}
        asset_id = f"{number:032x}"
        row = rows.version(asset_id=asset_id, processing_state=processing, approval_state=approval, **given)
        before = await versions.insert(row)
        moved = await move(versions, before)
        after = await versions.get(asset_id=asset_id, version_ordinal=0)
        if allows(processing, approval) and not is_deleted:
            assert moved == after != before
        else:
            assert moved is None
            assert after == before


async def test_a_review_keeps_who_and_when_and_a_new_revision_forgets_them(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    version = await versions.insert(rows.version(processing_state=COMPLETED))
    approved = await versions.approve(version, "Zoë", NOW)
    assert approved is not None
    assert (approved.reviewer, approved.reviewed_at, approved.approved_revision) == ("Zoë", NOW, 1)
    revoked = await versions.revoke(approved, "old", "Ann", LATER)
    assert revoked is not None
    assert (revoked.reviewer, revoked.reviewed_at, revoked.rejection_reason) == ("Ann", LATER, "old")
    assert (revoked.revoked_at, revoked.approved_revision) == (LATER, None)
    anew = await versions.begin_revision(revoked, keeps_approval=False, now=LATER, **BEGUN)
    assert anew is not None
    assert (anew.reviewer, anew.reviewed_at, anew.rejection_reason, anew.revoked_at) == (None, None, None, None)
    assert (anew.revision, anew.processing_state, anew.priority) == (2, QUEUED, 5)


async def test_a_new_revision_leaves_outputs_and_what_is_in_service_and_only_a_reprocessing_the_approval(
    with_job: Connection,
) -> None:
    versions = AssetVersionRepository(with_job)
    made: dict[str, Any] = {"blob_path": "b", "content_hash": "a" * 64, "processing_state": COMPLETED}
    version = await versions.insert(rows.version(approval_state=APPROVED, **BY_APPROVAL[APPROVED], **made))
    again = await versions.begin_revision(version, keeps_approval=True, now=LATER, **BEGUN)
    assert again is not None
    assert (again.approval_state, again.reviewer, again.approved_revision) == (APPROVED, "r", 1)
    assert (again.blob_path, again.content_hash) == ("b", "a" * 64)
    await with_job.execute("UPDATE dagapp.asset_versions SET processing_state = 'failed'")
    over = await versions.begin_revision(again, keeps_approval=False, now=LATER, **BEGUN)
    assert over is not None
    assert (over.approval_state, over.reviewer, over.approved_revision, over.blob_path) == (PENDING, None, 1, "b")


async def test_all_versions_of_an_asset_are_deleted_once(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    for ordinal in range(3):
        await versions.insert(rows.version(ordinal, approval_state=APPROVED, **BY_APPROVAL[APPROVED]))
    await versions.delete(AssetId(ASSET), 1, "ann", NOW)
    assert [each.version_ordinal for each in await versions.delete(AssetId(ASSET), None, "bob", LATER)] == [0, 2]
    assert [each.deleted_by for each in await versions.of_asset(AssetId(ASSET))] == ["bob", "ann", "bob"]
    assert await versions.delete(AssetId(ASSET), None, "bob", LATER) == []


async def test_an_asset_that_was_changed_meanwhile_is_not_written(with_job: Connection) -> None:
    assets = AssetRepository(with_job)
    seen = await assets.get(asset_id=ASSET)
    cleared = {"clearance_state": ClearanceState.OUO, "cleared_at": LATER, "cleared_by": "ann"}
    changed = await assets.replace(seen.model_copy(update=cleared))
    assert (changed.version, changed.cleared_by) == (seen.version + 1, "ann")
    with pytest.raises(StaleVersion):
        await assets.replace(seen.model_copy(update={**cleared, "cleared_by": "bob"}))
    assert await assets.get(asset_id=ASSET) == changed


async def test_a_request_that_is_retried_has_its_new_job_and_counts(with_job: Connection) -> None:
    requests = RequestRepository(with_job)
    await requests.insert(rows.request(status=RequestStatus.FAILED, last_error="why", job_id=JobId("old")))
    again = await requests.retry(rows.REQUEST, JobId("job"), LATER)
    assert again is not None
    assert (again.job_id, again.retry_count, again.last_error, again.updated_at) == ("job", 1, None, LATER)
    assert again.status is RequestStatus.ACCEPTED
    assert await requests.retry(UUID(int=7), JobId("job"), LATER) is None
