"""Every state that a version and its asset can have, every deed, and what the rules say of it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final
from uuid import UUID, uuid4

from tests.integration.services.desk import Desk, submission

from graticule.core.asset_names import asset_id_of
from graticule.core.models import AssetRevision, AssetVersion, GeospatialAsset, PlatformRequest
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState

NOW: Final = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
QUEUED, PROCESSING, COMPLETED, FAILED = ProcessingState
UNDER_WAY: Final = (QUEUED, PROCESSING)
PENDING, APPROVED, REJECTED, _ = ApprovalState
REVOKED: Final = "revoked"
UNCLEARED, OUO, PUBLIC = ClearanceState


@dataclass(frozen=True)
class State:
    """A version, the only one of its asset, and that asset."""

    processing: ProcessingState
    approval: str
    clearance: ClearanceState
    serves_earlier: bool = False  # an earlier revision is in service
    is_deleted: bool = False
    is_unpublished: bool = False
    refs: Mapping[str, str] = field(default_factory=lambda: {"dataset_id": uuid4().hex, "resource_id": "r"})

    @property
    def asset_id(self) -> str:
        return asset_id_of("ddh", self.refs)

    @property
    def in_service(self) -> bool:
        return self.approval == APPROVED or self.serves_earlier

    @property
    def revision(self) -> int:
        return 2 if self.serves_earlier or (self.approval == APPROVED and self.processing is not COMPLETED) else 1

    @property
    def approved_revision(self) -> int | None:
        if self.approval == APPROVED:
            return 1 if self.processing is not COMPLETED else self.revision
        return 1 if self.serves_earlier else None

    def __str__(self) -> str:
        told = [self.processing, self.approval, self.clearance]
        told += [name for name in ("serves_earlier", "is_deleted", "is_unpublished") if getattr(self, name)]
        return " ".join(told)


def states() -> Iterator[State]:
    """Give every combination that can be: an approval clears, and an unpublished asset has only deleted versions."""
    approvals = [
        *((PENDING, earlier) for earlier in (False, True)),
        *((REJECTED, earlier) for earlier in (False, True)),
        *((APPROVED, False), (REVOKED, False)),
    ]
    for processing, (approval, earlier), clearance in product(ProcessingState, approvals, ClearanceState):
        if clearance is UNCLEARED and (approval in {APPROVED, REVOKED} or earlier):
            continue
        for is_deleted, is_unpublished in ((False, False), (True, False), (True, True)):
            if is_deleted and earlier:
                continue  # what is gone is gone
            yield State(processing, approval, clearance, earlier, is_deleted, is_unpublished)


@dataclass(frozen=True)
class Deed:
    """What is asked, what the rules say in each state (ok, same, or the name of the refusal), and the event of it."""

    act: Callable[[Desk, State], Awaitable[Any]]
    expected: Callable[[State], str]
    event: str
    by_clearance: bool = False  # on an approved version it is the clearance that changes


def _resubmission(state: State, *, overwrite: bool) -> str:
    if state.is_deleted:
        return "ok"  # the label is free again
    if not overwrite:
        return "version_exists"
    return "version_processing" if state.processing in UNDER_WAY else "ok"


def _new_label(state: State) -> str:
    if state.is_deleted:
        return "ok"
    if state.approval == PENDING and state.processing is FAILED:
        return "ok"  # nothing awaits a decision
    if state.approval != APPROVED:
        return "version_unresolved"
    # Its approval may be void when processing ends.
    if state.processing in UNDER_WAY:
        return "version_processing"
    return "version_unresolved" if state.processing is FAILED else "ok"


def _of_version(rule: Callable[[State], str]) -> Callable[[State], str]:
    """Say what holds before any rule of a version."""

    def expected(state: State) -> str:
        if state.is_unpublished:
            return "asset_deleted"
        return "version_deleted" if state.is_deleted else rule(state)

    return expected


def _of_asset(rule: Callable[[State], str]) -> Callable[[State], str]:
    return lambda state: "asset_deleted" if state.is_unpublished else rule(state)


def _approval(level: ClearanceState) -> Callable[[State], str]:
    def rule(state: State) -> str:
        if state.approval == APPROVED:
            return "same" if state.clearance is level else "ok"
        if state.approval in {REJECTED, REVOKED}:
            return "version_rejected"
        return "ok" if state.processing is COMPLETED else "not_processed"

    return _of_version(rule)


def _rejection(state: State) -> str:
    if state.approval == APPROVED:
        return "version_approved"
    if state.approval in {REJECTED, REVOKED}:
        return "version_rejected"
    if state.processing is FAILED:
        return "not_processed"
    return "version_processing" if state.processing in UNDER_WAY else "ok"


def _clearance(level: ClearanceState) -> Callable[[State], str]:
    def rule(state: State) -> str:
        if state.is_deleted or not state.in_service:
            return "not_approved"
        return "same" if state.clearance is level else "ok"

    return _of_asset(rule)


def _again(desk: Desk, state: State, label: str, *, overwrite: bool = False) -> Awaitable[Any]:
    return desk.submit(label, platform_refs=dict(state.refs), overwrite=overwrite)


DEEDS: Final[Mapping[str, Deed]] = {
    "submit the label": Deed(
        lambda desk, state: _again(desk, state, "V1"),
        lambda state: _resubmission(state, overwrite=False),
        "version_added",
    ),
    "overwrite": Deed(
        lambda desk, state: _again(desk, state, "V1", overwrite=True),
        lambda state: _resubmission(state, overwrite=True),
        "version_overwritten",
    ),
    "submit a new label": Deed(lambda desk, state: _again(desk, state, "V2"), _new_label, "version_added"),
    "retry": Deed(
        lambda desk, state: desk.retry(state.asset_id, 0),
        _of_version(lambda state: "ok" if state.processing is FAILED else "not_failed"),
        "version_retried",
    ),
    "reprocess": Deed(
        lambda desk, state: desk.reprocess(state.asset_id, 0),
        _of_version(lambda state: "version_processing" if state.processing in UNDER_WAY else "ok"),
        "version_reprocessed",
    ),
    "approve for ouo": Deed(
        lambda desk, state: desk.approve(state.asset_id, "ouo", 0), _approval(OUO), "approved", by_clearance=True
    ),
    "approve for the public": Deed(
        lambda desk, state: desk.approve(state.asset_id, "public", 0), _approval(PUBLIC), "approved", by_clearance=True
    ),
    "reject": Deed(lambda desk, state: desk.reject(state.asset_id, 0), _of_version(_rejection), "rejected"),
    "revoke": Deed(
        lambda desk, state: desk.revoke(state.asset_id, 0),
        _of_version(lambda state: "ok" if state.in_service else "not_approved"),
        "revoked",
    ),
    "clear for ouo": Deed(lambda desk, state: desk.clear(state.asset_id, "ouo"), _clearance(OUO), "clearance_changed"),
    "clear for the public": Deed(
        lambda desk, state: desk.clear(state.asset_id, "public"), _clearance(PUBLIC), "clearance_changed"
    ),
    "serve all versions": Deed(
        lambda desk, state: desk.set_url_mode(state.asset_id, "all_versions"),
        _of_asset(lambda _: "ok"),
        "url_mode_changed",
    ),
    "serve the latest only": Deed(
        lambda desk, state: desk.set_url_mode(state.asset_id, "latest_only"),
        _of_asset(lambda _: "same"),
        "url_mode_changed",
    ),
    "delete": Deed(lambda desk, state: desk.delete(state.asset_id, 0), _of_version(lambda _: "ok"), "version_deleted"),
    "unpublish": Deed(lambda desk, state: desk.unpublish(state.asset_id), _of_asset(lambda _: "ok"), "unpublished"),
}


def events_of(deed: Deed, state: State) -> list[str]:
    """Name the events of what people did that a deed leaves which is done."""
    if deed.event in {"version_added", "version_overwritten"} and state.is_deleted:
        return ["revived"] * state.is_unpublished + ["version_added"]
    return ["clearance_changed" if deed.by_clearance and state.approval == APPROVED else deed.event]


def rows_of(all_states: Sequence[State]) -> list[list[Any]]:
    """Give the rows of assets in these states, in an order in which they can be inserted."""
    requests = [uuid4() for _ in all_states]
    return [
        [_asset(state) for state in all_states],
        [_request(state, key) for state, key in zip(all_states, requests, strict=True)],
        [_version(state, key) for state, key in zip(all_states, requests, strict=True)],
        [_revision(state) for state in all_states if state.revision > 1],
    ]


def _asset(state: State) -> GeospatialAsset:
    cleared, public = state.clearance is not UNCLEARED, state.clearance is PUBLIC
    values = {
        "asset_id": state.asset_id,
        "short_id": state.asset_id[:16],
        "platform_id": "ddh",
        "platform_refs": dict(state.refs),
        "data_type": "raster",
        "clearance_state": state.clearance,
        **(_who("cleared") if cleared else {}),
        **(_who("made_public") if public else {}),
        "latest_approved_version_ordinal": 0 if state.in_service and not state.is_deleted else None,
        **(_who("deleted") if state.is_unpublished else {}),
    }
    return GeospatialAsset.model_validate({**values, "created_at": NOW, "updated_at": NOW})


def _version(state: State, request_id: UUID) -> AssetVersion:
    reviewed = {"reviewer": "rob", "reviewed_at": NOW}
    by_approval: dict[str, dict[str, Any]] = {
        PENDING: {},
        APPROVED: reviewed,
        REJECTED: {**reviewed, "rejection_reason": "clouds"},
        REVOKED: {**reviewed, "rejection_reason": "wrong place", "revoked_at": NOW},
    }
    exported = state.clearance is PUBLIC and state.in_service
    values = {
        "asset_id": state.asset_id,
        "version_ordinal": 0,
        "version_label": "V1",
        "approval_state": REJECTED if state.approval == REVOKED else state.approval,
        **by_approval[state.approval],
        "processing_state": state.processing,
        "last_error": "it failed" if state.processing is FAILED else None,
        "revision": state.revision,
        "approved_revision": state.approved_revision,
        "last_request_id": request_id,
        "external_blob_path": "external" if exported else None,
        "export_run_id": "run" if exported else None,
        "exported_revision": state.approved_revision if exported else None,
        **(_who("deleted") if state.is_deleted else {}),
    }
    return AssetVersion.model_validate({**values, "created_at": NOW, "updated_at": NOW})


def _revision(state: State) -> AssetRevision:
    values = {"asset_id": state.asset_id, "version_ordinal": 0, "revision": 1, "outputs": {"blob_path": "r1"}}
    states_then = {"approval_state": APPROVED, "clearance_state": OUO, "reviewer": "rob"}
    return AssetRevision.model_validate({**values, **states_then, "created_at": NOW, "superseded_at": NOW})


def _request(state: State, request_id: UUID) -> PlatformRequest:
    body = submission(platform_refs=dict(state.refs)).model_dump(mode="json")
    values = {"request_id": request_id, "platform_id": "ddh", "asset_id": state.asset_id, "version_ordinal": 0}
    more = {"request_body": {"submission": body}, "revision": state.revision, "created_at": NOW, "updated_at": NOW}
    return PlatformRequest.model_validate({**values, **more})


def _who(done: str) -> dict[str, Any]:
    return {f"{done}_at": NOW, f"{done}_by": "rob"}
