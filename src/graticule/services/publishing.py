"""The jobs that carry a decision out: copies for the public are made and removed, services are withdrawn."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId, JobId
from graticule.core.models import AssetVersion
from graticule.core.models.engine import JobPurpose
from graticule.core.models.platform import UrlMode
from graticule.core.permissions import Caller
from graticule.core.states import ClearanceState
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository, AssetVersionRepository
from graticule.repositories.database import Database
from graticule.repositories.steps import AssetWork
from graticule.services import four_eyes
from graticule.services.asset_changes import AssetUnderChange, loaded
from graticule.services.jobs import JobService, Submission
from graticule.services.workflow_choice import OUTPUTS, PUBLISHING, publishing_inputs
from graticule.services.workflows import Workflows

EXTERNAL = (JobPurpose.EXPORT, JobPurpose.REVERSAL)
COPY = ("external_blob_path", "export_run_id")
OURSELVES: Final = Caller("orchestrator", frozenset())


class PublishingJobs:
    """Starts the workflows that publish and withdraw, inside the transaction that decides it."""

    def __init__(self, jobs: JobService, workflows: Workflows) -> None:
        self._jobs = jobs
        self._workflows = workflows

    async def publish(self, change: AssetUnderChange, now: datetime, named: AssetVersion | None = None) -> JobId | None:
        """Copy what the public may reach and has not in its present revision; give the job of the newest version.

        What too few reviewers have approved stays as it is, whichever decision led here.
        """
        job_id = None
        for version in await self.list_unpublished(change, named):
            if four_eyes.may_be_public(change, version):
                job_id = await self._export(change, version, now)
        return job_id

    async def list_unpublished(self, change: AssetUnderChange, named: AssetVersion | None = None) -> list[AssetVersion]:
        """Return what the public may reach, were the asset public, and has not in its present revision.

        That is the latest version, with `all_versions` each one in service, and the one that was named.
        """
        reached = list_for_public(change, named)
        return [version for version in reached if not await self._is_published(change, version)]

    async def list_withheld(self, change: AssetUnderChange) -> list[AssetVersion]:
        """Return the versions of a public asset that `publish` leaves out because too few have approved them."""
        if change.asset.clearance_state is not ClearanceState.PUBLIC:
            return []
        withheld = [version for version in list_for_public(change) if not four_eyes.may_be_public(change, version)]
        return [version for version in withheld if not await self._is_published(change, version)]

    async def renew(self, change: AssetUnderChange, now: datetime) -> list[JobId]:
        """Copy anew what was processed again while it was public; give the jobs."""
        outdated = await AssetRepository(change.connection).outdated_copies(AssetId(change.asset.asset_id))
        return [await self._export(change, change.versions[ordinal], now) for _, ordinal in outdated]

    async def reverse(self, change: AssetUnderChange, versions: list[AssetVersion], now: datetime) -> JobId | None:
        """Remove the external copies of those versions that may have some; give the last job.

        From now on the public sees none of them, however long it takes to remove them.
        """
        job_id, assets = None, AssetRepository(change.connection)
        for version in versions:
            if withdrawn := await AssetVersionRepository(change.connection).withdraw_copies(version, now):
                change.written(withdrawn)
            if await assets.needs_reversal(AssetId(version.asset_id), version.version_ordinal):
                await change.cancel_jobs(now, version.version_ordinal, EXTERNAL)
                job_id = await self._start(change, JobPurpose.REVERSAL, version, [version])
        return job_id

    async def unpublish(self, change: AssetUnderChange, versions: list[AssetVersion]) -> JobId:
        """Remove an asset with all its versions from the services."""
        return await self._start(change, JobPurpose.UNPUBLISH, versions[-1], versions)

    async def _is_published(self, change: AssetUnderChange, version: AssetVersion) -> bool:
        """Tell whether the revision in service is, or is about to be, where the public reads."""
        revision = version.approved_revision or version.revision
        if version.exported_revision == revision:
            return not await change.has_jobs(version.version_ordinal, [JobPurpose.REVERSAL])
        assets = AssetRepository(change.connection)
        return await assets.is_being_exported(AssetId(version.asset_id), version.version_ordinal, revision)

    async def _export(self, change: AssetUnderChange, version: AssetVersion, now: datetime) -> JobId:
        await change.cancel_jobs(now, version.version_ordinal, EXTERNAL)
        return await self._start(change, JobPurpose.EXPORT, version, [await _in_service(change, version)])

    async def _start(
        self, change: AssetUnderChange, purpose: JobPurpose, version: AssetVersion, versions: list[AssetVersion]
    ) -> JobId:
        graph = self._workflows.library.get(PUBLISHING[purpose])
        submission = Submission(
            workflow_id=graph.workflow_id,
            input_params=publishing_inputs(graph, change.asset, versions, await _copies(change, versions)),
            submitted_by=change.caller.name[:64],
            priority=version.priority,
        )
        work = AssetWork(AssetId(version.asset_id), version.version_ordinal, purpose)
        prepared = self._jobs.prepare(submission, work, actor=change.caller.name, platform_id=change.asset.platform_id)
        await self._jobs.add_within(change.connection, [prepared])
        await change.read_again(version)
        return prepared.job_id


class CopyRenewal:
    """Lets the copies for the public follow a revision that came into service without a decision.

    A version that is processed again keeps its approval if its content is the same. Any number of instances may look
    for such versions: what is to be done is decided with the asset locked.
    """

    def __init__(self, database: Database, publishing: PublishingJobs) -> None:
        self._database = database
        self._publishing = publishing

    async def assets(self) -> list[AssetId]:
        """Give the assets that have outdated copies; some of them, if there are many."""
        async with self._database.connection() as connection:
            found = await AssetRepository(connection).outdated_copies()
        return list(dict.fromkeys(asset_id for asset_id, _ in found))

    async def renew(self, asset_id: AssetId) -> list[JobId]:
        """Start the export of what is outdated still; give the jobs."""
        async with self._database.transaction(Commit.CHANGE_ASSET) as connection:
            await AssetRepository(connection).lock(asset_id)
            change = await loaded(connection, asset_id, OURSELVES)
            return await self._publishing.renew(change, self._database.now())


def list_for_public(change: AssetUnderChange, named: AssetVersion | None = None) -> list[AssetVersion]:
    """Return the versions in service that the addresses of an asset reach, and the one that was named."""
    reached = change.in_service if change.asset.url_mode is UrlMode.ALL_VERSIONS else change.in_service[-1:]
    ordinals = {version.version_ordinal for version in (*reached, *([named] if named else []))}
    return [version for version in change.in_service if version.version_ordinal in ordinals]


async def _in_service(change: AssetUnderChange, version: AssetVersion) -> AssetVersion:
    """Give a version with the outputs of its approved revision, which a newer one may have succeeded.

    The copy for the public is the one that there is now.
    """
    if version.approved_revision in {None, version.revision}:
        return version
    logged = await AssetRevisionRepository(change.connection).get(
        asset_id=version.asset_id, version_ordinal=version.version_ordinal, revision=version.approved_revision
    )
    outputs = {name: logged.outputs.get(name) for name in OUTPUTS if name not in COPY}
    return version.model_copy(update={**outputs, "revision": logged.revision})


async def _copies(change: AssetUnderChange, versions: list[AssetVersion]) -> list[dict[str, JsonValue]]:
    """Give all copies that were ever made of versions, those of earlier revisions too."""
    revisions = AssetRevisionRepository(change.connection)
    made: list[Mapping[str, JsonValue]] = []
    for version in versions:
        logged = await revisions.of_version(AssetId(version.asset_id), version.version_ordinal)
        now = change.versions[version.version_ordinal]
        made += [*(each.outputs for each in logged), {name: getattr(now, name) for name in COPY}]
    copies = [{name: each.get(name) for name in COPY} for each in made if each.get("export_run_id")]
    return [copy for place, copy in enumerate(copies) if copy not in copies[:place]]
