"""Ten thousand assets of two versions each: enough that a scan would cost more than the index."""

from typing import LiteralString

import psycopg

ASSETS = 10_000
FILL: tuple[LiteralString, ...] = (
    """
    INSERT INTO dagapp.geospatial_assets
        (asset_id, platform_id, platform_refs, data_type, clearance_state, cleared_at, cleared_by,
         made_public_at, made_public_by, latest_approved_version_ordinal, deleted_at, deleted_by, created_at)
    SELECT md5(n::text), platform, refs, CASE WHEN n %% 50 = 0 THEN 'raster' ELSE 'vector' END::dagapp.data_type,
           clearance::dagapp.clearance_state, CASE WHEN clearance <> 'uncleared' THEN now() END,
           CASE WHEN clearance <> 'uncleared' THEN 'rita' END, CASE WHEN clearance = 'public' THEN now() END,
           CASE WHEN clearance = 'public' THEN 'rita' END, 0, CASE WHEN n %% 40 = 0 THEN now() END,
           CASE WHEN n %% 40 = 0 THEN 'olaf' END, '2026-01-01Z'::timestamptz + n * interval '1 minute'
    FROM generate_series(1, %(assets)s) AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN n %% 10 < 6 THEN 'ddh' WHEN n %% 10 < 9 THEN 'arcgis' ELSE 'geonode' END AS platform,
               CASE WHEN n %% 25 = 0 THEN 'public' WHEN n %% 5 = 0 THEN 'ouo' ELSE 'uncleared' END AS clearance,
               jsonb_build_object('dataset_id', lpad((n / 5)::text, 7, '0'), 'resource_id', 'shape-' || n %% 5) AS refs
    ) AS made
    """,
    """
    INSERT INTO dagapp.asset_versions
        (asset_id, version_ordinal, version_label, approval_state, reviewer, reviewed_at, approved_revision,
         rejection_reason, processing_state, processing_started_at, processing_completed_at, last_error, job_count,
         workflow_id, bbox, created_at)
    SELECT md5(n::text), ordinal, '2026-' || ordinal, approval::dagapp.approval_state,
           CASE WHEN approval <> 'pending_review' THEN 'rita' END,
           CASE WHEN approval <> 'pending_review' THEN now() END, CASE WHEN approval = 'approved' THEN 1 END,
           CASE WHEN approval = 'rejected' THEN 'blurred' END, processing::dagapp.processing_state,
           CASE WHEN processing <> 'queued' THEN now() - n * interval '1 second' END,
           CASE WHEN processing IN ('completed', 'failed') THEN now() END,
           CASE WHEN processing = 'failed' THEN 'no such file' END, 1 + CASE WHEN n %% 100 = 0 THEN n / 100 ELSE 0 END,
           'flow_' || n %% 7, ARRAY[west, south, west + 0.5, south + 0.5],
           '2026-01-01Z'::timestamptz + n * interval '1 minute' + ordinal * interval '1 day'
    FROM generate_series(1, %(assets)s) AS n CROSS JOIN generate_series(0, 1) AS ordinal
    CROSS JOIN LATERAL (
        SELECT CASE WHEN ordinal = 0 OR n %% 10 < 7 THEN 'approved' WHEN n %% 50 = 9 THEN 'rejected'
                    ELSE 'pending_review' END AS approval,
               CASE WHEN ordinal = 0 THEN 'completed' WHEN n %% 100 = 1 THEN 'queued'
                    WHEN n %% 100 = 2 THEN 'processing' WHEN n %% 50 = 3 THEN 'failed'
                    ELSE 'completed' END AS processing,
               (n %% 350) - 175.5 AS west, (n %% 160) - 80.5 AS south
    ) AS made
    """,
    """
    INSERT INTO dagapp.layer_metadata (asset_id, version_ordinal, title, description)
    SELECT md5(n::text), n %% 2, 'Title' || n / 10 || ' of the land', 'Rivers and lakes, sheet ' || n / 3
    FROM generate_series(1, %(assets)s) AS n
    """,
    """
    INSERT INTO dagapp.platform_requests (request_id, platform_id, asset_id, version_ordinal, request_body, status,
                                          last_error, created_at)
    SELECT md5(n::text)::uuid, platform_id, asset_id, 0, '{}',
           CASE WHEN n %% 50 = 3 THEN 'failed' WHEN n %% 100 = 2 THEN 'processing' ELSE 'completed'
               END::dagapp.request_status,
           CASE WHEN n %% 50 = 3 THEN 'no such file' END, created_at
    FROM generate_series(1, %(assets)s) AS n JOIN dagapp.geospatial_assets ON asset_id = md5(n::text)
    """,
    """
    INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
    VALUES (repeat('0', 64), 'flow', '1', 'Flow', '{}')
    """,
    """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, created_at, started_at,
                                 ended_at, asset_id, version_ordinal, purpose)
    SELECT 'job-' || n, 'flow_' || n %% 7, '1', repeat('0', 64),
           CASE WHEN n %% 500 = 0 THEN 'running' ELSE 'completed' END::dagapp.job_status, ended - interval '2 minutes',
           ended - interval '1 minute', CASE WHEN n %% 500 <> 0 THEN ended END, md5(n::text), 0, 'process'
    FROM generate_series(1, 5000) AS n
    CROSS JOIN LATERAL (SELECT now() - n * interval '20 minutes' AS ended) AS made
    """,
    """
    INSERT INTO dagapp.dag_job_events (event_type, asset_id, version_ordinal, actor, created_at)
    SELECT (CASE WHEN which = 1 THEN 'asset_created' WHEN n %% 100 = 0 THEN 'asset_export_failed'
            ELSE 'asset_approved' END)::dagapp.event_type, md5(n::text), 0, 'rita',
           date_trunc('month', now()) + n %% 4 * interval '1 month'  -- in all partitions
    FROM generate_series(%(assets)s - 4000, %(assets)s) AS n CROSS JOIN generate_series(1, 2) AS which
    """,
)
ANALYZE: LiteralString = (
    "ANALYZE dagapp.geospatial_assets, dagapp.asset_versions, dagapp.layer_metadata, dagapp.platform_requests,"
    " dagapp.dag_jobs, dagapp.dag_job_events"
)


def fill(url: str) -> None:
    """Add the rows, without the checks of foreign keys, and let the planner know them."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in FILL:
            connection.execute(statement, {"assets": ASSETS})
        connection.execute(ANALYZE)
