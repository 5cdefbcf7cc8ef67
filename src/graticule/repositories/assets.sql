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
-- Nothing but the revision, and the outputs, that the reviewer looked at.
UPDATE dagapp.asset_versions
SET approval_state = 'approved', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = NULL,
    approved_revision = revision, first_approved_at = coalesce(first_approved_at, %(now)s), updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = 'pending_review' AND processing_state = 'completed'
  AND revision = %(revision)s AND output_hash IS NOT DISTINCT FROM %(output_hash)s
RETURNING *;

-- name: endorse_version
UPDATE dagapp.asset_versions
SET endorsed_revision = revision, endorsed_by = %(actor)s, endorsed_at = %(now)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = 'pending_review' AND processing_state = 'completed'
  AND revision = %(revision)s AND output_hash IS NOT DISTINCT FROM %(output_hash)s
RETURNING *;

-- name: second_version
-- The other reviewer of the revision in service.
UPDATE dagapp.asset_versions
SET seconded_by = %(actor)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approved_revision = %(revision)s AND seconded_by IS NULL
RETURNING *;

-- name: fault_of_table
SELECT dagapp.fault_of_table(%(job_id)s, %(table_name)s, %(most_bytes)s) AS fault;

-- name: reject_version
-- An earlier revision that is in service stays there.
UPDATE dagapp.asset_versions
SET approval_state = 'rejected', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = %(reason)s,
    updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = 'pending_review' AND processing_state = 'completed' AND revision = %(revision)s
RETURNING *;

-- name: revoke_version
UPDATE dagapp.asset_versions
SET approval_state = 'rejected', reviewer = %(actor)s, reviewed_at = %(now)s, rejection_reason = %(reason)s,
    approved_revision = NULL, revoked_at = %(now)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approved_revision = %(revision)s
RETURNING *;

-- name: withdraw_copies
-- From the decision on, the copies for the public count as not made. They stay a while: what has to be removed is known by
-- the other two columns until that is done.
UPDATE dagapp.asset_versions
SET exported_revision = NULL, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND exported_revision IS NOT NULL
RETURNING *;

-- name: begin_revision
-- The outputs stay those of the revision before until the new ones are made, and so does what is in service. An
-- approval is kept only while the same source is processed again.
UPDATE dagapp.asset_versions
SET revision = revision + 1, processing_state = 'queued', processing_started_at = NULL, processing_completed_at = NULL,
    estimated_completion_at = %(estimated_completion_at)s, last_error = NULL, told_error = NULL, validation = NULL,
    node_summary = NULL,
    last_request_id = %(request_id)s, priority = %(priority)s, updated_at = %(now)s,
    first_approved_at = coalesce(first_approved_at, revoked_at),  -- an older release did not note it
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
    estimated_completion_at = %(estimated_completion_at)s, last_error = NULL, told_error = NULL, validation = NULL,
    node_summary = NULL, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND processing_state = 'failed'
RETURNING *;

-- name: end_lost_processing
-- Versions whose job has ended and did not say so: an older release carried it out.
UPDATE dagapp.asset_versions AS version
SET processing_state = 'failed', processing_completed_at = %(now)s, last_error = %(error)s, told_error = %(told)s,
    updated_at = %(now)s
FROM dagapp.dag_jobs AS job
WHERE version.asset_id = %(asset_id)s AND version.processing_state IN ('queued', 'processing')
  AND job.job_id = version.current_job_id AND job.status IN ('completed', 'failed', 'cancelled')
RETURNING version.*;

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
    (SELECT CASE WHEN purpose = 'export' AND status = 'completed' THEN NULL
                 ELSE purpose = 'export' OR status IN ('failed', 'cancelled') END
     FROM dagapp.dag_jobs
     WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND purpose IN ('export', 'reversal')
     ORDER BY created_at DESC, job_id DESC
     LIMIT 1),
    (SELECT export_run_id IS NOT NULL FROM dagapp.asset_versions
     WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s)
) AS needed;

-- name: is_being_exported
SELECT EXISTS (
    SELECT FROM dagapp.dag_jobs
    WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND purpose = 'export'
      AND status IN ('pending', 'running') AND cancel_requested_at IS NULL
      AND (input_params ->> 'revision')::int = %(revision)s
) AS underway;

-- name: outdated_copies
-- Versions that the public sees in an older revision than the one in service, for no decision came between: they were
-- processed again. An export that was begun, however it ended, is not begun again here, and where two reviewers must have
-- approved what is copied, nothing that one alone has approved.
SELECT version.asset_id, version.version_ordinal
FROM dagapp.asset_versions AS version
JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = version.asset_id
JOIN dagapp.platforms AS platform ON platform.platform_id = asset.platform_id
WHERE version.exported_revision <> version.approved_revision AND version.deleted_at IS NULL
  AND (version.seconded_by IS NOT NULL OR NOT platform.four_eyes)
  AND asset.deleted_at IS NULL AND asset.clearance_state = 'public'
  AND (asset.url_mode = 'all_versions' OR version.version_ordinal = asset.latest_approved_version_ordinal)
  AND (%(asset_id)s::text IS NULL OR version.asset_id = %(asset_id)s)
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_jobs AS job
      WHERE job.asset_id = version.asset_id AND job.version_ordinal = version.version_ordinal AND job.purpose = 'export'
        AND (job.input_params ->> 'revision')::int = version.approved_revision
  )
ORDER BY version.asset_id, version.version_ordinal
LIMIT 100;

-- name: superseded_because
-- Why a failed job of an asset must not go on: what it would do is not what was decided since. To unpublish concerns only
-- the versions that there were, and they stay deleted: that may always go on.
SELECT CASE job.purpose
           WHEN 'process' THEN CASE WHEN version.deleted_at IS NOT NULL THEN 'its version was deleted'
                                    WHEN version.current_job_id IS DISTINCT FROM job.job_id
                                    THEN 'another job processes its version'
                                    WHEN unresolved.version_ordinal IS NOT NULL
                                    THEN 'version ' || unresolved.version_ordinal || ' is ' || unresolved.approval_state END
           WHEN 'export' THEN CASE WHEN asset.clearance_state <> 'public' OR asset.deleted_at IS NOT NULL
                                        OR version.deleted_at IS NOT NULL OR version.approved_revision IS NULL
                                   THEN 'its version is not public any more'
                                   WHEN later.job_id IS NOT NULL THEN 'a later job took its place' END
           WHEN 'reversal' THEN CASE WHEN later.job_id IS NOT NULL THEN 'a later job took its place' END
       END AS reason
FROM dagapp.dag_jobs AS job
JOIN dagapp.geospatial_assets AS asset ON asset.asset_id = job.asset_id
JOIN dagapp.asset_versions AS version
    ON version.asset_id = job.asset_id AND version.version_ordinal = job.version_ordinal
LEFT JOIN LATERAL (
    SELECT job_id FROM dagapp.dag_jobs AS other
    WHERE other.asset_id = job.asset_id AND other.version_ordinal = job.version_ordinal
      AND other.purpose IN ('export', 'reversal') AND other.job_id > job.job_id
    LIMIT 1
) AS later ON true
LEFT JOIN LATERAL (
    -- It took the place of one that failed; two at once cannot await their first approval. One that was revoked does so,
    -- too, if it is being processed and turns out to have another content.
    SELECT other.version_ordinal, other.approval_state FROM dagapp.asset_versions AS other
    WHERE other.asset_id = job.asset_id AND other.version_ordinal <> job.version_ordinal
      AND (other.approval_state = 'rejected'
           OR other.approval_state = 'pending_review' AND other.processing_state <> 'failed')
      AND (other.revoked_at IS NULL OR other.processing_state IN ('queued', 'processing'))
      AND other.deleted_at IS NULL AND other.approved_revision IS NULL AND version.approved_revision IS NULL
    LIMIT 1
) AS unresolved ON true
WHERE job.job_id = %(job_id)s;

-- name: past_jobs
-- How long the last jobs of a workflow took, from submission to end, and for how large a file, where the event of its
-- submission says so. Of a burst that has just come, none has ended: so more are looked at than count.
SELECT extract(epoch FROM ended_at - created_at)::float8 AS seconds, submitted.source_bytes
FROM (
    SELECT asset_id, version_ordinal, correlation_id, created_at, ended_at
    FROM (
        SELECT asset_id, version_ordinal, correlation_id, status, created_at, ended_at FROM dagapp.dag_jobs
        WHERE workflow_id = %(workflow_id)s
        ORDER BY created_at DESC, job_id DESC
        LIMIT 2000
    ) AS latest
    WHERE status = 'completed'
    ORDER BY created_at DESC
    LIMIT 200
) AS counted
LEFT JOIN LATERAL (
    SELECT (event.data ->> 'source_bytes')::bigint AS source_bytes
    FROM dagapp.dag_job_events AS event
    WHERE event.asset_id = counted.asset_id AND event.version_ordinal = counted.version_ordinal
      AND event.created_at BETWEEN counted.created_at - interval '1 hour' AND counted.created_at + interval '1 hour'
      AND event.data ->> 'request_id' = counted.correlation_id AND event.data ? 'source_bytes'
    ORDER BY event.event_id DESC
    LIMIT 1
) AS submitted ON true;

-- name: note_export
-- What the external copies of a version are after a job that made or removed them. Without an ordinal it is about all
-- that were deleted: an asset that was unpublished may have been revived meanwhile. It is a statement of its own: two that
-- change one row, as parts of a statement, would undo each other unseen.
UPDATE dagapp.asset_versions AS version
SET external_blob_path = given.external_blob_path, export_run_id = given.export_run_id,
    exported_revision = given.exported_revision, updated_at = %(now)s,
    first_exported_at = coalesce(
        version.first_exported_at, CASE WHEN given.exported_revision IS NOT NULL THEN %(now)s::timestamptz END
    )
FROM json_to_recordset(%(rows)s) AS given (
        job_id text, owner_epoch bigint, asset_id text, version_ordinal int, external_blob_path text,
        export_run_id text, exported_revision int
    )
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE given.job_id = ANY (%(job_ids)s) AND version.asset_id = given.asset_id
  AND (version.version_ordinal = given.version_ordinal
       OR given.version_ordinal IS NULL AND version.deleted_at IS NOT NULL);
