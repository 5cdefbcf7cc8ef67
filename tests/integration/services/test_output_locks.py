"""While a job writes what it has processed, nothing is decided on its version; an export keeps nobody waiting."""

import asyncio

from tests.conftest import TestDatabase
from tests.integration.services.desk import Desk

from graticule.core.models.engine import JobPurpose
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.repositories.outputs import OutputKind, require_outputs


async def test_a_decision_waits_until_the_outputs_that_were_checked_are_written(
    desk: Desk, database: TestDatabase
) -> None:
    asset_id = (await desk.submit()).asset_id
    (job,) = await desk.jobs(asset_id)
    async with (
        Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=1) as worker,
        worker.connection() as connection,
        connection.transaction(),
    ):
        await require_outputs(connection, job.job_id, OutputKind.PREFIX, str(job.input_params["blob_prefix"]))
        deletion = asyncio.create_task(desk.delete(asset_id, 0))
        await desk.until_waiting(1)
        assert not deletion.done()
    await deletion
    assert (await desk.version(asset_id)).deleted_at is not None


async def test_a_decision_does_not_wait_until_an_export_has_copied(desk: Desk, database: TestDatabase) -> None:
    """The copy of a large table takes minutes: what was published by mistake is withdrawn at once."""
    receipt = await desk.submit()
    collection = (await desk.names(receipt))["stac_collection_id"]
    await desk.process(receipt, stac_collection_id=collection, stac_item_id=None)
    await desk.approve(receipt.asset_id, "public")
    (export,) = await desk.jobs(receipt.asset_id, JobPurpose.EXPORT)
    async with (
        Database(database.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=1) as worker,
        worker.connection() as connection,
        connection.transaction(),
    ):
        await require_outputs(connection, export.job_id, OutputKind.COLLECTION, f"{collection}-public")
        async with asyncio.timeout(10):
            await desk.revoke(receipt.asset_id)
    assert (await desk.version(receipt.asset_id)).approved_revision is None
