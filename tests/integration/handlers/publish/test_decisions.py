"""From a decision to the copies and back: the platform's services, the workflows as they are shipped, the handlers."""

from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.handlers.publish.publisher import Publisher, output
from tests.integration.services.desk import RITA, WORK, Desk
from tests.integration.services.engine import Bench, Shelf, flow

from graticule.core.exchange import SubmissionReceipt
from graticule.core.ids import JobId
from graticule.core.models.engine import JobPurpose
from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.services.publishing import PublishingJobs
from graticule.services.reviewed_files import ReviewedFiles
from graticule.services.reviews import ReviewService
from graticule.services.submission_checks import SubmissionChecks
from graticule.services.submissions import SubmissionService
from graticule.storage.local import LocalStorage

INGEST = "container_name: {type: string}, blob_name: {type: string}, blob_prefix: {type: string}"
SHIPPED = [
    files("graticule.workflows").joinpath(f"{name}.yaml").read_text()
    for name in ("adf_export", "adf_reversal", "unpublish")
]
NODES = {JobPurpose.EXPORT: "export", JobPurpose.REVERSAL: "reverse", JobPurpose.UNPUBLISH: "withdraw"}


class Platform(Desk):
    """The platform with the workflows that are shipped, and a worker for those that publish."""

    def __init__(self, pool: Database, publisher: Publisher) -> None:
        workflows = (flow(WORK, workflow_id="raster_ingest", inputs=f"{{{INGEST}}}"), *SHIPPED)
        shelf: Any = Shelf(*workflows)
        self.pool, self.caller, self.publisher = pool, RITA, publisher
        self.bench = Bench(pool, publisher.folder, *workflows)
        self.sources = publisher.folder / "sources"
        checks = SubmissionChecks(pool, LocalStorage(self.sources))
        self.submissions = SubmissionService(pool, self.bench.jobs, shelf, checks)
        self.reviews = ReviewService(
            pool, PublishingJobs(self.bench.jobs, shelf), ReviewedFiles(pool, publisher.storage)
        )

    async def made(self, content: bytes, label: str = "V1", **more: Any) -> None:
        """Process a submission: its file is where the platform wants it, and in the catalogue."""
        await self.carried_out(await self.submit(label, **more), content)

    async def carried_out(self, receipt: SubmissionReceipt, content: bytes) -> None:
        """Process a revision."""
        publisher, prefix = self.publisher, (await self.bench.job(_known(receipt.job_id))).input_params["blob_prefix"]
        publisher.asset_id, publisher.dataset = receipt.asset_id, str(prefix).split("/")[1]
        publisher.processing = receipt.job_id
        made = await publisher.made(content, ordinal=receipt.version_ordinal, revision=receipt.revision)
        await self.finish(receipt.job_id, {"content_hash": content.hex()[:2] * 32, **made})

    async def worked(self, purpose: JobPurpose) -> Any:
        """Let the worker do the last job of a purpose, and the engine hear of it."""
        job = (await self.jobs(self.publisher.asset_id, purpose))[-1]
        task = await self.bench.task_of(job.job_id, NODES[purpose])
        done = output(await self.publisher.run(task.handler, job.job_id, **task.params))
        await self.bench.finish(job.job_id, NODES[purpose], done)
        assert await self.bench.status(job.job_id) is JobStatus.COMPLETED
        return done


def _known(job_id: JobId | None) -> JobId:
    assert job_id is not None
    return job_id


@pytest.fixture
async def platform(own_database: TestDatabase, tmp_path: Path) -> AsyncIterator[Platform]:
    roles = (DatabaseRole.ORCHESTRATOR, DatabaseRole.WORKER)
    pools = [Database(own_database.url(role), role, pool_size=4) for role in roles]
    with psycopg.connect(own_database.url(), autocommit=True) as admin:
        async with pools[0] as ours, pools[1] as workers:
            desk = Platform(ours, Publisher(admin, workers, tmp_path))
            yield desk
            await desk.check()


async def test_a_version_becomes_public_is_renewed_and_withdrawn(platform: Platform) -> None:
    publisher = platform.publisher
    await platform.made(b"one")
    asset_id = publisher.asset_id
    await platform.approve(asset_id, "public")
    done = await platform.worked(JobPurpose.EXPORT)
    version = await platform.version(asset_id)
    assert (version.external_blob_path, version.exported_revision) == (done["external_blob_path"], 1)
    assert await publisher.blobs() == {"v0/r1/cogs/scene.tif": b"one"}
    await platform.made(b"two", overwrite=True)
    assert await publisher.blobs() == {"v0/r1/cogs/scene.tif": b"one"}, "it stays until the new one is approved"
    await platform.approve(asset_id, "public")
    await platform.worked(JobPurpose.EXPORT)
    assert [*await publisher.blobs()] == ["v0/r1/cogs/scene.tif", "v0/r2/cogs/scene.tif"], "it was read until now"
    await platform.made(b"three", overwrite=True)
    await platform.approve(asset_id, "public")
    await platform.worked(JobPurpose.EXPORT)
    assert await publisher.blobs() == {"v0/r2/cogs/scene.tif": b"two", "v0/r3/cogs/scene.tif": b"three"}
    await platform.clear(asset_id, "ouo")
    assert (await platform.worked(JobPurpose.REVERSAL))["removed"] == {"blobs": 2, "tables": 0, "items": 1}
    version = await platform.version(asset_id)
    assert (version.external_blob_path, version.export_run_id, version.exported_revision) == (None, None, None)
    assert version.first_exported_at is not None
    await platform.clear(asset_id, "public")
    await platform.worked(JobPurpose.EXPORT)
    await platform.unpublish(asset_id)
    assert (await platform.worked(JobPurpose.UNPUBLISH))["removed"] == {"blobs": 1, "tables": 0, "items": 2}
    assert await publisher.blobs() == {}
    assert len(await publisher.blobs("silver")) == 3


async def test_a_reprocessed_revision_of_the_same_content_takes_the_place_of_its_item(platform: Platform) -> None:
    await platform.made(b"one")
    asset_id = platform.publisher.asset_id
    await platform.approve(asset_id)
    await platform.carried_out(await platform.reprocess(asset_id), b"one")
    version = await platform.version(asset_id)
    assert (version.processing_state, version.approved_revision) == ("completed", 2), version.last_error
    assert str(version.stac_item_id).endswith("-v0")


async def test_only_the_decision_s_own_job_publishes(platform: Platform) -> None:
    """An operator may start any workflow; this one does nothing then."""
    await platform.made(b"one")
    asset_id = platform.publisher.asset_id
    await platform.approve(asset_id, "public")
    given = (await platform.jobs(asset_id, JobPurpose.EXPORT))[-1].input_params
    job_id = await platform.bench.submit("adf_export", **given)
    task = await platform.bench.task_of(job_id, "export")
    result = await platform.publisher.run(task.handler, job_id, **task.params)
    assert "not started by a decision" in str(result.error_message)
    await platform.worked(JobPurpose.EXPORT)
