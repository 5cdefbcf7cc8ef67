"""How a request stands: what became of the revision that it made, whatever came after it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from graticule.core.asset_views import OperatorStatus
from graticule.core.exchange import (
    CopyState,
    DecisionState,
    PlatformStatus,
    PublicCopy,
    ReviewOutcome,
    VersionInBrief,
)
from graticule.core.models import AssetRevision, AssetVersion
from graticule.core.models.engine import EventType
from graticule.core.models.platform import UrlMode
from graticule.core.permissions import Caller, Deed
from graticule.core.states import ApprovalState, ProcessingState, RequestStatus
from graticule.core.validation import ValidationReport
from graticule.repositories.asset_views import Publication, RequestInFull
from graticule.services.job_reading import Progress
from graticule.services.service_addresses import ServiceAddresses

UNDER_WAY: Final = frozenset({RequestStatus.ACCEPTED, RequestStatus.PROCESSING})
WITHDRAWALS: Final = frozenset(
    {
        *(EventType.ASSET_REVERSAL_COMPLETED, EventType.ASSET_REVERSAL_FAILED),
        *(EventType.ASSET_UNPUBLISH_COMPLETED, EventType.ASSET_UNPUBLISH_FAILED),
    }
)
FAILED_WITHDRAWALS: Final = frozenset({EventType.ASSET_REVERSAL_FAILED, EventType.ASSET_UNPUBLISH_FAILED})
DECISIONS: Final = {
    EventType.ASSET_APPROVED: DecisionState.APPROVED,
    EventType.ASSET_REJECTED: DecisionState.REJECTED,
    EventType.ASSET_REVOKED: DecisionState.REVOKED,
}
NOT_COPIED: Final = "The copy for the public could not be made"
NOT_REMOVED: Final = "The copies for the public could not be removed"
NOT_SHOWN: Final = " Nobody is shown them any more."
OF_OURS: Final = ", for a reason of ours; the operators see it."
PROGRESS_OF_NEXT: Final = {
    ProcessingState.QUEUED: "waits to be processed",
    ProcessingState.PROCESSING: "is being processed",
    ProcessingState.FAILED: "failed",
}
AFTER_FAILURE: Final = (
    "Submit a corrected file with the same version label and overwrite=true, or have the same file processed again:"
    " POST /api/platform/retry with this request_id. The next version label can be submitted meanwhile."
)
AFTER_REJECTION: Final = "Submit a corrected file with the same version label and overwrite=true."


@dataclass(frozen=True, slots=True)
class RequestStatusView:
    """Puts together the status document of one request."""

    found: RequestInFull
    progress: Progress
    addresses: ServiceAddresses
    now: datetime
    of_asset: bool = False  # asked for by its asset, whose latest version may be another one

    @property
    def is_current(self) -> bool:
        """Whether no newer revision has taken the place of the request's own."""
        return self.found.request.revision == self.found.version.revision

    @property
    def revision(self) -> AssetVersion | AssetRevision | None:
        """Return the row that has what became of the request's revision."""
        return self.found.version if self.is_current else self.found.superseded

    @property
    def stays_approved(self) -> bool:
        """Whether the request's revision is the approved one although a newer revision was submitted."""
        version = self.found.version
        is_removed = version.deleted_at is not None or self.found.asset.deleted_at is not None
        return not self.is_current and not is_removed and version.approved_revision == self.found.request.revision

    def document(self, caller: Caller) -> PlatformStatus:
        """Return what the caller may see; operators see more."""
        status = self._status(caller)
        if not caller.may(Deed.OPERATE):
            return status
        request, version = self.found.request, self.found.version
        return OperatorStatus(
            **{**dict(status), "error": self._full_error()},
            job_id=request.job_id or (version.current_job_id if self.is_current else None),
            workflow_id=version.workflow_id,
            job_count=version.job_count,
            retry_count=request.retry_count,
            current_nodes=self.progress.current,
        )

    def _status(self, caller: Caller) -> PlatformStatus:
        request, version, asset = self.found.request, self.found.version, self.found.asset
        decision, copy = self._decision(caller), public_copy(self.found, with_cause=caller.may(Deed.OPERATE))
        served = self._served()
        return PlatformStatus(
            request_id=request.request_id,
            asset_id=request.asset_id,
            data_type=asset.data_type,
            status=request.status,
            state_reason=self._reason(decision, copy),
            next_step=self._next_step(decision),
            progress=100 if request.status is RequestStatus.COMPLETED else self.progress.percent,
            eta=self._eta(),
            version=_in_brief(version, request.revision),
            superseded_by=None if self.stays_approved else self.found.superseded_by,
            processing_state=self._processing_state(),
            approval_state=self._approval_state(decision),
            decision=decision,
            clearance_state=asset.clearance_state,
            clearance_requested=_submission(request.request_body).get("clearance_level"),
            export=copy,
            in_service=served and _in_brief(served, served.approved_revision or served.revision),
            service_urls={} if served is None else self.addresses.of_version(asset, served),
            removed_at=asset.deleted_at or version.deleted_at,
            error=request.last_error,
            validation=ValidationReport.read(self._own("validation")),
            **self._times(decision),
        )

    def _times(self, decision: ReviewOutcome | None) -> dict[str, datetime | None]:
        superseded, asset = None if self.stays_approved else self.found.superseded, self.found.asset
        is_revoked = decision is not None and decision.state is DecisionState.REVOKED
        return {
            "accepted_at": self.found.request.created_at,
            "processing_started_at": self._own("processing_started_at"),
            "processing_completed_at": self._own("processing_completed_at"),
            "reviewed_at": decision and decision.at,
            "cleared_at": asset.cleared_at,
            "made_public_at": asset.made_public_at,
            "exported_at": _exported_at(self.found),
            "superseded_at": superseded and superseded.superseded_at,
            "withdrawn_at": decision.at if decision is not None and is_revoked else None,
        }

    def _own(self, name: str) -> Any:
        """Return a value of the request's own revision; None where nobody kept it."""
        return getattr(self.revision, name, None)

    def _processing_state(self) -> ProcessingState:
        return self._own("processing_state") or ProcessingState(
            {RequestStatus.ACCEPTED: "queued"}.get(self.found.request.status, self.found.request.status.value)
        )

    def _decision(self, caller: Caller) -> ReviewOutcome | None:
        """Return the decision on this revision.

        A revision of the same content keeps the decision on the one before; one that is being processed, or failed to
        be, has none yet.
        """
        revision, event = self.revision, self.found.decision
        is_own = event is not None and event.data.get("revision") == self.found.request.revision
        is_kept = self._own("approval_state") in {ApprovalState.APPROVED, ApprovalState.REJECTED}
        if not is_own and not (is_kept and self._processing_state() is ProcessingState.COMPLETED):
            return None
        if event is None:
            return None if revision is None else _logged_decision(revision, caller)
        reason, note = event.data.get("reason"), event.data.get("note")
        return ReviewOutcome(
            state=DECISIONS[event.event_type],
            by=event.actor if caller.is_staff else None,
            at=event.created_at,
            reason=None if reason is None else str(reason),
            note=None if note is None else str(note),
        )

    def _approval_state(self, decision: ReviewOutcome | None) -> ApprovalState:
        if decision is not None:
            is_approved = decision.state is DecisionState.APPROVED
            return ApprovalState.APPROVED if is_approved else ApprovalState.REJECTED
        is_failed = self._processing_state() is ProcessingState.FAILED
        return ApprovalState.FAILED if is_failed else ApprovalState.PENDING_REVIEW

    def _reason(self, decision: ReviewOutcome | None, copy: PublicCopy) -> str | None:
        if self.found.request.last_error:
            return self.found.request.last_error
        if decision is not None and decision.reason:
            return f"{decision.state.value.capitalize()}: {decision.reason}"
        if copy.error:
            return copy.error
        if self.found.asset.deleted_at:
            return "The asset was unpublished."
        return "The version was deleted." if self.found.version.deleted_at else self._reason_of_newer()

    def _reason_of_newer(self) -> str | None:
        """Return what a newer revision means for this one: it has taken its place, or not yet."""
        version, following = self.found.version, self.found.superseded_by
        if not self.stays_approved:
            return None if following is None else f"Revision {following.revision} has taken its place."
        is_rejected = version.approval_state is ApprovalState.REJECTED
        decision = "was rejected" if is_rejected else "waits for a decision"
        progress = PROGRESS_OF_NEXT.get(version.processing_state, decision)
        standing = "in service" if self._is_reached(version) else "approved"
        return f"Revision {version.revision} {progress}; revision {self.found.request.revision} stays {standing}."

    def _next_step(self, decision: ReviewOutcome | None) -> str | None:
        """Return how to go on; a revision that was superseded, or is gone, needs nothing."""
        version, asset = self.found.version, self.found.asset
        if not self.is_current or version.deleted_at or asset.deleted_at:
            return None
        if self.found.request.status is RequestStatus.FAILED:
            return AFTER_FAILURE
        is_refused = decision is not None and decision.state is not DecisionState.APPROVED
        return AFTER_REJECTION if is_refused else None

    def _eta(self) -> datetime | None:
        """Return when the request will probably have ended; a time that has passed says nothing."""
        eta = self.found.version.estimated_completion_at
        is_ahead = self.found.request.status in UNDER_WAY and eta is not None and eta > self.now
        return eta if is_ahead else None

    def _served(self) -> AssetVersion | None:
        """Return the version whose services are named: the request's own, or of an asset else the latest.

        A newer revision in service is not what a superseded request made.
        """
        version = self.found.version
        is_own = self.is_current or version.approved_revision == self.found.request.revision
        if is_own and self._is_reached(version):
            return version
        latest = self.found.latest
        return latest if self.of_asset and latest is not None and self._is_reached(latest) else None

    def _is_reached(self, version: AssetVersion) -> bool:
        """Return whether the addresses of the services reach a version."""
        asset = self.found.asset
        is_latest = version.version_ordinal == asset.latest_approved_version_ordinal
        is_live = version.deleted_at is None and asset.deleted_at is None
        return (
            is_live and version.approved_revision is not None and (is_latest or asset.url_mode is UrlMode.ALL_VERSIONS)
        )

    def _full_error(self) -> str | None:
        """Return all that is known of what went wrong with this request."""
        return self._own("last_error") or self.found.request.last_error


def public_copy(found: RequestInFull, *, with_cause: bool) -> PublicCopy:
    """Return how the copy of a request's revision for the public stands; only operators are told the cause of a
    failure.
    """
    revision = found.request.revision
    if found.exporting_since is not None:
        return PublicCopy(state=CopyState.RUNNING, at=found.exporting_since)
    is_copied = found.version.exported_revision == revision
    publications = sorted(found.publications, key=lambda each: (each.job_id, each.event_id))
    exports = [each for each in publications if _is_export_of(each, revision)]
    if not exports:
        return PublicCopy(state=CopyState.COMPLETED, at=found.version.first_exported_at) if is_copied else PublicCopy()
    last = exports[-1]
    if withdrawals := [each for each in publications if _withdraws(each, last)]:
        return _withdrawn(withdrawals[-1], with_cause=with_cause)
    if last.event_type is EventType.ASSET_EXPORT_FAILED:
        error = _failure(NOT_COPIED, last.error if with_cause else None)
        return PublicCopy(state=CopyState.FAILED, error=error, at=last.at)
    if not is_copied:  # replaced by the copy of a newer revision, or being removed
        return PublicCopy(
            state=CopyState.WITHDRAWN, at=next((each.at for each in publications if _replaces(each, last)), None)
        )
    return PublicCopy(state=CopyState.COMPLETED, at=last.at)


def _exported_at(found: RequestInFull) -> datetime | None:
    """Return when the copy of a request's revision was complete, whatever became of it."""
    revision = found.request.revision
    exports = [each for each in found.publications if _is_export_of(each, revision)]
    times = [each.at for each in exports if each.event_type is EventType.ASSET_EXPORT_COMPLETED]
    if not times and found.version.exported_revision == revision:
        return found.version.first_exported_at
    return max(times, default=None)


def _is_export_of(publication: Publication, revision: int) -> bool:
    return publication.event_type not in WITHDRAWALS and publication.revision == revision


def _replaces(publication: Publication, export: Publication) -> bool:
    is_copy = publication.event_type is EventType.ASSET_EXPORT_COMPLETED
    return is_copy and publication.job_id > export.job_id and publication.revision != export.revision


def _withdraws(publication: Publication, export: Publication) -> bool:
    return publication.event_type in WITHDRAWALS and publication.job_id > export.job_id


def _withdrawn(withdrawal: Publication, *, with_cause: bool) -> PublicCopy:
    if withdrawal.event_type in FAILED_WITHDRAWALS:
        error = _failure(NOT_REMOVED, withdrawal.error if with_cause else None) + NOT_SHOWN
        return PublicCopy(state=CopyState.FAILED, error=error, at=withdrawal.at)
    return PublicCopy(state=CopyState.WITHDRAWN, at=withdrawal.at)


def _failure(what: str, cause: str | None) -> str:
    return f"{what}{OF_OURS}" if cause is None else f"{what}: {cause.rstrip('.')}."


def _logged_decision(revision: AssetVersion | AssetRevision, caller: Caller) -> ReviewOutcome:
    """Return a decision whose event nobody has kept, as far as the row of the revision has it."""
    refused = DecisionState.REVOKED if revision.revoked_at else DecisionState.REJECTED
    return ReviewOutcome(
        state=DecisionState.APPROVED if revision.approval_state is ApprovalState.APPROVED else refused,
        by=revision.reviewer if caller.is_staff else None,
        at=revision.reviewed_at,
        reason=revision.rejection_reason,
    )


def _in_brief(version: AssetVersion, revision: int) -> VersionInBrief:
    return VersionInBrief(ordinal=version.version_ordinal, label=version.version_label, revision=revision)


def _submission(body: dict[str, Any]) -> dict[str, Any]:
    submission = body.get("submission")
    return submission if isinstance(submission, dict) else {}
