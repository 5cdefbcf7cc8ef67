"""What people decide of assets and versions: approve, reject, revoke, clear, delete, unpublish."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from graticule.core.exchange import (
    Approval,
    AssetChange,
    Change,
    ClearanceChange,
    Decision,
    Rejection,
    Removal,
    ReviewedChange,
    Revocation,
    UrlModeChange,
)
from graticule.core.ids import AssetId, JobId
from graticule.core.models import AssetVersion
from graticule.core.models.engine import EventType, JobPurpose
from graticule.core.models.platform import UrlMode
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.core.states import CLEARANCE, ApprovalState, ClearanceState, ProcessingState
from graticule.repositories.assets import AssetVersionRepository
from graticule.repositories.database import Connection, Database
from graticule.services import four_eyes, layer_catalog
from graticule.services.asset_changes import AFTER_FAILURE, UNDER_WAY, AssetUnderChange, changing
from graticule.services.publishing import PublishingJobs
from graticule.services.review_effects import describe_effects
from graticule.services.reviewed_files import ReviewedFiles
from graticule.services.reviewed_revisions import RevisionAtIssue, resolve_named_revision

MAX_BYTES_HASHED: Final = 128 * 1024 * 1024  # of a table while a reviewer waits; the export looks at every one
HALF_APPROVED: Final = "The public sees it once another reviewer has approved it, too; until then it stays in review."
NO_LONGER_PUBLIC: Final = "The asset was public: its external copies are removed, and public addresses stop to work."


@dataclass(frozen=True, slots=True)
class _Cleared:
    """What a clearance changes of an asset, and what follows."""

    changes: Mapping[str, Any]
    warning: str | None = None


class ReviewService:
    """Decides for one asset at a time, each decision in one transaction."""

    def __init__(self, database: Database, publishing: PublishingJobs, files: ReviewedFiles) -> None:
        self._database = database
        self._publishing = publishing
        self._files = files

    def _changing(
        self, asset_id: AssetId, asked: ReviewedChange, caller: Caller
    ) -> AbstractAsyncContextManager[AssetUnderChange]:
        return changing(self._database, asset_id, caller, asked.expected_version, dry_run=bool(asked.dry_run))

    async def approve(self, asset_id: AssetId, asked: Approval, caller: Caller) -> AssetChange:
        """Open access to a version that was processed; on an approved one, only the clearance changes."""
        expected_version = await self._require_intact_outputs(asset_id, asked, caller)
        async with changing(self._database, asset_id, caller, expected_version, dry_run=bool(asked.dry_run)) as change:
            asked, version = await _choose_for_approval(change, asked)
            if version.approval_state is ApprovalState.APPROVED:
                return await self._clear(change, asked, version)
            await _require_intact_table(change, version, change.connection, max_bytes_hashed=0)
            now = self._database.now()
            if await _needs_another_reviewer(change, asked, version):
                return await _endorse(change, asked, version, now)
            before, cleared = change.asset.clearance_state, _cleared(change, asked.clearance_level, caller, now)
            version = change.written(await AssetVersionRepository(change.connection).approve(version, caller.name, now))
            if asked.clearance_level is ClearanceState.PUBLIC:
                await self._second(change, version, now, asked)
            await change.change_asset(now, **cleared.changes, latest_approved_version_ordinal=_latest(change))
            await change.tell(
                EventType.ASSET_APPROVED,
                now,
                version.version_ordinal,
                revision=version.revision,
                clearance_before=before,
                clearance_state=asked.clearance_level,
                **_said(asked, change),
            )
            job_id = await self._follow_clearance(change, before, version, now)
            return _answer(change, version, warning=cleared.warning, job_id=job_id)

    async def _require_intact_outputs(self, asset_id: AssetId, asked: Approval, caller: Caller) -> int:
        """Refuse to approve other outputs than were made, and return the `version` of the asset that was looked at.

        Storage may be slow, and so is hashing a table. The asset is not locked meanwhile: the decision is refused if it
        has changed since.
        """
        async with changing(self._database, asset_id, caller, asked.expected_version, dry_run=True) as change:
            _, version = await _choose_for_approval(change, asked)
        if version.approval_state is not ApprovalState.APPROVED:
            fault = await self._files.find_fault(change.asset, version)
            if fault is not None:
                _refuse_outputs(change, f"Version {version.version_ordinal} cannot be approved: {fault}.")
            async with self._database.connection() as connection:
                await _require_intact_table(change, version, connection, max_bytes_hashed=MAX_BYTES_HASHED)
        return change.asset.version

    async def reject(self, asset_id: AssetId, asked: Rejection, caller: Caller) -> AssetChange:
        """Refuse a version that awaits a decision."""
        async with self._changing(asset_id, asked, caller) as change:
            change.require_live()
            asked = await resolve_named_revision(change, asked)
            version = change.chosen(asked.version_ordinal, _list_pending(change))
            at_issue = RevisionAtIssue.newest(version)
            if version.approval_state is ApprovalState.PENDING_REVIEW:
                at_issue.check(change, asked)
            _require_rejectable(change, version)
            at_issue.require(change, asked)
            now = self._database.now()
            version = change.written(
                await AssetVersionRepository(change.connection).reject(version, asked.reason, caller.name, now)
            )
            await change.change_asset(now)
            await change.tell(
                EventType.ASSET_REJECTED,
                now,
                version.version_ordinal,
                revision=version.revision,
                reason=asked.reason,
                **_said(asked, change),
            )
            return _answer(change, version)

    async def revoke(self, asset_id: AssetId, asked: Revocation, caller: Caller) -> AssetChange:
        """Take a version out of service; the latest falls back to the highest approved one."""
        async with self._changing(asset_id, asked, caller) as change:
            change.require_live()
            asked = await resolve_named_revision(change, asked)
            version = change.chosen(asked.version_ordinal, change.in_service)
            if version.approved_revision is None:
                message = f"Version {version.version_ordinal} is {version.approval_state} and not in service."
                change.refuse(Refusal.NOT_APPROVED, message, "What awaits a decision is rejected, not revoked.")
            await _require_served(change, asked, version)
            now, before = self._database.now(), version
            version = change.written(
                await AssetVersionRepository(change.connection).revoke(version, asked.reason, caller.name, now)
            )
            await change.change_asset(now, latest_approved_version_ordinal=_latest(change))
            await change.tell(
                EventType.ASSET_REVOKED,
                now,
                version.version_ordinal,
                revision=before.approved_revision,
                reason=asked.reason,
                **_said(asked, change),
            )
            await layer_catalog.follow(change, now)
            job_id = await self._withdraw(change, before, now)
            return _answer(change, version, warning=await self._warn_of_withheld(change), job_id=job_id)

    async def change_clearance(self, asset_id: AssetId, asked: ClearanceChange, caller: Caller) -> AssetChange:
        """Say who may see an asset of which a version is approved."""
        async with self._changing(asset_id, asked, caller) as change:
            change.require_live()
            if not change.in_service:
                message = "No version of the asset is approved, so there is nothing to clear."
                change.refuse(Refusal.NOT_APPROVED, message, "Approve a version, with its clearance.")
            asked, latest = await resolve_named_revision(change, asked), change.in_service[-1]
            if asked.version_ordinal not in {None, latest.version_ordinal}:
                message = (
                    f"The latest version in service is {latest.version_ordinal}, and the decision names version "
                    f"{asked.version_ordinal}."
                )
                hint = "The clearance is that of the whole asset: look at its latest version, and name that."
                change.refuse(Refusal.REVISION_CHANGED, message, hint)
            await _require_served(change, asked, latest)
            return await self._clear(change, asked, latest)

    async def change_url_mode(self, asset_id: AssetId, asked: UrlModeChange, caller: Caller) -> AssetChange:
        """Say which versions the service addresses reach."""
        async with self._changing(asset_id, asked, caller) as change:
            change.require_live()
            before = change.asset.url_mode
            if before is asked.url_mode:
                return _answer(change, changed=False)
            now, is_public = self._database.now(), change.asset.clearance_state is ClearanceState.PUBLIC
            await change.change_asset(now, url_mode=asked.url_mode)
            if is_public and asked.url_mode is UrlMode.ALL_VERSIONS:
                await self._second(change, None, now)
            await change.tell(EventType.ASSET_URL_MODE_CHANGED, now, before=before, url_mode=asked.url_mode)
            job_id = await self._publishing.publish(change, now) if is_public else None
            return _answer(change, warning=await self._warn_of_withheld(change), job_id=job_id)

    async def delete_version(self, asset_id: AssetId, ordinal: int, asked: Change, caller: Caller) -> AssetChange:
        """Mark a version as deleted, which resolves it; what processes it is cancelled, what serves it withdrawn."""
        async with changing(self._database, asset_id, caller, asked.expected_version) as change:
            change.require_live()
            version, now = change.version(ordinal), self._database.now()
            await change.cancel_jobs(now, ordinal, [JobPurpose.PROCESS])
            (deleted,) = await AssetVersionRepository(change.connection).delete(asset_id, ordinal, caller.name, now)
            change.written(deleted)
            await change.change_asset(now, latest_approved_version_ordinal=_latest(change))
            await change.tell(EventType.ASSET_VERSION_DELETED, now, ordinal, version_label=version.version_label)
            await layer_catalog.follow(change, now)
            job_id = await self._withdraw(change, version, now)
            return _answer(change, deleted, warning=await self._warn_of_withheld(change), job_id=job_id)

    async def unpublish(self, asset_id: AssetId, asked: Removal, caller: Caller) -> AssetChange:
        """Remove an asset from all services; its rows stay, and a new submission revives it."""
        async with self._changing(asset_id, asked, caller) as change:
            change.require_live()
            now = self._database.now()
            versions = [*change.versions.values()]
            await change.cancel_jobs(now)
            for deleted in await AssetVersionRepository(change.connection).delete(asset_id, None, caller.name, now):
                change.written(deleted)
            await change.change_asset(now, deleted_at=now, deleted_by=caller.name, latest_approved_version_ordinal=None)
            named = change.other_reviewer(asked.reviewer)
            await change.tell(EventType.ASSET_UNPUBLISHED, now, reason=asked.reason, reviewer_named=named)
            await layer_catalog.follow(change, now)
            return _answer(change, job_id=await self._publishing.unpublish(change, versions))

    async def _clear(
        self, change: AssetUnderChange, asked: Approval | ClearanceChange, version: AssetVersion
    ) -> AssetChange:
        level, before, now = asked.clearance_level, change.asset.clearance_state, self._database.now()
        is_seconded = level is ClearanceState.PUBLIC and await self._second(change, version, now, asked)
        if before is level:
            if is_seconded:
                await change.change_asset(now)
            job_id = await self._follow_clearance(change, before, version, now)
            return _answer(change, version, changed=job_id is not None, job_id=job_id)
        cleared = _cleared(change, level, change.caller, now)
        await change.change_asset(now, **cleared.changes)
        await change.tell(
            EventType.ASSET_CLEARANCE_CHANGED,
            now,
            before=before,
            clearance_state=level,
            **_said(asked, change),
        )
        job_id = await self._follow_clearance(change, before, version, now)
        return _answer(change, version, warning=cleared.warning, job_id=job_id)

    async def _second(
        self,
        change: AssetUnderChange,
        named: AssetVersion | None,
        now: datetime,
        asked: Approval | ClearanceChange | None = None,
    ) -> bool:
        """Refuse that one person alone lets the public see a version, where the platform wants two.

        Returns whether the caller is now the second one for a version in service.
        """
        if not change.four_eyes:
            return False
        said = {} if asked is None else _said(asked, change)
        versions = await self._publishing.list_unpublished(change, named)
        return bool(await four_eyes.second(change, versions, now, **said))

    async def _warn_of_withheld(self, change: AssetUnderChange) -> str | None:
        withheld = await self._publishing.list_withheld(change)
        return " ".join(map(four_eyes.describe_withheld, withheld)) or None

    async def _follow_clearance(
        self, change: AssetUnderChange, before: ClearanceState, version: AssetVersion, now: datetime
    ) -> JobId | None:
        """Make the copies of a public version, or remove those of an asset that is public no more."""
        if change.asset.clearance_state is ClearanceState.PUBLIC:
            return await self._publishing.publish(change, now, version)
        if before is ClearanceState.PUBLIC:
            await layer_catalog.follow(change, now)
            return await self._publishing.reverse(change, [*change.versions.values()], now)
        return None

    async def _withdraw(self, change: AssetUnderChange, version: AssetVersion, now: datetime) -> JobId | None:
        """Remove the copies of a version that left the service, and see that what takes its place has some."""
        job_id = await self._publishing.reverse(change, [version], now)
        if change.asset.clearance_state is ClearanceState.PUBLIC:
            await self._publishing.publish(change, now)
        return job_id


def _list_pending(change: AssetUnderChange) -> list[AssetVersion]:
    return [each for each in change.live if each.approval_state is ApprovalState.PENDING_REVIEW]


async def _choose_for_approval(change: AssetUnderChange, asked: Approval) -> tuple[Approval, AssetVersion]:
    """Return the version that is meant, once it is known that it may be approved, or cleared if it is approved."""
    change.require_live()
    asked = await resolve_named_revision(change, asked)
    version = change.chosen(asked.version_ordinal, _list_pending(change), change.in_service)
    if version.approval_state is ApprovalState.APPROVED:
        (await _require_served(change, asked, version)).require_version(change, asked)
        return asked, version
    at_issue = RevisionAtIssue.newest(version)
    at_issue.check(change, asked)
    _require_reviewable(change, version)
    at_issue.require(change, asked)
    return asked, version


async def _needs_another_reviewer(change: AssetUnderChange, asked: Approval, version: AssetVersion) -> bool:
    """Whether this approval is the first of two that the platform wants before the public sees a version."""
    if not change.four_eyes:
        return False
    await four_eyes.require_other_than_submitter(change, version, version.revision)
    return asked.clearance_level is ClearanceState.PUBLIC and not four_eyes.is_endorsed(change, version)


async def _endorse(change: AssetUnderChange, asked: Approval, version: AssetVersion, now: datetime) -> AssetChange:
    version = change.written(await AssetVersionRepository(change.connection).endorse(version, change.caller.name, now))
    await change.change_asset(now)
    await change.tell(
        EventType.ASSET_ENDORSED,
        now,
        version.version_ordinal,
        revision=version.revision,
        **_said(asked, change),
    )
    return _answer(change, version, warning=HALF_APPROVED)


async def _require_served(change: AssetUnderChange, asked: Decision, version: AssetVersion) -> RevisionAtIssue:
    """Refuse a decision on what is in service that is about another revision, or leaves open about which."""
    at_issue = await RevisionAtIssue.in_service(change, version)
    at_issue.check(change, asked)
    at_issue.require(change, asked)
    return at_issue


def _said(asked: Approval | Rejection | Revocation | ClearanceChange, change: AssetUnderChange) -> dict[str, Any]:
    """Return what the event of a decision quotes: its note, and whom it names as the reviewer besides the caller."""
    return {"reviewer_named": change.other_reviewer(asked.reviewer), "note": asked.note}


async def _require_intact_table(
    change: AssetUnderChange, version: AssetVersion, connection: Connection, *, max_bytes_hashed: int
) -> None:
    """Refuse to open access to another table than the one that the job of this revision made."""
    if version.table_name is None or version.current_job_id is None:
        return
    if fault := await AssetVersionRepository(connection).fault_of_table(version, max_bytes_hashed):
        _refuse_outputs(
            change,
            f"The table {version.table_name!r} of version {version.version_ordinal} cannot be approved: {fault}.",
        )


def _refuse_outputs(change: AssetUnderChange, message: str) -> NoReturn:
    change.refuse(Refusal.OUTPUTS_CHANGED, message, "Have the version processed again: POST …/reprocess.")


def _require_reviewable(change: AssetUnderChange, version: AssetVersion) -> None:
    ordinal = version.version_ordinal
    if version.approval_state is ApprovalState.REJECTED:
        hint = "Have it submitted again with overwrite=true."
        change.refuse(Refusal.VERSION_REJECTED, f"Version {ordinal} is rejected.", hint)
    _require_success(change, version)
    if version.processing_state is not ProcessingState.COMPLETED:
        message = f"Version {ordinal} is {version.processing_state}: there is nothing to approve yet."
        change.refuse(Refusal.NOT_PROCESSED, message, "Wait until processing is completed.")


def _require_rejectable(change: AssetUnderChange, version: AssetVersion) -> None:
    ordinal = version.version_ordinal
    if version.approval_state is ApprovalState.APPROVED:
        change.refuse(Refusal.VERSION_APPROVED, f"Version {ordinal} is approved.", "Revoke it instead.")
    if version.approval_state is ApprovalState.REJECTED:
        hint = "Have it submitted again with overwrite=true, or delete it."
        change.refuse(Refusal.VERSION_REJECTED, f"Version {ordinal} is rejected already.", hint)
    if version.processing_state in UNDER_WAY:
        change.refuse(Refusal.VERSION_PROCESSING, f"Version {ordinal} is being processed.", "Wait until that ends.")
    _require_success(change, version)


def _require_success(change: AssetUnderChange, version: AssetVersion) -> None:
    if version.approval_state is ApprovalState.FAILED:
        message = f"Processing of version {version.version_ordinal} failed, so there is nothing to review."
        change.refuse(Refusal.NOT_PROCESSED, message, AFTER_FAILURE)


def _cleared(change: AssetUnderChange, level: ClearanceState, caller: Caller, now: datetime) -> _Cleared:
    """Tell what of the asset changes with its clearance."""
    before = change.asset.clearance_state
    if before is level:
        return _Cleared({})
    CLEARANCE.check(before, level)
    changes: dict[str, Any] = {
        "clearance_state": level,
        "clearance_changed_at": now,
        "clearance_changed_by": caller.name,
    }
    if change.asset.cleared_at is None:
        changes |= {"cleared_at": now, "cleared_by": caller.name}
    if level is ClearanceState.PUBLIC and change.asset.made_public_at is None:
        changes |= {"made_public_at": now, "made_public_by": caller.name}
    return _Cleared(changes, NO_LONGER_PUBLIC if before is ClearanceState.PUBLIC else None)


def _latest(change: AssetUnderChange) -> int | None:
    return max((version.version_ordinal for version in change.in_service), default=None)


def _answer(
    change: AssetUnderChange,
    version: AssetVersion | None = None,
    *,
    changed: bool = True,
    warning: str | None = None,
    job_id: JobId | None = None,
) -> AssetChange:
    current = None if version is None else change.versions[version.version_ordinal]
    return AssetChange(
        asset=change.asset,
        version=current,
        changed=changed,
        dry_run=change.dry_run,
        effects=describe_effects(change.before, change.standing()),
        warning=warning,
        job_id=None if change.dry_run else job_id,
    )
