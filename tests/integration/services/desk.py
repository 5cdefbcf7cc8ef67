"""The platform's services on an engine that is advanced by hand; the tests play the worker.

Whatever a test does, at its end the rows of the assets are held against each other and against their jobs: see
`Desk.check`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

from tests.integration.services.engine import Bench, Shelf, flow
from tests.sources import put_source_of

from graticule.core.asset_names import asset_id_of
from graticule.core.errors import Refused
from graticule.core.exchange import (
    Approval,
    AssetChange,
    Change,
    ClearanceChange,
    PlatformSubmission,
    Rejection,
    Removal,
    Reprocessing,
    Retrial,
    Revocation,
    SubmissionReceipt,
    UrlModeChange,
)
from graticule.core.ids import AssetId, JobId
from graticule.core.models import AssetRevision, AssetVersion, Event, GeospatialAsset, Job, PlatformRequest
from graticule.core.models.engine import DefinitionSource, JobPurpose
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.states import ApprovalState, JobStatus, ProcessingState, RequestStatus
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.database import Database
from graticule.repositories.requests import RequestRepository
from graticule.services.publishing import CopyRenewal, PublishingJobs
from graticule.services.reviewed_files import ReviewedFiles
from graticule.services.reviews import ReviewService
from graticule.services.submission_checks import SubmissionChecks
from graticule.services.submissions import SubmissionService
from graticule.storage.local import LocalStorage

RITA = Caller("rita", frozenset({ClientRole.ADMIN}))
REFS = {"dataset_id": "0038272", "resource_id": "dem"}
SOURCE = "container_name: {type: string, required: true}, blob_name: {type: string, required: true}"
NAMES = ", ".join(
    f"{name}: {{type: string}}" for name in ("blob_prefix", "table_name", "stac_item_id", "stac_collection_id")
)
OUTPUTS = ("blob_path", "table_name", "stac_item_id", "stac_collection_id", "external_blob_path", "export_run_id")
WORK = """
  start: {type: start, next: work}
  work: {handler: echo, next: end}"""


def _published(name: str, inputs: str) -> str:
    of_version = ", ".join(f"{name}: {{type: string}}" for name in OUTPUTS)
    return flow(
        WORK,
        workflow_id=name,
        inputs=f"{{asset_id: {{type: string}}, copies: {{type: array}}, {inputs}, {of_version}}}",
    )


ONE_VERSION = "version_ordinal: {type: integer}, revision: {type: integer}, data_type: {type: string}"
WORKFLOWS = (
    flow(WORK, workflow_id="raster_ingest", inputs=f"{{{SOURCE}, {NAMES}}}"),
    flow(WORK, workflow_id="vector_ingest", inputs=f"{{{SOURCE}, {NAMES}}}"),
    flow("\n  start: {type: start, next: end}", workflow_id="process_large_raster", inputs=f"{{{SOURCE}}}"),
    _published("adf_export", f"{ONE_VERSION}, exported_revision: {{type: integer}}"),
    _published("adf_reversal", ONE_VERSION),
    _published("unpublish", "versions: {type: array}"),
)
TABLES = (
    *("platforms", "geospatial_assets", "asset_versions", "asset_revisions", "platform_requests"),
    *("dag_jobs", "dag_nodes", "dag_tasks", "dag_task_results", "dag_job_events", "dag_callbacks", "dag_workflows"),
)
AS_TEXT: LiteralString = "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') AS rows FROM dagapp."
WAITING: LiteralString = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
STATES_OF_JOBS = {
    JobStatus.PENDING: {ProcessingState.QUEUED},
    JobStatus.RUNNING: {ProcessingState.PROCESSING},
    JobStatus.COMPLETED: {ProcessingState.COMPLETED, ProcessingState.FAILED},  # a result that cannot be kept
    JobStatus.FAILED: {ProcessingState.FAILED},
    JobStatus.CANCELLED: {ProcessingState.FAILED},
}
STATES_OF_REQUESTS = {
    ProcessingState.QUEUED: RequestStatus.ACCEPTED,
    ProcessingState.PROCESSING: RequestStatus.PROCESSING,
    ProcessingState.COMPLETED: RequestStatus.COMPLETED,
    ProcessingState.FAILED: RequestStatus.FAILED,
}


def cog(ordinal: int, revision: int) -> str:
    """Name the blob of a revision, as `Desk.process` says that it was made."""
    return f"silver/ddh/0038272_dem/{asset_id_of('ddh', REFS)[:8]}/v{ordinal}/r{revision}/cog.tif"


def submission(label: str = "V1", **more: Any) -> PlatformSubmission:
    given = {
        "platform_id": "ddh",
        "platform_refs": REFS,
        "version_label": label,
        "data_type": "raster",
        "container_name": "bronze",
        "file_name": "ddh/dem/europe.tif",
        **more,
    }
    return PlatformSubmission.model_validate(given)


class Desk:
    """Where partners' data come in, and people decide on them."""

    def __init__(self, pool: Database, folder: Path, *, caller: Caller = RITA) -> None:
        self.pool = pool
        self.caller = caller
        self.bench = Bench(pool, folder, *WORKFLOWS)
        self.sources = folder / "sources"
        put_source_of(self.sources, submission().model_dump())
        shelf: Any = Shelf(*WORKFLOWS)
        checks = SubmissionChecks(pool, LocalStorage(self.sources))
        self.submissions = SubmissionService(pool, self.bench.jobs, shelf, checks)
        publishing = PublishingJobs(self.bench.jobs, shelf)
        self.reviews = ReviewService(pool, publishing, ReviewedFiles(pool, self.bench.storage))
        self.renewal = CopyRenewal(pool, publishing)

    # What callers do

    async def submit(
        self, label: str = "V1", *, key: str | None = None, caller: Caller | None = None, **more: Any
    ) -> SubmissionReceipt:
        asked = submission(label, **more)
        put_source_of(self.sources, asked.model_dump())
        return await self.submissions.submit(asked, caller or self.caller, key)

    async def retry(self, asset_id: str, ordinal: int | None = None, **more: Any) -> SubmissionReceipt:
        asked = Retrial(version_ordinal=ordinal, **more)
        return await self.submissions.retry(AssetId(asset_id), asked, self.caller)

    async def announce(self, source: DefinitionSource) -> None:
        """Say where an orchestrator found the workflows of the jobs so far."""
        async with self.pool.connection() as connection, connection.transaction():
            await connection.execute(
                "INSERT INTO dagapp.dag_definitions (workflow_id, workflow_hash, definition, source, program_version,"
                " announced_by, announced_at) SELECT workflow_id, workflow_hash, '{}', %s, '1', 'o', now()"
                " FROM dagapp.dag_workflows ON CONFLICT (workflow_id, workflow_hash)"
                " DO UPDATE SET source = excluded.source",
                [source],
            )

    async def reprocess(self, asset_id: str, ordinal: int | None = None, **more: Any) -> SubmissionReceipt:
        """Process the same source once more, by a workflow that is shipped."""
        await self.announce(DefinitionSource.SHIPPED)
        asked = Reprocessing(version_ordinal=ordinal, reason="a better program", **more)
        return await self.submissions.reprocess(AssetId(asset_id), asked, self.caller)

    # A reviewer looks first, and names what is there; a test may name another version and revision, or with None none.

    async def approve(self, asset_id: str, level: str = "ouo", ordinal: int | None = None, **more: Any) -> AssetChange:
        asked = {"clearance_level": level, **await self._names(asset_id, ordinal, more, is_served=False)}
        return await self.reviews.approve(AssetId(asset_id), Approval.model_validate(asked), self.caller)

    async def reject(self, asset_id: str, ordinal: int | None = None, **more: Any) -> AssetChange:
        asked = {"reason": "clouds", **await self._names(asset_id, ordinal, more, is_served=False)}
        return await self.reviews.reject(AssetId(asset_id), Rejection.model_validate(asked), self.caller)

    async def revoke(self, asset_id: str, ordinal: int | None = None, **more: Any) -> AssetChange:
        asked = {"reason": "wrong place", **await self._names(asset_id, ordinal, more, is_served=True)}
        return await self.reviews.revoke(AssetId(asset_id), Revocation.model_validate(asked), self.caller)

    async def clear(self, asset_id: str, level: str, ordinal: int | None = None, **more: Any) -> AssetChange:
        asked = {"clearance_level": level, **await self._names(asset_id, ordinal, more, is_served=True)}
        return await self.reviews.change_clearance(
            AssetId(asset_id), ClearanceChange.model_validate(asked), self.caller
        )

    async def _names(
        self, asset_id: str, ordinal: int | None, more: Mapping[str, Any], *, is_served: bool
    ) -> dict[str, Any]:
        """Return what a decision names: as a test says, or the version and revision that it would be about."""
        if "revision" in more:
            return {"version_ordinal": ordinal, **more}
        live = [each for each in await self.versions(asset_id) if each.deleted_at is None]
        waiting = [each for each in live if each.approval_state is ApprovalState.PENDING_REVIEW and not is_served]
        serving = [each for each in live if each.approved_revision is not None]
        found = [each for each in live if each.version_ordinal == ordinal] or waiting or serving
        if not found or ordinal not in {None, found[-1].version_ordinal}:
            return {"version_ordinal": ordinal, **more}
        version = found[-1]
        is_approved = is_served or version.approval_state is ApprovalState.APPROVED
        revision = version.approved_revision if is_approved else version.revision
        return {"version_ordinal": version.version_ordinal, "revision": revision, **more}

    async def set_url_mode(self, asset_id: str, mode: str, **more: Any) -> AssetChange:
        asked = UrlModeChange.model_validate({"url_mode": mode, **more})
        return await self.reviews.change_url_mode(AssetId(asset_id), asked, self.caller)

    async def delete(self, asset_id: str, ordinal: int, **more: Any) -> AssetChange:
        return await self.reviews.delete_version(AssetId(asset_id), ordinal, Change(**more), self.caller)

    async def unpublish(self, asset_id: str, **more: Any) -> AssetChange:
        return await self.reviews.unpublish(AssetId(asset_id), Removal(**more), self.caller)

    # What workers do

    async def finish(self, job_id: JobId | None, output: Any = None) -> None:
        """Complete the work of a job."""
        assert job_id is not None
        await self.bench.finish(job_id, "work", output)

    async def fail(self, job_id: JobId | None, error: str = "it failed") -> None:
        """Fail the work of a job."""
        assert job_id is not None
        await self.bench.fail(job_id, "work", error)

    async def process(self, receipt: SubmissionReceipt, content: str = "a", **more: Any) -> None:
        """Complete the processing of a revision, with the outputs that its job was told to make."""
        names = await self.names(receipt)
        output = {"content_hash": content * 64, "blob_path": f"silver/{names['blob_prefix']}/cog.tif"}
        await self.bench.storage.put(output["blob_path"], content.encode())
        await self.finish(receipt.job_id, {**output, "stac_item_id": names["stac_item_id"], **more})

    async def names(self, receipt: SubmissionReceipt) -> dict[str, Any]:
        """Return the inputs of a job, which name its outputs."""
        return next(job.input_params for job in await self.jobs(receipt.asset_id) if job.job_id == receipt.job_id)

    async def end_cancelled(self) -> None:
        """Let the engine end the jobs whose end was asked for."""
        await self.bench.look_around()

    # Several at once

    async def approved(self, label: str = "V1", level: str = "ouo", content: str = "a", **more: Any) -> str:
        """Bring a new version into service, and give its asset."""
        receipt = await self.submit(label, **more)
        await self.process(receipt, content)
        await self.approve(receipt.asset_id, level)
        return receipt.asset_id

    async def exported(self, label: str = "V1", **more: Any) -> str:
        """Bring a new version to the public, with its copies made."""
        asset_id = await self.approved(label, "public", **more)
        await self.finish((await self.jobs(asset_id, JobPurpose.EXPORT))[-1].job_id, {"external_blob_path": label})
        return asset_id

    # What is there

    async def asset(self, asset_id: str) -> GeospatialAsset:
        async with self.pool.connection() as connection:
            return await AssetRepository(connection).get(asset_id=asset_id)

    async def versions(self, asset_id: str) -> list[AssetVersion]:
        async with self.pool.connection() as connection:
            return await AssetVersionRepository(connection).of_asset(AssetId(asset_id))

    async def version(self, asset_id: str, ordinal: int = 0) -> AssetVersion:
        return next(each for each in await self.versions(asset_id) if each.version_ordinal == ordinal)

    async def revisions(self, asset_id: str, ordinal: int = 0) -> list[AssetRevision]:
        async with self.pool.connection() as connection:
            return await AssetRevisionRepository(connection).of_version(AssetId(asset_id), ordinal)

    async def request(self, request_id: UUID | None) -> PlatformRequest:
        async with self.pool.connection() as connection:
            return await RequestRepository(connection).get(request_id=request_id)

    async def jobs(self, asset_id: str, *purposes: JobPurpose) -> list[Job]:
        """Give the jobs of an asset, the oldest first; of some purposes, or all."""
        found = await self.rows("SELECT * FROM dagapp.dag_jobs WHERE asset_id = %s ORDER BY job_id", asset_id)
        jobs = [Job.model_validate(row) for row in found]
        return [job for job in jobs if not purposes or job.purpose in purposes]

    async def events(self, asset_id: str) -> list[Event]:
        """Give what an asset's history tells, the oldest first."""
        query: LiteralString = "SELECT * FROM dagapp.dag_job_events WHERE asset_id = %s ORDER BY event_id"
        return [Event.model_validate(row) for row in await self.rows(query, asset_id)]

    async def history(self, asset_id: str) -> list[str]:
        return [event.event_type.removeprefix("asset_") for event in await self.events(asset_id)]

    async def callbacks(self) -> list[dict[str, Any]]:
        """Give what partners are told, the oldest first."""
        found = await self.rows("SELECT payload FROM dagapp.dag_callbacks ORDER BY callback_id")
        return [row["payload"] for row in found]

    async def rows(self, statement: LiteralString, *given: Any) -> list[dict[str, Any]]:
        async with self.pool.connection() as connection:
            return await (await connection.execute(statement, given)).fetchall()

    async def execute(self, statement: LiteralString, *given: Any) -> None:
        """Write what nothing but a test would."""
        async with self.pool.connection() as connection:
            await connection.execute(statement, given)

    async def until_waiting(self, count: int) -> None:
        """Wait until so many sessions wait for a lock."""
        async with asyncio.timeout(10):
            while len(await self.rows(WAITING)) < count:  # noqa: ASYNC110 - the server gives no signal
                await asyncio.sleep(0.005)

    async def snapshot(self) -> dict[str, list[str]]:
        """Give all rows of the platform and the engine: two are equal when nothing was written in between."""
        return {table: (await self.rows(f"{AS_TEXT}{table} AS t"))[0]["rows"].split("\n") for table in TABLES}

    # What must hold whatever was done

    async def check(self) -> None:
        """Hold rows against each other, and against the jobs that moved them."""
        await self.bench.check()
        for row in await self.rows("SELECT asset_id FROM dagapp.geospatial_assets"):
            await self._check_asset(row["asset_id"])

    async def _check_asset(self, asset_id: str) -> None:
        asset, versions, jobs = await self.asset(asset_id), await self.versions(asset_id), await self.jobs(asset_id)
        live = [version for version in versions if version.deleted_at is None]
        serving = [version.version_ordinal for version in live if version.approved_revision is not None]
        assert asset.latest_approved_version_ordinal == max(serving, default=None)
        assert asset.deleted_at is None or not live
        assert len([version for version in live if awaits_first_approval(version)]) <= 1
        for version in versions:
            await self._check_version(version, jobs)
        assert all(event.actor for event in await self.events(asset_id))

    async def _check_version(self, version: AssetVersion, jobs: Sequence[Job]) -> None:
        own = {job.job_id: job for job in jobs if job.version_ordinal == version.version_ordinal}
        assert version.job_count == len([job for job in own.values() if job.purpose is JobPurpose.PROCESS])
        assert version.current_job_id is not None
        job = own[version.current_job_id]
        assert job.purpose is JobPurpose.PROCESS
        assert version.processing_state in STATES_OF_JOBS[job.status]
        assert (version.last_error is not None) == (version.processing_state is ProcessingState.FAILED)
        request = await self.request(version.last_request_id)
        assert request.status is STATES_OF_REQUESTS[version.processing_state]
        assert (request.job_id, request.revision) == (job.job_id, version.revision)
        logged = [each.revision for each in await self.revisions(version.asset_id, version.version_ordinal)]
        assert logged == [*range(1, version.revision)]


def awaits_first_approval(version: AssetVersion) -> bool:
    is_failed = version.approval_state is ApprovalState.FAILED
    return version.approved_revision is None and version.revoked_at is None and not is_failed


def code_of(error: BaseException) -> str:
    """Give the name of a refusal; whatever else was raised is raised again."""
    if not isinstance(error, Refused):
        raise error
    return error.code
