-- name: find_request_by_idempotency_key
SELECT * FROM dagapp.platform_requests
WHERE platform_id = %(platform_id)s AND idempotency_key = %(idempotency_key)s;

-- name: lock_idempotency_key
SELECT pg_advisory_xact_lock(hashtextextended(%(platform_id)s || '|' || %(idempotency_key)s, 1));

-- name: fail_request
UPDATE dagapp.platform_requests SET status = 'failed', last_error = %(error)s, updated_at = %(now)s
WHERE request_id = %(request_id)s AND status IN ('accepted', 'processing')
RETURNING *;

-- name: retry_request
-- The same work order gets a new job.
UPDATE dagapp.platform_requests
SET status = 'accepted', job_id = %(job_id)s, last_error = NULL, retry_count = retry_count + 1, updated_at = %(now)s
WHERE request_id = %(request_id)s AND status = 'failed'
RETURNING *;

-- name: submitter_of_revision
SELECT dagapp.submitter_of(%(asset_id)s, %(version_ordinal)s, %(revision)s) AS submitter;
