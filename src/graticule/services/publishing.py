"""The jobs that carry a decision out: copies for the public are made and removed, services are withdrawn."""

from datetime import datetime

from graticule.core.ids import AssetId, JobId
from graticule.core.models import AssetVersion
from graticule.core.models.engine import JobPurpose
from graticule.repositories.assets import AssetRepository, AssetRevisionRepository
from graticule.repositories.steps import AssetWork
from graticule.services.asset_changes import AssetUnderChange
from graticule.services.jobs import JobService, Submission
from graticule.services.workflow_choice import OUTPUTS, PUBLISHING, publishing_inputs
from graticule.services.workflows import Workflows

EXTERNAL = (JobPurpose.EXPORT, JobPurpose.REVERSAL)


class PublishingJobs:
    """Starts the workflows that publish and withdraw, inside the transaction that decides it."""

    def __init__(self, jobs: JobService, workflows: Workflows) -> None:
        self._jobs = jobs
        self._workflows = workflows

    async def export(self, change: AssetUnderChange, version: AssetVersion, now: datetime) -> JobId:
        """Copy the revision in service of a version to where the public reads."""
        await change.cancel_jobs(now, version.version_ordinal, EXTERNAL)
        return await self._start(change, JobPurpose.EXPORT, version, [await _in_service(change, version)])

    async def reverse(self, change: AssetUnderChange, versions: list[AssetVersion], now: datetime) -> JobId | None:
        """Remove the external copies of those versions that may have some; give the last job."""
        job_id = None
        for version in versions:
            if await AssetRepository(change.connection).needs_reversal(
                AssetId(version.asset_id), version.version_ordinal
            ):
                await change.cancel_jobs(now, version.version_ordinal, EXTERNAL)
                job_id = await self._start(change, JobPurpose.REVERSAL, version, [version])
        return job_id

    async def unpublish(self, change: AssetUnderChange, versions: list[AssetVersion]) -> JobId:
        """Remove an asset with all its versions from the services."""
        return await self._start(change, JobPurpose.UNPUBLISH, versions[-1], versions)

    async def _start(
        self, change: AssetUnderChange, purpose: JobPurpose, version: AssetVersion, versions: list[AssetVersion]
    ) -> JobId:
        graph = self._workflows.library.get(PUBLISHING[purpose])
        submission = Submission(
            workflow_id=graph.workflow_id,
            input_params=publishing_inputs(graph, change.asset, versions),
            submitted_by=change.caller.name[:64],
            priority=version.priority,
        )
        work = AssetWork(AssetId(version.asset_id), version.version_ordinal, purpose)
        prepared = self._jobs.prepare(submission, work)
        await self._jobs.submit_within(change.connection, [prepared], change.caller.name)
        await change.read_again(version)
        return prepared.job_id


async def _in_service(change: AssetUnderChange, version: AssetVersion) -> AssetVersion:
    """Give a version with the outputs of its approved revision, which a newer one may have succeeded."""
    if version.approved_revision in {None, version.revision}:
        return version
    logged = await AssetRevisionRepository(change.connection).get(
        asset_id=version.asset_id, version_ordinal=version.version_ordinal, revision=version.approved_revision
    )
    outputs = {name: logged.outputs.get(name) for name in OUTPUTS}
    return version.model_copy(update={**outputs, "revision": logged.revision})
