-- Assets with their versions and revisions. Who changes one holds its lock to the end of the transaction.

-- name: lock_asset
SELECT pg_advisory_xact_lock(hashtextextended(%(asset_id)s, 0));

-- name: assets_with_refs
-- All assets of a dataset, whatever the resource: by the GIN index.
SELECT * FROM dagapp.geospatial_assets
WHERE platform_refs @> %(refs)s AND (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
  AND deleted_at IS NULL
ORDER BY created_at DESC, asset_id DESC
LIMIT %(limit)s;

-- name: transition_clearance
UPDATE dagapp.geospatial_assets
SET clearance_state = %(new)s::text::dagapp.clearance_state,
    cleared_at = CASE WHEN %(new)s = 'uncleared' THEN NULL ELSE %(now)s::timestamptz END,
    cleared_by = CASE WHEN %(new)s = 'uncleared' THEN NULL ELSE %(actor)s::text END,
    made_public_at = CASE WHEN %(new)s = 'public' THEN %(now)s::timestamptz END,
    made_public_by = CASE WHEN %(new)s = 'public' THEN %(actor)s::text END,
    version = version + 1, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version = %(version)s
  AND clearance_state = ANY (%(sources)s::dagapp.clearance_state[])
RETURNING *;

-- name: versions_of_asset
SELECT * FROM dagapp.asset_versions WHERE asset_id = %(asset_id)s ORDER BY version_ordinal;

-- name: transition_approval
UPDATE dagapp.asset_versions
SET approval_state = %(new)s::text::dagapp.approval_state, reviewer = %(reviewer)s,
    reviewed_at = CASE WHEN %(new)s = 'pending_review' THEN NULL ELSE %(now)s::timestamptz END,
    rejection_reason = %(rejection_reason)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND approval_state = ANY (%(sources)s::dagapp.approval_state[])
RETURNING *;

-- name: transition_processing
UPDATE dagapp.asset_versions
SET processing_state = %(new)s::text::dagapp.processing_state,
    processing_started_at = CASE %(new)s WHEN 'processing' THEN %(now)s WHEN 'queued' THEN NULL ELSE processing_started_at END,
    processing_completed_at = CASE WHEN %(new)s IN ('completed', 'failed') THEN %(now)s::timestamptz END,
    last_error = %(last_error)s, updated_at = %(now)s
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND deleted_at IS NULL
  AND processing_state = ANY (%(sources)s::dagapp.processing_state[])
RETURNING *;

-- name: revisions_of_version
SELECT * FROM dagapp.asset_revisions
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s
ORDER BY revision;
