"""For every pair of states: the repository moves the row exactly when the table allows it, and else changes nothing.

Jobs and nodes are moved by steps alone: see `test_step_statements.py`.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from tests.integration.repositories import rows
from tests.integration.repositories.rows import ASSET, LATER, NOW

from graticule.core.errors import Conflict, IllegalTransition, NotFound, StaleVersion
from graticule.core.ids import AssetId, JobId
from graticule.core.states import (
    APPROVAL,
    CLEARANCE,
    PROCESSING,
    REQUEST,
    ApprovalState,
    ClearanceState,
    ProcessingState,
    RequestStatus,
    Transitions,
)
from graticule.core.table import Row
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.base import Repository
from graticule.repositories.database import Connection
from graticule.repositories.requests import RequestRepository


async def _every_pair(
    table: Transitions[Any],
    states: type[StrEnum],
    repository: Repository[Any],
    make: Callable[[int, StrEnum], Row],
    move: Callable[[Any, StrEnum], Awaitable[Row]],
    *,
    column: str = "status",
) -> None:
    for number, (old, new) in enumerate(product(states, states)):
        row = await repository.insert(make(number, old))
        key = {name: getattr(row, name) for name in row.table.primary_key}
        if table.allows(old, new):
            assert getattr(await move(row, new), column) == new
            assert getattr(await repository.get(**key), column) == new
        else:
            with pytest.raises(IllegalTransition, match=f"is {old} and cannot become {new}"):
                await move(row, new)
            assert await repository.get(**key) == row


async def test_approvals(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    given: dict[ApprovalState, dict[str, Any]] = {
        ApprovalState.APPROVED: {"reviewer": "r", "reviewed_at": NOW},
        ApprovalState.REJECTED: {"rejection_reason": "bad"},
        ApprovalState.PENDING_REVIEW: {},
    }

    def make(number: int, old: StrEnum) -> Row:
        return rows.version(number, asset_id=f"{number:032x}", approval_state=old, **given[ApprovalState(old)])

    async def move(version: Any, new: StrEnum) -> Row:
        return await versions.review(
            version.asset_id, version.version_ordinal, ApprovalState(new), LATER, reviewer="me", rejection_reason="bad"
        )

    await _assets(with_job, len(ApprovalState) ** 2)
    await _every_pair(APPROVAL, ApprovalState, versions, make, move, column="approval_state")


async def test_clearance(with_job: Connection) -> None:
    assets = AssetRepository(with_job)
    given: dict[ClearanceState, dict[str, Any]] = {
        ClearanceState.UNCLEARED: {},
        ClearanceState.OUO: {"cleared_at": NOW, "cleared_by": "r"},
        ClearanceState.PUBLIC: {"cleared_at": NOW, "cleared_by": "r", "made_public_at": NOW, "made_public_by": "r"},
    }

    def make(number: int, old: StrEnum) -> Row:
        return rows.asset(f"{number + 100:032x}", clearance_state=old, **given[ClearanceState(old)])

    async def move(asset: Any, new: StrEnum) -> Row:
        return await assets.clear(asset.asset_id, ClearanceState(new), LATER, actor="me", version=asset.version)

    await _every_pair(CLEARANCE, ClearanceState, assets, make, move, column="clearance_state")


async def test_a_clearance_of_an_asset_that_was_changed_meanwhile_is_refused(with_job: Connection) -> None:
    assets = AssetRepository(with_job)
    public = await assets.clear(AssetId(ASSET), ClearanceState.PUBLIC, LATER, actor="ann", version=1)
    assert (public.cleared_by, public.made_public_by, public.made_public_at, public.version) == ("ann", "ann", LATER, 2)
    with pytest.raises(StaleVersion):
        await assets.clear(AssetId(ASSET), ClearanceState.OUO, LATER, actor="bob", version=1)
    assert await assets.get(asset_id=ASSET) == public
    assert (
        await assets.clear(AssetId(ASSET), ClearanceState.OUO, LATER, actor="bob", version=2)
    ).made_public_at is None


async def test_processing(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)

    def make(number: int, old: StrEnum) -> Row:
        return rows.version(number, asset_id=f"{number:032x}", processing_state=old)

    async def move(version: Any, new: StrEnum) -> Row:
        return await versions.process(version.asset_id, version.version_ordinal, ProcessingState(new), LATER)

    await _assets(with_job, len(ProcessingState) ** 2)
    await _every_pair(PROCESSING, ProcessingState, versions, make, move, column="processing_state")


async def test_requests(with_job: Connection) -> None:
    requests = RequestRepository(with_job)

    def make(number: int, old: StrEnum) -> Row:
        return rows.request(UUID(int=number), status=old, last_error="e" if old == "failed" else None)

    async def move(request: Any, new: StrEnum) -> Row:
        return await requests.transition(request.request_id, RequestStatus(new), LATER, last_error="e")

    await _every_pair(REQUEST, RequestStatus, requests, make, move)


async def _assets(connection: Connection, count: int) -> None:
    await AssetRepository(connection).insert_many([rows.asset(f"{number:032x}") for number in range(count)])


async def test_a_review_keeps_who_and_when_and_a_new_revision_forgets_them(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    await versions.insert(rows.version())
    approved = await versions.review(ASSET, 0, ApprovalState.APPROVED, NOW, reviewer="Zoë")
    assert (approved.reviewer, approved.reviewed_at, approved.rejection_reason) == ("Zoë", NOW, None)
    revoked = await versions.review(ASSET, 0, ApprovalState.REJECTED, LATER, reviewer="Ann", rejection_reason="old")
    assert (revoked.reviewer, revoked.reviewed_at, revoked.rejection_reason) == ("Ann", LATER, "old")
    anew = await versions.review(ASSET, 0, ApprovalState.PENDING_REVIEW, LATER)
    assert (anew.reviewer, anew.reviewed_at, anew.rejection_reason) == (None, None, None)
    for state, given in ((ApprovalState.APPROVED, {}), (ApprovalState.REJECTED, {"reviewer": "Ann"})):
        with pytest.raises(Conflict):
            await versions.review(ASSET, 0, state, LATER, **given)
    assert await versions.get(asset_id=ASSET, version_ordinal=0) == anew


async def test_processing_keeps_its_times_and_its_last_error(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    await versions.insert(rows.version())
    started = await versions.process(ASSET, 0, ProcessingState.PROCESSING, NOW)
    assert (started.processing_started_at, started.processing_completed_at) == (NOW, None)
    failed = await versions.process(ASSET, 0, ProcessingState.FAILED, LATER, last_error="why")
    assert (failed.processing_started_at, failed.processing_completed_at, failed.last_error) == (NOW, LATER, "why")
    again = await versions.process(ASSET, 0, ProcessingState.QUEUED, LATER)
    assert (again.processing_started_at, again.processing_completed_at, again.last_error) == (None, None, None)


async def test_a_request_keeps_its_job_and_counts_its_retries(with_job: Connection) -> None:
    requests = RequestRepository(with_job)
    request = (await requests.insert(rows.request())).request_id
    assert (await requests.transition(request, RequestStatus.PROCESSING, NOW, job_id=JobId("job"))).job_id == "job"
    failed = await requests.transition(request, RequestStatus.FAILED, LATER, last_error="why")
    assert (failed.job_id, failed.last_error, failed.retry_count) == ("job", "why", 0)
    again = await requests.transition(request, RequestStatus.ACCEPTED, LATER)
    assert (again.last_error, again.retry_count, again.updated_at) == (None, 1, LATER)


async def test_a_deleted_version_moves_no_more(with_job: Connection) -> None:
    versions = AssetVersionRepository(with_job)
    deleted = await versions.insert(rows.version(deleted_at=NOW, deleted_by="x"))
    with pytest.raises(Conflict, match="deleted"):
        await versions.review(ASSET, 0, ApprovalState.APPROVED, LATER, reviewer="r")
    with pytest.raises(Conflict, match="deleted"):
        await versions.process(ASSET, 0, ProcessingState.PROCESSING, LATER)
    assert await versions.get(asset_id=ASSET, version_ordinal=0) == deleted


async def test_what_is_not_there_is_not_found_rather_than_an_illegal_step(with_job: Connection) -> None:
    with pytest.raises(NotFound):
        await RequestRepository(with_job).transition(rows.REQUEST, RequestStatus.PROCESSING, NOW)
    with pytest.raises(NotFound):
        await AssetVersionRepository(with_job).review(ASSET, 5, ApprovalState.APPROVED, NOW, reviewer="r")
