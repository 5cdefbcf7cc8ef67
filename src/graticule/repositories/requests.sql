-- name: find_request_by_idempotency_key
SELECT * FROM dagapp.platform_requests
WHERE platform_id = %(platform_id)s AND idempotency_key = %(idempotency_key)s;

-- name: lock_idempotency_key
SELECT pg_advisory_xact_lock(hashtextextended(%(platform_id)s || '|' || %(idempotency_key)s, 1));

-- name: retry_request
-- The same work order gets a new job.
UPDATE dagapp.platform_requests
SET status = 'accepted', job_id = %(job_id)s, last_error = NULL, retry_count = retry_count + 1, updated_at = %(now)s
WHERE request_id = %(request_id)s
RETURNING *;
