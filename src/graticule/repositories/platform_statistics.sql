-- What people ask of the platform as a whole. Each statement reads a partial index of what matters now, or a bounded
-- stretch of one, never all that ever was.

-- name: stuck_versions
-- Longest first.
SELECT version.asset_id, platform_id, platform_refs, version_ordinal, version_label, revision, workflow_id,
       current_job_id, job_count, processing_started_at, estimated_completion_at, node_summary,
       extract(epoch FROM %(now)s::timestamptz - processing_started_at)::float8 AS seconds
FROM dagapp.asset_versions AS version JOIN dagapp.geospatial_assets AS asset USING (asset_id)
WHERE processing_state = 'processing' AND version.deleted_at IS NULL
  AND processing_started_at < %(now)s::timestamptz - %(minutes)s * interval '1 minute'
  AND (processing_started_at, version.asset_id, version_ordinal)
      > (coalesce(%(after_at)s::timestamptz, '-infinity'), coalesce(%(after_asset_id)s::text, ''),
         coalesce(%(after_ordinal)s::int, 0))
ORDER BY processing_started_at, version.asset_id, version_ordinal
LIMIT %(limit)s;

-- name: failed_versions
-- Newest first: those that failed to be processed, and those whose copies for the public could not be made or removed.
-- A failure counts until a later job of its kind has ended otherwise, or is under way, or nobody wants it any more. What
-- was unpublished waits for nobody, unless its copies are still there.
WITH failed AS (
    (
        SELECT version.asset_id, version.version_ordinal, 'process'::dagapp.job_purpose AS purpose,
               current_job_id AS job_id, coalesce(processing_completed_at, version.updated_at) AS failed_at,
               last_error AS error
        FROM dagapp.asset_versions AS version JOIN dagapp.geospatial_assets AS asset USING (asset_id)
        WHERE processing_state = 'failed' AND version.deleted_at IS NULL AND asset.deleted_at IS NULL
          AND (coalesce(processing_completed_at, version.updated_at), version.asset_id, version_ordinal)
              < (coalesce(%(before_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''),
                 coalesce(%(before_ordinal)s::int, 0))
        ORDER BY coalesce(processing_completed_at, version.updated_at) DESC, version.asset_id DESC,
                 version_ordinal DESC
        LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT version.asset_id, version.version_ordinal,
               (CASE event_type WHEN 'asset_export_failed' THEN 'export' WHEN 'asset_reversal_failed' THEN 'reversal'
                ELSE 'unpublish' END)::dagapp.job_purpose,
               event.job_id, event.created_at, event.data ->> 'error'
        FROM dagapp.dag_job_events AS event
        JOIN dagapp.asset_versions AS version USING (asset_id, version_ordinal)
        JOIN dagapp.geospatial_assets AS asset USING (asset_id)
        WHERE event_type IN ('asset_export_failed', 'asset_reversal_failed', 'asset_unpublish_failed')
          AND (event.created_at, event.asset_id, event.version_ordinal)
              < (coalesce(%(before_at)s::timestamptz, 'infinity'), coalesce(%(before_asset_id)s::text, ''),
                 coalesce(%(before_ordinal)s::int, 0))
          AND (event_type <> 'asset_export_failed'
               OR clearance_state = 'public' AND asset.deleted_at IS NULL AND version.deleted_at IS NULL
                  AND approved_revision IS NOT NULL)
          AND NOT EXISTS (
              SELECT FROM dagapp.dag_job_events AS later
              WHERE later.asset_id = event.asset_id
                AND (later.version_ordinal = event.version_ordinal
                     AND later.event_type IN ('asset_export_completed', 'asset_export_failed',
                                              'asset_reversal_completed', 'asset_reversal_failed')
                     OR later.event_type IN ('asset_unpublish_completed', 'asset_unpublish_failed'))
                AND (later.job_id, later.event_id) > (event.job_id, event.event_id))
          AND NOT EXISTS (
              SELECT FROM dagapp.dag_jobs AS job
              WHERE job.asset_id = event.asset_id AND job.status IN ('pending', 'running')
                AND (job.version_ordinal = event.version_ordinal AND job.purpose IN ('export', 'reversal')
                     OR job.purpose = 'unpublish'))
        ORDER BY event.created_at DESC, event.asset_id DESC, event.version_ordinal DESC
        LIMIT %(limit)s
    )
)
SELECT failed.asset_id, platform_id, platform_refs, failed.version_ordinal, version_label, revision, workflow_id,
       current_job_id, job_count, purpose, job_id, failed_at, failed.error,
       coalesce((SELECT retry_count FROM dagapp.platform_requests WHERE request_id = last_request_id), 0) AS retry_count
FROM failed
JOIN dagapp.asset_versions AS version USING (asset_id, version_ordinal)
JOIN dagapp.geospatial_assets AS asset USING (asset_id)
ORDER BY failed_at DESC, failed.asset_id DESC, failed.version_ordinal DESC
LIMIT %(limit)s;

-- name: versions_with_many_jobs
-- Most first.
SELECT version.asset_id, platform_id, platform_refs, version_ordinal, version_label, revision, workflow_id,
       current_job_id, job_count, processing_state, last_error AS error
FROM dagapp.asset_versions AS version JOIN dagapp.geospatial_assets AS asset USING (asset_id)
WHERE job_count > 1 AND job_count >= %(at_least)s AND version.deleted_at IS NULL AND asset.deleted_at IS NULL
  AND job_count <= coalesce(%(after_count)s::int, 2147483647)
  AND (job_count < coalesce(%(after_count)s::int, 2147483647)
       OR (version.asset_id, version_ordinal) > (%(after_asset_id)s::text, %(after_ordinal)s::int))
ORDER BY job_count DESC, version.asset_id, version_ordinal
LIMIT %(limit)s;

-- name: durations_of_workflows
-- From the first dispatch to the end, of the newest jobs that completed.
SELECT workflow_id, count(*) AS jobs,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50_seconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95_seconds
FROM (
    SELECT workflow_id, extract(epoch FROM ended_at - coalesce(started_at, created_at))::float8 AS seconds
    FROM dagapp.dag_jobs
    WHERE ended_at > %(now)s::timestamptz - %(days)s * interval '1 day' AND status = 'completed'
    ORDER BY ended_at DESC LIMIT %(bound)s
) AS recent
GROUP BY workflow_id
ORDER BY workflow_id;

-- name: load_by_workflow
SELECT workflow_id, sum(pending)::bigint AS pending, sum(running)::bigint AS running,
       sum(completed)::bigint AS completed_24h, sum(failed)::bigint AS failed_24h,
       sum(cancelled)::bigint AS cancelled_24h
FROM (
    SELECT workflow_id, count(*) FILTER (WHERE status = 'pending') AS pending,
           count(*) FILTER (WHERE status = 'running') AS running, 0 AS completed, 0 AS failed, 0 AS cancelled
    FROM (SELECT workflow_id, status FROM dagapp.dag_jobs WHERE status IN ('pending', 'running') LIMIT %(bound)s) AS active
    GROUP BY workflow_id
    UNION ALL
    SELECT workflow_id, 0, 0, count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
           count(*) FILTER (WHERE status = 'cancelled')
    FROM (
        SELECT workflow_id, status FROM dagapp.dag_jobs
        WHERE ended_at > %(now)s::timestamptz - interval '24 hours'
        ORDER BY ended_at DESC LIMIT %(bound)s
    ) AS ended
    GROUP BY workflow_id
) AS part
GROUP BY workflow_id
ORDER BY workflow_id;
