"""New data of partners: request, asset, version and job come into being together, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from graticule.core.asset_names import asset_id_of
from graticule.core.errors import NotFound, Refused
from graticule.core.exchange import PlatformSubmission, Reprocessing, Retrial, SubmissionReceipt
from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId, PlatformId, WorkflowId
from graticule.core.models import AssetRevision, AssetVersion, GeospatialAsset, Platform, PlatformRequest
from graticule.core.models.engine import EventType, JobPurpose
from graticule.core.models.fields import MAX_PRIORITY
from graticule.core.partner_fields import split_refs
from graticule.core.permissions import Caller, Deed
from graticule.core.refusals import Refusal
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository, PastJob
from graticule.repositories.database import Connection, Database
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.requests import RequestRepository
from graticule.repositories.steps import AssetWork
from graticule.services.asset_changes import UNDER_WAY, AssetUnderChange, changing, loaded
from graticule.services.estimates import typical_seconds
from graticule.services.jobs import JobService, PreparedJob, Submission
from graticule.services.submission_checks import SubmissionChecks, check_source_admitted
from graticule.services.workflow_choice import ingest_inputs, ingest_workflow
from graticule.services.workflows import Workflows

UNRESOLVED: Final = frozenset({ApprovalState.PENDING_REVIEW, ApprovalState.REJECTED})
PACE_HOLDS: Final = timedelta(seconds=5)  # what was read of it; a burst of submissions asks once
OUTPUTS: Final = (
    *("blob_path", "table_name", "stac_item_id", "stac_collection_id", "item_hash", "bbox"),
    *("external_blob_path", "export_run_id"),
)
LOGGED: Final = (
    *("reviewer", "reviewed_at", "rejection_reason", "revoked_at"),
    *("processing_state", "processing_started_at", "processing_completed_at", "last_error", "told_error", "validation"),
)


@dataclass(frozen=True, slots=True)
class _Order:
    """A work order and the job that is to carry it out."""

    request: PlatformRequest
    prepared: PreparedJob
    source_bytes: int | None


class SubmissionService:
    """Takes new data, and lets data that we have be processed again."""

    def __init__(self, database: Database, jobs: JobService, workflows: Workflows, checks: SubmissionChecks) -> None:
        self._database = database
        self._jobs = jobs
        self._workflows = workflows
        self._checks = checks
        self._paces: dict[WorkflowId, tuple[datetime, list[PastJob]]] = {}  # how long each takes, and as of when

    async def submit(
        self, asked: PlatformSubmission, caller: Caller, idempotency_key: str | None = None
    ) -> SubmissionReceipt:
        """Make a new version, or with `overwrite` a new revision of one; the same key gives the same receipt again."""
        self._checks.check_form(asked)
        source_bytes = await self._check_new(asked, caller, idempotency_key)
        async with self._database.transaction(Commit.SUBMIT_VERSION) as connection:
            platform = await self._platform(connection, asked.platform_id, caller)
            identity, _ = split_refs(platform, asked.platform_refs)
            asset_id = asset_id_of(platform.platform_id, identity)
            asked = self._with_allowed_priority(asked, caller)
            if idempotency_key is not None:
                earlier = await self._earlier(connection, asked, caller, idempotency_key)
                if earlier is not None:
                    return _receipt(earlier)
            await AssetRepository(connection).lock(asset_id)
            _require_active(platform)
            check_source_admitted(platform, asked)
            change = await self._asset(connection, asset_id, asked, caller)
            return await self._add(change, asked, source_bytes, idempotency_key)

    async def retry(self, asset_id: AssetId, asked: Retrial, caller: Caller) -> SubmissionReceipt:
        """Process a version again that failed: the same request, with a new job."""
        source_bytes = await self._check_again(asset_id, asked, caller)
        async with changing(self._database, asset_id, caller, asked.expected_version, Commit.SUBMIT_VERSION) as change:
            change.require_live()
            failed = [version for version in change.live if version.processing_state is ProcessingState.FAILED]
            version = change.chosen(asked.version_ordinal, failed)
            if version.processing_state is not ProcessingState.FAILED:
                state = version.processing_state
                change.refuse(
                    Refusal.NOT_FAILED,
                    f"Version {version.version_ordinal} is {state}; nothing to retry.",
                    "To process it again all the same, reprocess it, or submit it with overwrite=true.",
                )
            _require_order(change, version)
            now, request = self._database.now(), await _last_request(change, version)
            order = self._order(change, request, source_bytes)
            eta = await self._eta(change.connection, order, now)
            change.written(await AssetVersionRepository(change.connection).retry(version, eta, now))
            await RequestRepository(change.connection).retry(request.request_id, order.prepared.job_id, now)
            await self._start(change, order, EventType.ASSET_VERSION_RETRIED, now)
            return _receipt(order.request)

    async def reprocess(self, asset_id: AssetId, asked: Reprocessing, caller: Caller) -> SubmissionReceipt:
        """Process the same source again, as a new revision; an approval lasts if the content turns out the same."""
        source_bytes = await self._check_again(asset_id, asked, caller)
        async with changing(self._database, asset_id, caller, asked.expected_version, Commit.SUBMIT_VERSION) as change:
            change.require_live()
            version = change.chosen(asked.version_ordinal, change.live)
            _require_order(change, version)
            source, event = await _last_request(change, version), EventType.ASSET_VERSION_REPROCESSED
            said = {"reason": asked.reason, "reviewer_named": change.other_reviewer(asked.reviewer)}
            return await self._revise(change, version, _submission_of(source), event, source_bytes, **said)

    async def _check_new(self, asked: PlatformSubmission, caller: Caller, idempotency_key: str | None) -> int | None:
        """Check what is new, in no transaction: the storage may be slow. Returns the size of the file, if known."""
        async with self._database.connection() as connection:
            platform = await self._platform(connection, asked.platform_id, caller)
            split_refs(platform, asked.platform_refs)
            if idempotency_key is not None and await RequestRepository(connection).find_by_idempotency_key(
                PlatformId(platform.platform_id), idempotency_key
            ):
                return None  # it gets the receipt of the first, whatever has become of the file
        _require_active(platform)
        return await self._checks.check(platform, asked, self._workflows.library.get(ingest_workflow(asked)))

    async def _check_again(self, asset_id: AssetId, asked: Retrial | Reprocessing, caller: Caller) -> int | None:
        """Check the source of a version that is to be processed again; whether it may be is decided afterwards."""
        async with self._database.connection() as connection:
            asset = await AssetRepository(connection).find(asset_id=asset_id)
            versions = [] if asset is None else await AssetVersionRepository(connection).of_asset(asset_id)
            version = _meant(versions, asked)
            if asset is None or version is None or not caller.sees(asset.platform_id):
                return None
            platform = await self._platform(connection, asset.platform_id, caller)
            request = await RequestRepository(connection).find(request_id=version.last_request_id)
        if request is None:
            return None
        source = _submission_of(request)
        return await self._checks.check(platform, source, self._workflows.library.get(ingest_workflow(source)))

    async def _platform(self, connection: Connection, platform_id: str, caller: Caller) -> Platform:
        found = await PlatformRepository(connection).kept(PlatformId(platform_id))
        if found is None or not caller.sees(platform_id):
            raise NotFound(f"There is no platform {platform_id}.")
        return found

    def _with_allowed_priority(self, submission: PlatformSubmission, caller: Caller) -> PlatformSubmission:
        """Lower the priority to the highest that the caller may ask for."""
        highest = MAX_PRIORITY if caller.may(Deed.OPERATE) else self._jobs.partner_max_priority
        return submission.model_copy(update={"priority": min(submission.priority, highest)})

    async def _earlier(
        self, connection: Connection, asked: PlatformSubmission, caller: Caller, key: str
    ) -> PlatformRequest | None:
        requests, platform_id = RequestRepository(connection), PlatformId(asked.platform_id)
        await requests.lock_key(platform_id, key)
        found = await requests.find_by_idempotency_key(platform_id, key)
        if found is not None and self._with_allowed_priority(_submission_of(found), caller) != asked:
            raise Refused(
                Refusal.IDEMPOTENCY_KEY_REUSED,
                "This Idempotency-Key came with another submission before.",
                hint="Use a new key for new data; the same key only to repeat the very same request.",
            )
        return found

    async def _asset(
        self, connection: Connection, asset_id: AssetId, asked: PlatformSubmission, caller: Caller
    ) -> AssetUnderChange:
        """Give the asset: a new one, the one that is there, or one that was unpublished and lives again."""
        now = self._database.now()
        assets = AssetRepository(connection)
        if await assets.find(asset_id=asset_id) is None:
            asset = await assets.insert(await _new_asset(assets, asset_id, asked, now))
            change = AssetUnderChange(connection, asset, (), caller, is_new=True)
            await change.tell(EventType.ASSET_CREATED, now, platform_refs=dict(asset.platform_refs))
            return change
        change = await loaded(connection, asset_id, caller)
        if change.asset.data_type is not asked.data_type:
            change.refuse(
                Refusal.DATA_TYPE_DIFFERS,
                f"The asset is a {change.asset.data_type}, and the submission a {asked.data_type}.",
                "Send it under another identity.",
            )
        if change.asset.deleted_at is not None:
            await _revive(change, now)
        return change

    async def _add(
        self,
        change: AssetUnderChange,
        asked: PlatformSubmission,
        source_bytes: int | None,
        idempotency_key: str | None,
    ) -> SubmissionReceipt:
        same = next((version for version in change.live if version.version_label == asked.version_label), None)
        if same is None:
            _require_order(change)
            return await self._add_version(change, asked, source_bytes, idempotency_key)
        if not asked.overwrite:
            change.refuse(
                Refusal.VERSION_EXISTS,
                f"The version {asked.version_label!r} exists, use overwrite=true.",
                "A version that failed can also be retried as it is.",
            )
        _require_order(change, same)
        event = EventType.ASSET_VERSION_OVERWRITTEN
        return await self._revise(change, same, asked, event, source_bytes, idempotency_key=idempotency_key)

    async def _add_version(
        self,
        change: AssetUnderChange,
        asked: PlatformSubmission,
        source_bytes: int | None,
        idempotency_key: str | None,
    ) -> SubmissionReceipt:
        now, ordinal = self._database.now(), max(change.versions, default=-1) + 1
        request = _request(change, asked, ordinal, 1, now, idempotency_key=idempotency_key)
        order = self._order(change, request, source_bytes)
        version = {
            "asset_id": change.asset.asset_id,
            "version_ordinal": ordinal,
            "version_label": asked.version_label,
            "last_request_id": order.request.request_id,
            "priority": asked.priority,
            "estimated_completion_at": await self._eta(change.connection, order, now),
            "created_at": now,
            "updated_at": now,
        }
        versions = AssetVersionRepository(change.connection)
        change.written(await versions.insert(AssetVersion.model_validate(version)))
        await RequestRepository(change.connection).insert(order.request)
        await self._start(change, order, EventType.ASSET_VERSION_ADDED, now)
        return _receipt(order.request)

    async def _revise(
        self,
        change: AssetUnderChange,
        version: AssetVersion,
        asked: PlatformSubmission,
        event: EventType,
        source_bytes: int | None,
        *,
        reason: str | None = None,
        reviewer_named: str | None = None,
        idempotency_key: str | None = None,
    ) -> SubmissionReceipt:
        """Begin a new revision; the one before is logged as it was."""
        _require_rest(change, version)
        now, ordinal, revision = self._database.now(), version.version_ordinal, version.revision + 1
        request = _request(change, asked, ordinal, revision, now, reason=reason, idempotency_key=idempotency_key)
        order = self._order(change, request, source_bytes)
        await AssetRevisionRepository(change.connection).insert(_superseded(change.asset, version, now))
        change.written(
            await AssetVersionRepository(change.connection).begin_revision(
                version,
                keeps_approval=event is EventType.ASSET_VERSION_REPROCESSED,
                now=now,
                request_id=request.request_id,
                priority=asked.priority,
                estimated_completion_at=await self._eta(change.connection, order, now),
            )
        )
        await RequestRepository(change.connection).insert(order.request)
        await self._start(change, order, event, now, reason=reason, reviewer_named=reviewer_named)
        return _receipt(order.request)

    def _order(self, change: AssetUnderChange, request: PlatformRequest, source_bytes: int | None) -> _Order:
        """Prepare the job of a work order, which names it before it exists: all of it commits together."""
        asked = self._with_allowed_priority(_submission_of(request), change.caller)
        graph = self._workflows.library.get(ingest_workflow(asked))
        submission = Submission(
            workflow_id=graph.workflow_id,
            input_params=ingest_inputs(graph, asked, change.asset, request),
            correlation_id=str(request.request_id),
            submitted_by=change.caller.name[:64],
            callback_url=asked.callback_url,
            priority=asked.priority,
        )
        work = AssetWork(AssetId(request.asset_id), request.version_ordinal, JobPurpose.PROCESS)
        prepared = self._jobs.prepare(submission, work, actor=change.caller.name, platform_id=change.asset.platform_id)
        return _Order(request.model_copy(update={"job_id": prepared.job_id}), prepared, source_bytes)

    async def _eta(self, connection: Connection, order: _Order, now: datetime) -> datetime | None:
        """Estimate when processing ends, by how long the workflow took lately for files of about this size."""
        seconds = typical_seconds(await self._past_jobs(connection, order, now), order.source_bytes)
        return None if seconds is None else now + timedelta(seconds=seconds)

    async def _past_jobs(self, connection: Connection, order: _Order, now: datetime) -> list[PastJob]:
        workflow_id = WorkflowId(order.prepared.graph.workflow_id)
        known = self._paces.get(workflow_id)
        if known is not None and timedelta() <= now - known[0] < PACE_HOLDS:
            return known[1]
        found = await AssetRepository(connection).past_jobs(workflow_id)
        if found:
            self._paces[workflow_id] = now, found
        return found

    async def _start(
        self, change: AssetUnderChange, order: _Order, event: EventType, now: datetime, **data: Any
    ) -> None:
        """Tell of the change, and make its job."""
        request = order.request
        if not change.is_new:
            await change.change_asset(now)
        told = {
            "version_label": change.versions[request.version_ordinal].version_label,
            "revision": request.revision,
            "request_id": str(request.request_id),
            "source_bytes": order.source_bytes,
        }
        await change.tell(event, now, request.version_ordinal, **told, **data)
        await self._jobs.add_within(change.connection, [order.prepared])


def _meant(versions: Sequence[AssetVersion], asked: Retrial | Reprocessing) -> AssetVersion | None:
    """Return the version that would be processed again, if there is one."""
    found = [version for version in versions if version.deleted_at is None]
    if isinstance(asked, Retrial):
        found = [version for version in found if version.processing_state is ProcessingState.FAILED]
    if asked.version_ordinal is not None:
        found = [version for version in found if version.version_ordinal == asked.version_ordinal]
    return found[-1] if found else None


def _require_active(platform: Platform) -> None:
    if not platform.is_active:
        raise Refused(
            Refusal.PLATFORM_INACTIVE,
            f"The platform {platform.platform_id} takes no new submissions.",
            hint="An admin can open it again.",
        )


def _require_order(change: AssetUnderChange, besides: AssetVersion | None = None) -> None:
    """Refuse while another version is unresolved, or may become so when it is processed to its end."""
    for other in change.live:
        if besides is not None and other.version_ordinal == besides.version_ordinal:
            continue
        # What was revoked awaits a decision, too, and yet must not keep the version beside it from being mended, unless
        # it is just being processed: then it may await its approval like any other. Nothing that failed does.
        is_revoked = besides is not None and other.revoked_at is not None
        is_unresolved = other.approval_state in UNRESOLVED or other.processing_state is ProcessingState.FAILED
        if is_unresolved and not is_revoked and other.approval_state is not ApprovalState.FAILED:
            change.refuse(
                Refusal.VERSION_UNRESOLVED,
                f"Version {other.version_ordinal} is unresolved. Approve, delete, or resubmit before adding a new "
                "version.",
                f"It is {other.approval_state}, its processing {other.processing_state}, its label "
                f"{other.version_label!r}.",
            )
        _require_rest(change, other)


def _require_rest(change: AssetUnderChange, version: AssetVersion) -> None:
    if version.processing_state in UNDER_WAY:
        change.refuse(
            Refusal.VERSION_PROCESSING,
            f"Version {version.version_ordinal} is being processed.",
            "Wait until that ends.",
        )


async def _last_request(change: AssetUnderChange, version: AssetVersion) -> PlatformRequest:
    return await RequestRepository(change.connection).get(request_id=version.last_request_id)


def _submission_of(request: PlatformRequest) -> PlatformSubmission:
    return PlatformSubmission.model_validate(request.request_body["submission"])


async def _new_asset(
    assets: AssetRepository, asset_id: AssetId, asked: PlatformSubmission, now: datetime
) -> GeospatialAsset:
    return GeospatialAsset.model_validate(
        {
            "asset_id": asset_id,
            "short_id": await assets.free_short_id(asset_id),
            "platform_id": asked.platform_id,
            "platform_refs": asked.platform_refs,
            "data_type": asked.data_type,
            "created_at": now,
            "updated_at": now,
        }
    )


async def _revive(change: AssetUnderChange, now: datetime) -> None:
    nothing = dict.fromkeys(("deleted_at", "deleted_by", "latest_approved_version_ordinal"))
    cleared: dict[str, Any] = {"clearance_state": ClearanceState.UNCLEARED}
    if change.asset.clearance_state is not ClearanceState.UNCLEARED:
        cleared |= {"clearance_changed_at": now, "clearance_changed_by": change.caller.name}
    await change.change_asset(now, **cleared, **nothing)
    await change.tell(EventType.ASSET_REVIVED, now)


def _request(
    change: AssetUnderChange,
    asked: PlatformSubmission,
    ordinal: int,
    revision: int,
    now: datetime,
    *,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> PlatformRequest:
    return PlatformRequest.model_validate(
        {
            "request_id": uuid4(),
            "platform_id": asked.platform_id,
            "asset_id": change.asset.asset_id,
            "version_ordinal": ordinal,
            "revision": revision,
            "request_body": {
                "submission": asked.model_dump(mode="json"),
                **({"reprocess": reason} if reason is not None else {}),
            },
            "submitted_by": change.caller.name,
            "idempotency_key": idempotency_key,
            "created_at": now,
            "updated_at": now,
        }
    )


def _superseded(asset: GeospatialAsset, version: AssetVersion, now: datetime) -> AssetRevision:
    """Describe a revision as it was; one that was never finished has made no outputs of its own."""
    made = version.processing_state is ProcessingState.COMPLETED
    outputs = {name: getattr(version, name) for name in OUTPUTS} if made else {}
    return AssetRevision.model_validate(
        {
            "asset_id": version.asset_id,
            "version_ordinal": version.version_ordinal,
            "revision": version.revision,
            "job_id": version.current_job_id,
            "content_hash": version.content_hash if made else None,
            "output_hash": version.output_hash if made else None,
            "outputs": {name: value for name, value in outputs.items() if value is not None},
            "approval_state": version.approval_state,
            "clearance_state": asset.clearance_state,
            **{name: getattr(version, name) for name in LOGGED},
            "created_at": version.processing_started_at or version.created_at,
            "superseded_at": now,
        }
    )


def _receipt(request: PlatformRequest) -> SubmissionReceipt:
    return SubmissionReceipt(
        request_id=request.request_id,
        asset_id=request.asset_id,
        version_ordinal=request.version_ordinal,
        revision=request.revision,
        job_id=request.job_id,
        priority=_submission_of(request).priority,
    )
