-- name: find_request_by_idempotency_key
SELECT * FROM dagapp.platform_requests
WHERE platform_id = %(platform_id)s AND idempotency_key = %(idempotency_key)s;

-- name: requests_of_asset
SELECT * FROM dagapp.platform_requests WHERE asset_id = %(asset_id)s ORDER BY created_at DESC LIMIT %(limit)s;

-- name: transition_request
UPDATE dagapp.platform_requests
SET status = %(new)s, job_id = coalesce(%(job_id)s, job_id), last_error = %(last_error)s,
    retry_count = retry_count + CASE WHEN status = 'failed' THEN 1 ELSE 0 END, updated_at = %(now)s
WHERE request_id = %(request_id)s AND status = ANY (%(sources)s::dagapp.request_status[])
RETURNING *;
