"""The migration corrects what earlier releases left in the rows, and triggers keep it right from then on."""

from collections.abc import Iterator
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.conftest import TestDatabase, new_database

from graticule.schema.deploy import database_schema

CHANGED: Final = "b" * 32
UNTOLD: Final = "c" * 32
AS_EARLIER_RELEASES: LiteralString = "DROP FUNCTION dagapp.keep_first_times, dagapp.count_processing_only CASCADE"
# Cleared on 1 May, public on 2 May, for official use again on 3 May: the row has the last change alone.
ROWS: LiteralString = """
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type, clearance_state, cleared_at,
                                          cleared_by)
    VALUES (%(changed)s, 'ddh', '{"dataset_id": "1"}', 'raster', 'ouo', '2026-05-03Z', 'cid'),
           (%(untold)s, 'ddh', '{"dataset_id": "2"}', 'raster', 'ouo', '2026-05-04Z', 'dan');
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, job_count)
    VALUES (%(changed)s, 0, 'V1', 7), (%(untold)s, 0, 'V1', 3);
    INSERT INTO dagapp.dag_job_events (event_type, asset_id, version_ordinal, actor, data, created_at)
    VALUES ('asset_version_added', %(changed)s, 0, 'portal', '{}', '2026-04-30Z'),
           ('asset_approved', %(changed)s, 0, 'ann', '{"clearance_before": "uncleared", "clearance_state": "ouo"}',
            '2026-05-01Z'),
           ('asset_clearance_changed', %(changed)s, NULL, 'ben', '{"before": "ouo", "clearance_state": "public"}',
            '2026-05-02Z'),
           ('asset_version_overwritten', %(changed)s, 0, 'portal', '{}', '2026-05-02Z'),
           ('asset_clearance_changed', %(changed)s, NULL, 'cid', '{"before": "public", "clearance_state": "ouo"}',
            '2026-05-03Z')
"""
READ: LiteralString = """
    SELECT to_char(cleared_at AT TIME ZONE 'UTC', 'MM-DD') AS cleared, cleared_by,
           to_char(made_public_at AT TIME ZONE 'UTC', 'MM-DD') AS made_public, made_public_by,
           to_char(clearance_changed_at AT TIME ZONE 'UTC', 'MM-DD') AS changed, clearance_changed_by, job_count
    FROM dagapp.geospatial_assets JOIN dagapp.asset_versions USING (asset_id) WHERE asset_id = %s
"""


@pytest.fixture
def earlier(quiet_server: None) -> Iterator[TestDatabase]:
    """Return a database with rows as earlier releases left them."""
    with new_database() as created:
        with psycopg.connect(created.url()) as admin:
            admin.execute(AS_EARLIER_RELEASES)
            for statement in ROWS.split(";"):
                admin.execute(statement.encode(), {"changed": CHANGED, "untold": UNTOLD})
        yield created


async def test_migration_restores_first_times_and_counts_from_the_history(earlier: TestDatabase) -> None:
    async with database_schema(earlier.url()) as schema:
        assert not (await schema.status()).current
        assert (await schema.migrate()).current
        assert (await schema.status()).current
    assert read(earlier, CHANGED) == {
        "cleared": "05-01",
        "cleared_by": "ann",
        "made_public": "05-02",
        "made_public_by": "ben",
        "changed": "05-03",
        "clearance_changed_by": "cid",
        "job_count": 2,
    }
    # Of this one the history has nothing, so the row is all that is known.
    assert read(earlier, UNTOLD) == {
        "cleared": "05-04",
        "cleared_by": "dan",
        "made_public": None,
        "made_public_by": None,
        "changed": "05-04",
        "clearance_changed_by": "dan",
        "job_count": 3,
    }


async def test_migration_corrects_rows_once(earlier: TestDatabase) -> None:
    async with database_schema(earlier.url()) as schema:
        await schema.migrate()
        with psycopg.connect(earlier.url()) as admin:
            admin.execute("COMMENT ON FUNCTION dagapp.keep_first_times() IS 'of another release'")
        assert [each.object for each in (await schema.status()).pending] == ["triggers"]
        with psycopg.connect(earlier.url()) as admin:
            rows = admin.execute("SELECT xmin FROM dagapp.geospatial_assets ORDER BY asset_id").fetchall()
        assert (await schema.migrate()).current
    with psycopg.connect(earlier.url()) as admin:
        assert admin.execute("SELECT xmin FROM dagapp.geospatial_assets ORDER BY asset_id").fetchall() == rows


def read(database: TestDatabase, asset_id: str) -> dict[str, Any] | None:
    with psycopg.connect(database.url(), row_factory=dict_row) as admin:
        return admin.execute(READ, [asset_id]).fetchone()


APPROVED: Final = "d" * 32
SECONDED: Final = "e" * 32
WITHOUT_APPROVERS: LiteralString = """
    DROP FUNCTION dagapp.keep_approvers CASCADE;
    ALTER TABLE dagapp.asset_versions DROP COLUMN approved_by, DROP COLUMN seconded_by;
    COMMENT ON FUNCTION dagapp.keep_first_times() IS 'of another release';
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type, clearance_state, cleared_at,
                                          cleared_by, made_public_at, made_public_by, clearance_changed_at,
                                          clearance_changed_by)
    VALUES (%(approved)s, 'ddh', '{"dataset_id": "1"}', 'raster', 'public', now(), 'x', now(), 'x', '2026-05-03Z',
            'omar'),
           (%(seconded)s, 'ddh', '{"dataset_id": "2"}', 'raster', 'ouo', now(), 'x', NULL, NULL, '2026-05-03Z', 'omar');
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, revision, approval_state, reviewer,
                                       reviewed_at, approved_revision, exported_revision, endorsed_revision,
                                       endorsed_by)
    VALUES (%(approved)s, 0, 'made public later', 1, 'approved', 'ruth', '2026-05-02Z', 1, 1, NULL, NULL),
           (%(approved)s, 1, 'approved later', 1, 'approved', 'ruth', '2026-05-04Z', 1, 1, NULL, NULL),
           (%(approved)s, 2, 'not in service', 1, 'pending_review', NULL, NULL, NULL, NULL, 1, 'ruth'),
           (%(seconded)s, 0, 'endorsed', 1, 'approved', 'ruth', '2026-05-02Z', 1, NULL, 1, 'omar'),
           (%(seconded)s, 1, 'overwritten', 2, 'pending_review', NULL, NULL, 1, NULL, NULL, NULL),
           (%(seconded)s, 2, 'not public', 1, 'approved', 'ruth', '2026-05-02Z', 1, 1, NULL, NULL);
    INSERT INTO dagapp.asset_revisions (asset_id, version_ordinal, revision, approval_state, clearance_state, reviewer,
                                        reviewed_at, created_at)
    VALUES (%(seconded)s, 1, 1, 'approved', 'ouo', 'olga', '2026-05-01Z', '2026-05-01Z')
"""


async def test_migration_notes_who_approved_what_is_in_service(quiet_server: None) -> None:
    with new_database() as created:
        with psycopg.connect(created.url()) as admin:
            for statement in WITHOUT_APPROVERS.split(";"):
                admin.execute(statement.encode(), {"approved": APPROVED, "seconded": SECONDED})
        async with database_schema(created.url()) as schema:
            assert (await schema.migrate()).current
        with psycopg.connect(created.url()) as admin:
            found = admin.execute(
                "SELECT version_label, approved_by, seconded_by FROM dagapp.asset_versions"
            ).fetchall()
            admin.execute(  # as an earlier release does, which does not know the columns
                "UPDATE dagapp.asset_versions SET approval_state = 'approved', reviewer = 'olga', reviewed_at = now(),"
                " approved_revision = revision WHERE version_label = 'not in service'"
            )
            late = admin.execute(
                "SELECT approved_by, seconded_by FROM dagapp.asset_versions WHERE version_label = 'not in service'"
            ).fetchone()
    assert sorted(found) == [
        ("approved later", "ruth", None),
        ("endorsed", "ruth", "omar"),
        ("made public later", "ruth", "omar"),
        ("not in service", None, None),
        ("not public", "ruth", None),
        ("overwritten", "olga", None),
    ]
    assert late == ("olga", "ruth")
