"""A database with one version that is in service, and jobs of every kind; who writes there."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final, LiteralString

import psycopg
import pytest
from tests.conftest import TestDatabase, new_database
from tests.integration.repositories import rows

from graticule.core.ids import JobId
from graticule.core.models.engine import JobPurpose
from graticule.core.states import JobStatus
from graticule.core.table import DatabaseRole
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.repositories.outputs import OutputKind

TABLE, PREFIX = "roads_01234567_v0", "ddh/roads/01234567/v0/r1"
COLLECTION, ITEM = "ddh-roads-01234567", "roads-01234567-v0"
INPUTS: Final = {
    "table_name": TABLE,
    "blob_prefix": PREFIX,
    "stac_collection_id": COLLECTION,
    "stac_item_id": ITEM,
    "version_prefix": "ddh/roads/01234567/v0",
}
DONE, CURRENT, OUTDATED, DIRECT, ENDED = map(JobId, ("done", "current", "outdated", "direct", "ended"))
EXPORT, REVERSAL, UNPUBLISH = map(JobId, ("export", "reversal", "unpublish"))
KNOWN_BY_PARAMETERS = JobId("0123456789abcdef" * 4)
OWN = [
    (OutputKind.TABLE, TABLE),
    (OutputKind.PREFIX, PREFIX),
    (OutputKind.COLLECTION, COLLECTION),
    (OutputKind.ITEM, f"{COLLECTION}/{ITEM}"),
]
INSERT_ITEM: LiteralString = """
    INSERT INTO pgstac.items (id, geometry, collection, datetime, end_datetime, content)
    VALUES (%s, ST_SetSRID(ST_Point(0, 0), 4326), %s, '2024-01-01Z', '2024-01-01Z', '{}')
"""


@pytest.fixture(scope="module")
def outputs() -> Iterator[TestDatabase]:
    """Return a database with one version that is in service, and jobs of every kind."""
    version = {
        "processing_state": "completed",
        "table_name": TABLE,
        "stac_collection_id": COLLECTION,
        "stac_item_id": ITEM,
    }
    of_version = {"asset_id": rows.ASSET, "version_ordinal": 0, "input_params": INPUTS}
    jobs = [
        rows.job(CURRENT, **of_version, purpose=JobPurpose.PROCESS),
        rows.job(OUTDATED, **of_version, purpose=JobPurpose.PROCESS),
        rows.job(EXPORT, **of_version, purpose=JobPurpose.EXPORT),
        rows.job(
            REVERSAL,
            **of_version | {"input_params": {"stac_collection_id": COLLECTION}},  # it is told of no item
            purpose=JobPurpose.REVERSAL,
        ),
        rows.job(UNPUBLISH, **of_version, purpose=JobPurpose.UNPUBLISH),
        rows.job(DIRECT, input_params={**INPUTS, "asset_id": rows.ASSET}),
        rows.job(KNOWN_BY_PARAMETERS),
        rows.job(ENDED, status=JobStatus.COMPLETED, ended_at=rows.NOW),
    ]
    with new_database() as created:
        with psycopg.connect(created.url(), autocommit=True) as admin:
            for row in (rows.workflow(), rows.asset(), rows.version(0, **version), *jobs):
                admin.execute(statements.insert(type(row)), statements.parameters(row))
            admin.execute("UPDATE dagapp.asset_versions SET current_job_id = %s", [CURRENT])
            for collection in (COLLECTION, "direct-c"):
                admin.execute("SELECT pgstac.create_collection(%s)", [f'{{"id": "{collection}"}}'])
                admin.execute(
                    "SELECT pgstac.check_partition(%s, '[2024-01-01Z,2024-01-01Z]', '[2024-01-01Z,2024-01-01Z]')",
                    [collection],
                )
        yield created


@pytest.fixture
def worker(outputs: TestDatabase) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a worker does, in a transaction that leaves nothing."""
    with psycopg.connect(outputs.url(DatabaseRole.WORKER)) as connection:
        connection.execute("SET search_path = pgstac, public")
        yield connection
        connection.rollback()


@pytest.fixture
async def pool(outputs: TestDatabase) -> AsyncIterator[Database]:
    """Return connections with the rights of a worker."""
    async with Database(outputs.url(DatabaseRole.WORKER), DatabaseRole.WORKER, pool_size=2) as opened:
        yield opened


@contextmanager
def at_work(outputs: TestDatabase, *job_ids: JobId) -> Iterator[psycopg.Connection[Any]]:
    """Let these jobs of the asset be at work, and no others."""
    with psycopg.connect(outputs.url(), autocommit=True) as admin:
        admin.execute(
            "UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now()"
            " WHERE asset_id IS NOT NULL AND job_id <> ALL (%s)",
            [list(job_ids)],
        )
        try:
            yield admin
        finally:
            admin.execute("UPDATE dagapp.dag_jobs SET status = 'running', ended_at = NULL WHERE asset_id IS NOT NULL")
