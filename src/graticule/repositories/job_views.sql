-- Jobs and nodes as people read them. Lists leave out large values (by their stored size, which costs nothing to
-- know) and name them in `omitted`; the static nodes of a job are found by the names in its definition, so that
-- the children of its fan-outs are never walked through.

-- name: list_jobs_without_results
SELECT job_id, workflow_id, workflow_version, workflow_hash, status, priority,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN input_params ELSE '{}' END AS input_params,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN '{}' ELSE '{input_params}'::text[] END AS omitted,
       result_ref, error_message, correlation_id, submitted_by, callback_url, idempotency_key, traceparent, asset_id,
       version_ordinal, purpose, owner_id, owner_epoch, cancel_requested_at, cancel_requested_by, created_at, started_at,
       ended_at, updated_at
FROM dagapp.dag_jobs
WHERE (%(status)s::dagapp.job_status IS NULL OR status = %(status)s)
  AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
  AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s)
  AND (%(submitted_by)s::text IS NULL OR submitted_by = %(submitted_by)s)
  AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
  AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
  AND (%(cursor_created_at)s::timestamptz IS NULL
       OR (created_at, job_id) < (%(cursor_created_at)s, %(cursor_job_id)s::text))
ORDER BY created_at DESC, job_id DESC
LIMIT %(limit)s;

-- name: list_jobs_by_text
-- Each of the parts is found by an index of its own, or by walking from the newest where what is sought is common; of
-- each the newest, and of all together the newest again. What cannot be the beginning of a job's id, or the id of a
-- request, is null there.
WITH wanted AS NOT MATERIALIZED (
    SELECT * FROM dagapp.dag_jobs
    WHERE (%(status)s::dagapp.job_status IS NULL OR status = %(status)s)
      AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
      AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s)
      AND (%(submitted_by)s::text IS NULL OR submitted_by = %(submitted_by)s)
      AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
      AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
      AND (%(cursor_created_at)s::timestamptz IS NULL
           OR (created_at, job_id) < (%(cursor_created_at)s, %(cursor_job_id)s::text))
),
found AS (
    (SELECT created_at, job_id FROM wanted
     WHERE job_id LIKE %(beginning)s::text || '%%'
     ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT created_at, job_id FROM wanted
     WHERE asset_id = %(text)s::text
     ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT created_at, job_id FROM wanted
     WHERE correlation_id = %(text)s::text
     ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT created_at, job_id FROM wanted
     WHERE submitted_by = %(text)s::text
     ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT created_at, job_id FROM wanted
     WHERE workflow_id = %(text)s::text
     ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT created_at, job_id FROM wanted WHERE idempotency_key = %(text)s::text)
    UNION
    (SELECT job.created_at, job.job_id
     FROM dagapp.platform_requests AS request JOIN wanted AS job USING (asset_id, version_ordinal)
     WHERE request.request_id = %(request_id)s::uuid
     ORDER BY job.created_at DESC, job.job_id DESC LIMIT %(limit)s)
    UNION
    (SELECT job.created_at, job.job_id
     FROM dagapp.platforms
     JOIN dagapp.platform_requests AS request USING (platform_id)
     JOIN wanted AS job USING (asset_id, version_ordinal)
     WHERE request.idempotency_key = %(text)s::text
     ORDER BY job.created_at DESC, job.job_id DESC LIMIT %(limit)s)
    ORDER BY created_at DESC, job_id DESC
    LIMIT %(limit)s
)
SELECT job.job_id, workflow_id, workflow_version, workflow_hash, status, priority,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN input_params ELSE '{}' END AS input_params,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN '{}' ELSE '{input_params}'::text[] END AS omitted,
       result_ref, error_message, correlation_id, submitted_by, callback_url, idempotency_key, traceparent, asset_id,
       version_ordinal, purpose, owner_id, owner_epoch, cancel_requested_at, cancel_requested_by, job.created_at,
       started_at, ended_at, updated_at
FROM found JOIN dagapp.dag_jobs AS job USING (job_id)
ORDER BY found.created_at DESC, found.job_id DESC;

-- name: job_with_owner
SELECT job.*, owner.heartbeat_at AS owner_heartbeat_at
FROM dagapp.dag_jobs AS job LEFT JOIN dagapp.dag_orchestrators AS owner USING (owner_id)
WHERE job_id = %(job_id)s;

-- name: definition_of_job
SELECT workflow.*
FROM dagapp.dag_jobs JOIN dagapp.dag_workflows AS workflow USING (workflow_hash)
WHERE job_id = %(job_id)s;

-- name: static_nodes_of_job
SELECT job_id, node_id, node_type, status, handler, queue, parent_node_id, fan_out_index, fan_out_key,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN input_params END AS input_params,
       CASE WHEN pg_column_size(output) <= %(large)s THEN output END AS output,
       array_remove(ARRAY[CASE WHEN pg_column_size(input_params) > %(large)s THEN 'input_params' END,
                          CASE WHEN pg_column_size(output) > %(large)s OR output_ref IS NOT NULL THEN 'output' END],
                    NULL) AS omitted,
       output_ref, error_message, retry_count, retry_base, task_id, worker_id, progress, children_total,
       children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at, deadline_at
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s
  AND node_id = ANY (ARRAY(
      SELECT jsonb_object_keys(workflow.definition -> 'nodes')
      FROM dagapp.dag_jobs JOIN dagapp.dag_workflows AS workflow USING (workflow_hash)
      WHERE dag_jobs.job_id = %(job_id)s))
  AND (%(status)s::dagapp.node_status IS NULL OR status = %(status)s);

-- name: progress_of_static_nodes
SELECT node_id, node_type, status, children_total, children_started, children_done, children_failed
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s
  AND node_id = ANY (ARRAY(
      SELECT jsonb_object_keys(workflow.definition -> 'nodes')
      FROM dagapp.dag_jobs JOIN dagapp.dag_workflows AS workflow USING (workflow_hash)
      WHERE dag_jobs.job_id = %(job_id)s));

-- name: children_of_node
SELECT job_id, node_id, node_type, status, handler, queue, parent_node_id, fan_out_index, fan_out_key,
       CASE WHEN pg_column_size(input_params) <= %(large)s THEN input_params END AS input_params,
       CASE WHEN pg_column_size(output) <= %(large)s THEN output END AS output,
       array_remove(ARRAY[CASE WHEN pg_column_size(input_params) > %(large)s THEN 'input_params' END,
                          CASE WHEN pg_column_size(output) > %(large)s OR output_ref IS NOT NULL THEN 'output' END],
                    NULL) AS omitted,
       output_ref, error_message, retry_count, retry_base, task_id, worker_id, progress, children_total,
       children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at, deadline_at
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id = %(parent_node_id)s AND fan_out_index > %(after_index)s
  AND (%(status)s::dagapp.node_status IS NULL OR status = %(status)s)
ORDER BY fan_out_index
LIMIT %(limit)s;

-- name: attempts_of_node
-- The newest ones: a node can be resumed any number of times.
SELECT task_id, status, queue, handler, retry_count, delivery_count, leased_by, lease_expires_at, dead_reason,
       available_at, created_at
FROM dagapp.dag_tasks
WHERE job_id = %(job_id)s AND node_id = %(node_id)s
ORDER BY created_at DESC, retry_count DESC
LIMIT %(limit)s;

-- name: times_of_children
SELECT parent_node_id AS node_id, count(*) AS count,
       min(dispatched_at) AS first_dispatched_at, max(dispatched_at) AS last_dispatched_at,
       min(started_at) AS first_started_at, max(started_at) AS last_started_at,
       min(ended_at) AS first_ended_at, max(ended_at) AS last_ended_at
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id IS NOT NULL
GROUP BY parent_node_id;
