"""Between the check of a job's outputs and the commit that makes them visible, nothing is decided on its version."""

import asyncio

from tests.conftest import TestDatabase
from tests.integration.services.desk import Desk

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
