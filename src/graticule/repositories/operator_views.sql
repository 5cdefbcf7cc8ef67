-- What operators look for across jobs, requests and events.

-- name: newest_events
SELECT * FROM dagapp.dag_job_events
WHERE %(before)s::bigint IS NULL OR event_id < %(before)s
ORDER BY event_id DESC
LIMIT %(limit)s;

-- name: versions_of_workflow
SELECT workflow_hash, version, created_at FROM dagapp.dag_workflows
WHERE workflow_id = %(workflow_id)s
ORDER BY created_at DESC
LIMIT %(limit)s;

-- name: jobs_looked_up
-- Each of the parts is found by an index of its own; those whose parameter is null find nothing.
WITH found AS (
    SELECT job_id FROM dagapp.dag_jobs WHERE asset_id = %(asset_id)s::text
    UNION
    SELECT job_id FROM dagapp.dag_jobs WHERE correlation_id = %(correlation_id)s::text
    UNION
    SELECT job_id FROM dagapp.dag_jobs WHERE idempotency_key = %(idempotency_key)s::text
    UNION
    SELECT job.job_id
    FROM dagapp.platform_requests AS request JOIN dagapp.dag_jobs AS job USING (asset_id, version_ordinal)
    WHERE request.request_id = %(request_id)s::uuid
    UNION
    SELECT job.job_id
    FROM dagapp.platforms
    JOIN dagapp.platform_requests AS request USING (platform_id)
    JOIN dagapp.dag_jobs AS job USING (asset_id, version_ordinal)
    WHERE request.idempotency_key = %(idempotency_key)s::text
)
SELECT job.job_id, workflow_id, workflow_version, workflow_hash, status, priority,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN input_params ELSE '{}' END AS input_params,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN '{}' ELSE '{input_params}'::text[] END AS omitted,
       result_ref, error_message, correlation_id, submitted_by, callback_url, idempotency_key, traceparent, asset_id,
       version_ordinal, purpose, owner_id, owner_epoch, cancel_requested_at, cancel_requested_by, created_at,
       started_at, ended_at, updated_at
FROM found JOIN dagapp.dag_jobs AS job USING (job_id)
ORDER BY created_at DESC, job_id DESC
LIMIT %(limit)s;

-- name: requests_looked_up
SELECT request.*
FROM dagapp.platform_requests AS request
WHERE request_id = ANY (ARRAY(
    SELECT request_id FROM dagapp.platform_requests WHERE request_id = %(request_id)s::uuid
    UNION
    SELECT request_id FROM dagapp.platform_requests WHERE asset_id = %(asset_id)s::text
    UNION
    SELECT request_id
    FROM dagapp.platforms JOIN dagapp.platform_requests USING (platform_id)
    WHERE idempotency_key = %(idempotency_key)s::text))
ORDER BY created_at DESC, request_id DESC
LIMIT %(limit)s;
