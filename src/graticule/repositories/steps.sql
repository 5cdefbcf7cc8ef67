-- A step: read what is needed of some jobs, decide, write all that follows.
-- Nothing is locked while the step is decided. Every write names the owner of its job, and the epoch and the version
-- (`updated_at`) that were read: a process that lost the job, or whose picture of it is old, moves no row.
-- Where rows are joined, their jobs are named once more; see `step_parts.sql`.
-- Rows travel as JSON documents: one statement carries a batch of any size, and few statements make a quick step.

-- name: read_jobs
-- Those of the jobs that are the owner's, with their new results; each job has its share of the batch.
-- Of a job that the reader knows as it is, the rest is left out: it has not changed since.
-- The output of a child stays here: only its fan-in wants it, and it is copied from row to row.
-- The order by job (of which there is one) keeps the planner to the index of unprocessed results.
SELECT job.job_id, (
    SELECT json_agg(json_build_array(
               task_id, node_id, status, CASE WHEN strpos(node_id, '__') = 0 OR status = 'failed' THEN output END,
               output_ref, error_message, retryable, worker_id, progress, checkpoint, metrics, result_id,
               extract(epoch FROM clock_timestamp() - reported_at)
           ) ORDER BY result_id)::text
    FROM (
        SELECT * FROM dagapp.dag_task_results AS result
        WHERE result.job_id BETWEEN job.job_id AND job.job_id AND processed_at IS NULL
        ORDER BY result.job_id, result_id
        LIMIT %(limit)s
    ) AS result
) AS results, CASE WHEN job.owner_epoch IS DISTINCT FROM (%(versions)s::jsonb -> job.job_id ->> 'owner_epoch')::bigint
                     OR job.updated_at IS DISTINCT FROM (%(versions)s::jsonb -> job.job_id ->> 'updated_at')::timestamptz
THEN (
    SELECT json_build_array(
               job.job_id, job.owner_epoch, job.updated_at, job.workflow_hash, job.status, job.priority,
               job.input_params, job.traceparent, job.cancel_requested_at, job.cancel_requested_by,
               job.asset_id, job.version_ordinal, job.purpose, job.callback_url IS NOT NULL, job.created_at,
               job.share,
               json_agg(json_build_array(
                   node_id, node_type, status, retry_count, retry_base, task_id, worker_id, output_ref,
                   error_message, progress, parent_node_id, fan_out_index, fan_out_key, input_params, children_total,
                   children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at,
                   deadline_at
               )))::text
    FROM dagapp.dag_nodes AS node
    WHERE node.job_id = job.job_id AND parent_node_id IS NULL
) END AS snapshot
FROM dagapp.dag_jobs AS job
WHERE job.job_id = ANY (%(job_ids)s) AND job.owner_id = %(owner_id)s;

-- name: read_children
SELECT node.job_id, json_agg(json_build_array(
               node_id, node_type, status, retry_count, retry_base, task_id, worker_id, output_ref,
               error_message, progress, parent_node_id, fan_out_index, fan_out_key, input_params, children_total,
               children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at,
               deadline_at
           ))::text AS nodes
FROM dagapp.dag_nodes AS node
WHERE (job_id, node_id) IN (
        SELECT job_id, node_id FROM json_to_recordset(%(rows)s) AS wanted (job_id text, node_id text)
        WHERE wanted.job_id = ANY (%(job_ids)s)
    )
GROUP BY node.job_id;

-- name: read_failed_children
SELECT json_agg(json_build_array(
               node_id, node_type, status, retry_count, retry_base, task_id, worker_id, output_ref,
               error_message, progress, parent_node_id, fan_out_index, fan_out_key, input_params, children_total,
               children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at,
               deadline_at
           ))::text AS nodes
FROM dagapp.dag_nodes AS node
WHERE job_id = %(job_id)s AND parent_node_id IS NOT NULL AND status = 'failed';

-- name: last_retry_counts
-- The highest count among each fan-out's children: those that take their place begin above it.
SELECT parent_node_id, max(retry_count) AS retry_count
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id IS NOT NULL
GROUP BY parent_node_id;

-- name: outputs_of_nodes
SELECT node_id, output::text, output_ref FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND node_id = ANY (%(node_ids)s);

-- name: outcomes_of_children
-- Without the outputs: those that are wanted are read once it is known that they are not too large together.
SELECT fan_out_index, node_id, status, task_id, left(error_message, %(error_length)s), fan_out_key
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id = %(parent_node_id)s
  AND fan_out_index BETWEEN %(first)s AND %(last)s
ORDER BY fan_out_index;

-- name: sizes_of_child_outputs
-- An output stands in the child's row, or still in the result that completes it. Null has 4 bytes.
-- `OFFSET 0` has each child looked up by itself: the planner, which knows jobs with few nodes, would rather read all nodes
-- of the job and compare each with each.
SELECT child.* FROM unnest(%(node_ids)s::text[]) AS wanted (node_id), LATERAL (
    SELECT node_id, coalesce(octet_length(output::text), 4), output_ref FROM dagapp.dag_nodes AS node
    WHERE node.job_id = %(job_id)s AND node.node_id = wanted.node_id
    OFFSET 0
) AS child
UNION ALL
SELECT node_id, coalesce(octet_length(output::text), 4), output_ref FROM dagapp.dag_task_results
WHERE result_id = ANY (%(result_ids)s);

-- name: child_outputs
SELECT child.* FROM unnest(%(node_ids)s::text[]) AS wanted (node_id), LATERAL (
    SELECT node_id, output::text, output_ref FROM dagapp.dag_nodes AS node
    WHERE node.job_id = %(job_id)s AND node.node_id = wanted.node_id
    OFFSET 0
) AS child
UNION ALL
SELECT node_id, output::text, output_ref FROM dagapp.dag_task_results WHERE result_id = ANY (%(result_ids)s);

-- name: add_jobs
-- An idempotency key or a deterministic id that is taken adds no row; the caller finds the job that has it.
-- A job that processes an asset version is counted there, and is its current one from the first moment on.
WITH added AS (
    INSERT INTO dagapp.dag_jobs (
        job_id, workflow_id, workflow_version, workflow_hash, status, priority, input_params, correlation_id,
        submitted_by, callback_url, idempotency_key, traceparent, asset_id, version_ordinal, purpose, share,
        owner_id, owner_epoch, created_at, updated_at
    )
    SELECT job_id, workflow_id, workflow_version, workflow_hash, 'pending', priority, input_params, correlation_id,
           submitted_by, callback_url, idempotency_key, traceparent, asset_id, version_ordinal, purpose, share,
           %(owner_id)s, 1, %(now)s, %(now)s
    FROM json_to_recordset(%(rows)s) AS added (
            job_id text, workflow_id text, workflow_version text, workflow_hash text, priority int, input_params jsonb,
            correlation_id text, submitted_by text, callback_url text, idempotency_key text, traceparent text,
            asset_id text, version_ordinal int, purpose dagapp.job_purpose, share text
        )
    ON CONFLICT DO NOTHING
    RETURNING job_id, workflow_id, workflow_version, asset_id, version_ordinal, purpose
), counted AS (
    UPDATE dagapp.asset_versions AS version
    SET job_count = version.job_count + (added.purpose = 'process')::int, updated_at = %(now)s,
        (current_job_id, workflow_id, workflow_version) = (
            SELECT current.* FROM (VALUES (
                CASE WHEN added.purpose = 'process' THEN added.job_id ELSE version.current_job_id END,
                CASE WHEN added.purpose = 'process' THEN added.workflow_id ELSE version.workflow_id END,
                CASE WHEN added.purpose = 'process' THEN added.workflow_version ELSE version.workflow_version END
            )) AS current
        )
    FROM added
    WHERE version.asset_id = added.asset_id AND version.version_ordinal = added.version_ordinal
)
SELECT job_id FROM added;

-- name: remove_children
-- Before the step's other writes: those that take their place have the same names.
DELETE FROM dagapp.dag_nodes AS node
USING json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, parent_node_id text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE given.job_id = ANY (%(job_ids)s) AND node.job_id = ANY (%(job_ids)s)
  AND node.job_id = given.job_id AND node.parent_node_id = given.parent_node_id;

-- name: forget_checkpoints
-- A node that starts over, and children that are made anew, must not go on from what was saved before.
DELETE FROM dagapp.dag_checkpoints AS checkpoint
USING json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, node_id text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE given.job_id = ANY (%(job_ids)s) AND checkpoint.job_id = ANY (%(job_ids)s)
  AND checkpoint.job_id = given.job_id
  AND (checkpoint.node_id = given.node_id OR starts_with(checkpoint.node_id, given.node_id || '__'));

-- name: abandon_children
-- After the step's other writes: the children under way of fan-outs that were given up.
UPDATE dagapp.dag_nodes AS node
SET status = 'failed', error_message = given.error_message, ended_at = %(now)s, deadline_at = NULL
FROM json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, parent_node_id text, error_message text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE given.job_id = ANY (%(job_ids)s) AND node.job_id = ANY (%(job_ids)s)
  AND node.job_id = given.job_id AND node.parent_node_id = given.parent_node_id
  AND node.status IN ('dispatched', 'running');

-- name: withdraw_tasks
-- Those in the queue are taken by nobody any more; those in a worker's hands are lost to it, and it is told so.
-- They are locked in the order of their ids, as workers lock them; and found before that, for a planner that is asked
-- for this order may read the whole table in it.
UPDATE dagapp.dag_tasks
SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL
WHERE task_id = ANY (ARRAY(
        SELECT task_id FROM dagapp.dag_tasks
        WHERE task_id = ANY (ARRAY(
                SELECT task.task_id
                FROM json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, task_id text)
                JOIN dagapp.dag_jobs AS job
                    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s
                   AND job.owner_epoch = given.owner_epoch
                JOIN dagapp.dag_tasks AS task
                    ON task.job_id = given.job_id AND task.task_id = coalesce(given.task_id, task.task_id)
                WHERE given.job_id = ANY (%(job_ids)s) AND task.job_id = ANY (%(job_ids)s)
                  AND task.status IN ('queued', 'leased')
            )) AND status::text IN ('queued', 'leased')
        ORDER BY task_id
        FOR UPDATE
    ));
