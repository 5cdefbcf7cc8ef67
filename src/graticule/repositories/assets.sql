-- Assets with their versions and revisions. Who changes one holds its lock to the end of the transaction. Only the engine
-- changes a version without it (see `step_parts.sql`), and only how its processing stands: so each statement here names
-- the states from which it leads, and writes no more than it is about.

-- name: lock_asset
SELECT pg_advisory_xact_lock(hashtextextended(%(asset_id)s, 0));

-- name: hold_jobs_of_asset
-- The engine locks a job first and then its version. So does who decides: from here on no job of the asset moves on.
SELECT FROM dagapp.dag_jobs WHERE asset_id = %(asset_id)s AND status IN ('pending', 'running')
ORDER BY job_id
FOR NO KEY UPDATE;

-- name: announce_asset
SELECT pg_notify('graticule_assets', %(asset_id)s);

-- name: short_id_of_another
SELECT * FROM dagapp.geospatial_assets WHERE short_id = %(short_id)s AND asset_id <> %(asset_id)s;

-- name: versions_of_asset
SELECT * FROM dagapp.asset_versions WHERE asset_id = %(asset_id)s ORDER BY version_ordinal;

-- name: approve_version
UPDATE dagapp.asset_versions
SET approval_state = 'approved', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = NULL,
    approved_revision = revision, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = 'pending_review' AND processing_state = 'completed'
RETURNING *;

-- name: reject_version
-- An earlier revision that is in service stays there.
UPDATE dagapp.asset_versions
SET approval_state = 'rejected', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = %(reason)s,
    updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = 'pending_review' AND processing_state IN ('completed', 'failed')
RETURNING *;

-- name: revoke_version
UPDATE dagapp.asset_versions
SET approval_state = 'rejected', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = %(reason)s,
    approved_revision = NULL, revoked_at = %(now)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approved_revision IS NOT NULL
RETURNING *;

-- name: begin_revision
-- The outputs stay those of the revision before until the new ones are made, and so does what is in service. An
-- approval is kept only while the same source is processed again.
UPDATE dagapp.asset_versions
SET revision = revision + 1, processing_state = 'queued', processing_started_at = NULL, processing_completed_at = NULL,
    estimated_completion_at = %(estimated_completion_at)s, last_error = NULL, told_error = NULL, node_summary = NULL,
    last_request_id = %(request_id)s, priority = %(priority)s, updated_at = %(now)s,
    (approval_state, reviewer, reviewed_at, rejection_reason, revoked_at) = (
        SELECT kept.* FROM (VALUES (approval_state, reviewer, reviewed_at, rejection_reason, revoked_at)) AS kept
        WHERE %(keeps_approval)s
        UNION ALL
        SELECT 'pending_review', NULL, NULL, NULL, NULL WHERE NOT %(keeps_approval)s
    )
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND processing_state IN ('completed', 'failed')
RETURNING *;

-- name: retry_version
UPDATE dagapp.asset_versions
SET processing_state = 'queued', processing_started_at = NULL, processing_completed_at = NULL,
    estimated_completion_at = %(estimated_completion_at)s, last_error = NULL, told_error = NULL, node_summary = NULL, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND processing_state = 'failed'
RETURNING *;

-- name: delete_versions
-- One version, or all of an asset.
UPDATE dagapp.asset_versions
SET deleted_at = %(now)s, deleted_by = %(actor)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND deleted_at IS NULL
  AND (%(version_ordinal)s::int IS NULL OR version_ordinal = %(version_ordinal)s)
RETURNING *;

-- name: revisions_of_version
SELECT * FROM dagapp.asset_revisions
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s
ORDER BY revision;

-- name: active_jobs_of_asset
SELECT job_id FROM dagapp.dag_jobs
WHERE asset_id = %(asset_id)s AND status IN ('pending', 'running')
  AND (%(version_ordinal)s::int IS NULL OR version_ordinal = %(version_ordinal)s)
  AND (%(purposes)s::dagapp.job_purpose[] IS NULL OR purpose = ANY (%(purposes)s::dagapp.job_purpose[]))
ORDER BY job_id;

-- name: needs_reversal
-- Whether a version has, or may have, copies for the public that no job removes: its last job of that kind made some, in
-- part perhaps, or failed to remove them.
SELECT coalesce(
    (SELECT purpose = 'export' OR status IN ('failed', 'cancelled') FROM dagapp.dag_jobs
     WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND purpose IN ('export', 'reversal')
     ORDER BY created_at DESC, job_id DESC
     LIMIT 1),
    (SELECT export_run_id IS NOT NULL FROM dagapp.asset_versions
     WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s)
) AS needed;

-- name: typical_seconds
-- How long the last jobs of a workflow took, from submission to end: the middle one of them.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM ended_at - created_at)) AS seconds
FROM (
    SELECT status, created_at, ended_at FROM dagapp.dag_jobs
    WHERE workflow_id = %(workflow_id)s
    ORDER BY created_at DESC, job_id DESC
    LIMIT 200
) AS latest
WHERE status = 'completed';
