-- A step: read what is needed of some jobs, decide, write all that follows; one transaction.
-- Every write names the owner and the epoch of its job: a process that lost the job moves no row.
-- Rows travel as JSON documents: one statement carries a batch of any size, and few statements make a quick step.

-- name: hold_jobs
-- The rows stay locked until the step commits: nobody else can claim, cancel or resume these jobs meanwhile.
SELECT job_id, workflow_hash, status, priority, input_params::text, traceparent, owner_epoch, cancel_requested_at,
       cancel_requested_by
FROM dagapp.dag_jobs
WHERE job_id = ANY (%(job_ids)s) AND owner_id = %(owner_id)s
ORDER BY job_id
FOR NO KEY UPDATE;

-- name: read_jobs
-- The static nodes and the new results of jobs that are held; each job has its share of the batch.
-- The output of a child stays here: only its fan-in wants it, and it is copied from row to row.
SELECT job.job_id, (
    SELECT json_agg(json_build_array(
               node_id, node_type, status, retry_count, retry_base, task_id, worker_id, output_ref,
               error_message, progress, parent_node_id, fan_out_index, fan_out_key, input_params, children_total,
               children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at,
               deadline_at
           ))::text
    FROM dagapp.dag_nodes AS node
    WHERE node.job_id = job.job_id AND parent_node_id IS NULL
) AS nodes, (
    SELECT json_agg(json_build_array(
               task_id, node_id, status, CASE WHEN strpos(node_id, '__') = 0 THEN output END, output_ref,
               error_message, retryable, worker_id, progress, checkpoint, metrics, result_id
           ) ORDER BY result_id)::text
    FROM (
        SELECT * FROM dagapp.dag_task_results AS result
        WHERE result.job_id = job.job_id AND processed_at IS NULL
        ORDER BY result_id
        LIMIT %(limit)s
    ) AS result
) AS results
FROM unnest(%(job_ids)s::text[]) AS job (job_id);

-- name: read_children
SELECT node.job_id, json_agg(json_build_array(
               node_id, node_type, status, retry_count, retry_base, task_id, worker_id, output_ref,
               error_message, progress, parent_node_id, fan_out_index, fan_out_key, input_params, children_total,
               children_started, children_done, children_failed, ready_at, dispatched_at, started_at, ended_at,
               deadline_at
           ))::text AS nodes
FROM dagapp.dag_nodes AS node
WHERE (job_id, node_id) IN (SELECT job_id, node_id FROM json_to_recordset(%(rows)s) AS wanted (job_id text, node_id text))
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
SELECT fan_out_index, node_id, status, task_id, output::text, output_ref, error_message, fan_out_key
FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id = %(parent_node_id)s
ORDER BY fan_out_index;

-- name: outputs_of_results
SELECT result_id, output::text, output_ref FROM dagapp.dag_task_results WHERE result_id = ANY (%(result_ids)s);

-- name: add_jobs
-- An idempotency key or a deterministic id that is taken adds no row; the caller finds the job that has it.
INSERT INTO dagapp.dag_jobs (
    job_id, workflow_id, workflow_version, workflow_hash, status, priority, input_params, correlation_id,
    submitted_by, callback_url, idempotency_key, traceparent, owner_id, owner_epoch, created_at, updated_at
)
SELECT job_id, workflow_id, workflow_version, workflow_hash, 'pending', priority, input_params, correlation_id,
       submitted_by, callback_url, idempotency_key, traceparent, %(owner_id)s, 1, %(now)s, %(now)s
FROM json_to_recordset(%(rows)s) AS added (
        job_id text, workflow_id text, workflow_version text, workflow_hash text, priority int, input_params jsonb,
        correlation_id text, submitted_by text, callback_url text, idempotency_key text, traceparent text
    )
ON CONFLICT DO NOTHING
RETURNING job_id;

-- name: remove_children
-- Before the step's other writes: those that take their place have the same names.
DELETE FROM dagapp.dag_nodes AS node
USING json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, parent_node_id text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE node.job_id = given.job_id AND node.parent_node_id = given.parent_node_id;

-- name: forget_checkpoints
-- A node that starts over, and children that are made anew, must not go on from what was saved before.
DELETE FROM dagapp.dag_checkpoints AS checkpoint
USING json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, node_id text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE checkpoint.job_id = given.job_id
  AND (checkpoint.node_id = given.node_id OR starts_with(checkpoint.node_id, given.node_id || '__'));

-- name: write_step
-- All that follows from a decision. A node or job is written only if it is still in the status that was read,
-- and a result counts once; the counts tell what was moved.
WITH held AS MATERIALIZED (
    SELECT job.job_id, job.priority, job.traceparent
    FROM json_to_recordset(%(held)s) AS given (job_id text, owner_epoch bigint)
    JOIN dagapp.dag_jobs AS job
        ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
), nodes AS (
    UPDATE dagapp.dag_nodes AS node
    SET status = changed.status,
        retry_count = changed.retry_count,
        retry_base = changed.retry_base,
        task_id = changed.task_id,
        worker_id = changed.worker_id,
        output = CASE changed.output_from
                     WHEN 'kept' THEN node.output
                     WHEN 'result' THEN result.output
                     ELSE changed.output
                 END,
        output_ref = changed.output_ref,
        error_message = changed.error_message,
        progress = changed.progress,
        input_params = changed.input_params,
        children_total = changed.children_total,
        children_started = changed.children_started,
        children_done = changed.children_done,
        children_failed = changed.children_failed,
        ready_at = changed.ready_at,
        dispatched_at = changed.dispatched_at,
        started_at = changed.started_at,
        ended_at = changed.ended_at,
        deadline_at = changed.deadline_at
    FROM json_to_recordset(%(nodes)s) AS changed (
            job_id text, node_id text, before dagapp.node_status, status dagapp.node_status, retry_count int,
            retry_base int, task_id text, worker_id text, output_from text, output jsonb, result_id bigint,
            output_ref text, error_message text, progress jsonb, input_params jsonb, children_total int,
            children_started int, children_done int, children_failed int, ready_at timestamptz,
            dispatched_at timestamptz, started_at timestamptz, ended_at timestamptz, deadline_at timestamptz
        )
    JOIN held ON held.job_id = changed.job_id
    LEFT JOIN dagapp.dag_task_results AS result ON result.result_id = changed.result_id
    WHERE node.job_id = changed.job_id AND node.node_id = changed.node_id AND node.status = changed.before
    RETURNING 1
), completed_children AS (
    -- Children of which nothing but their completion is new: the most frequent write of all.
    UPDATE dagapp.dag_nodes AS node
    SET status = 'completed', output = result.output, output_ref = result.output_ref, worker_id = result.worker_id,
        ended_at = %(now)s, deadline_at = NULL
    FROM json_to_recordset(%(completed_children)s) AS changed (
            job_id text, node_id text, before dagapp.node_status, result_id bigint
        )
    JOIN held ON held.job_id = changed.job_id
    JOIN dagapp.dag_task_results AS result ON result.result_id = changed.result_id
    WHERE node.job_id = changed.job_id AND node.node_id = changed.node_id AND node.status = changed.before
    RETURNING 1
), new_nodes AS (
    INSERT INTO dagapp.dag_nodes (
        job_id, node_id, node_type, status, handler, queue, retry_count, retry_base, task_id, output, error_message,
        parent_node_id, fan_out_index, fan_out_key, input_params, children_total, children_started, ready_at,
        dispatched_at, started_at, ended_at, deadline_at
    )
    SELECT job_id, node_id, node_type, status, handler, queue, retry_count, retry_base, task_id, output, error_message,
           parent_node_id, fan_out_index, fan_out_key, input_params, children_total, children_started, ready_at,
           dispatched_at, started_at, ended_at, deadline_at
    FROM json_to_recordset(%(new_nodes)s) AS added (
            job_id text, node_id text, node_type dagapp.node_type, status dagapp.node_status, handler text,
            queue text, retry_count int, retry_base int, task_id text, output jsonb, error_message text,
            parent_node_id text, fan_out_index int, fan_out_key text, input_params jsonb, children_total int,
            children_started int, ready_at timestamptz, dispatched_at timestamptz, started_at timestamptz,
            ended_at timestamptz, deadline_at timestamptz
        )
    JOIN held USING (job_id)
    RETURNING 1
), new_tasks AS (
    INSERT INTO dagapp.dag_tasks (
        task_id, job_id, node_id, queue, handler, params, priority, retry_count, timeout_seconds, available_at,
        traceparent, created_at
    )
    SELECT task_id, job_id, node_id, queue, handler, params, held.priority, retry_count, timeout_seconds, now(),
           held.traceparent, %(now)s
    FROM json_to_recordset(%(new_tasks)s) AS added (
            job_id text, task_id text, node_id text, queue text, handler text, params jsonb, retry_count int,
            timeout_seconds int
        )
    JOIN held USING (job_id)
    RETURNING 1
), events AS (
    INSERT INTO dagapp.dag_job_events (event_type, job_id, node_id, task_id, actor, data, created_at)
    SELECT event_type, job_id, node_id, task_id, actor, data, %(now)s
    FROM ROWS FROM (json_to_recordset(%(events)s) AS (
            job_id text, event_type dagapp.event_type, node_id text, task_id text, actor text, data jsonb
        )) WITH ORDINALITY AS added (job_id, event_type, node_id, task_id, actor, data, position)
    JOIN held USING (job_id)
    ORDER BY position
    RETURNING 1
), processed_results AS (
    UPDATE dagapp.dag_task_results AS result
    SET processed_at = %(now)s
    FROM json_to_recordset(%(processed_results)s) AS given (job_id text, result_id bigint)
    JOIN held ON held.job_id = given.job_id
    WHERE result.result_id = given.result_id AND result.processed_at IS NULL
    RETURNING 1
), jobs AS (
    UPDATE dagapp.dag_jobs AS job
    SET status = changed.status,
        result = changed.result,
        result_ref = changed.result_ref,
        error_message = changed.error_message,
        started_at = CASE WHEN changed.status = 'pending' THEN job.started_at ELSE coalesce(job.started_at, %(now)s) END,
        ended_at = CASE WHEN changed.status IN ('completed', 'failed', 'cancelled') THEN %(now)s::timestamptz END,
        cancel_requested_at = CASE WHEN changed.before = 'failed' THEN NULL ELSE job.cancel_requested_at END,
        updated_at = %(now)s
    FROM json_to_recordset(%(jobs)s) AS changed (
            job_id text, before dagapp.job_status, status dagapp.job_status, result jsonb, result_ref text,
            error_message text
        )
    JOIN held ON held.job_id = changed.job_id
    WHERE job.job_id = changed.job_id AND job.status = changed.before
    RETURNING 1
), notifications AS (
    SELECT pg_notify(channel, payload) FROM json_to_recordset(%(notifications)s) AS told (channel text, payload text)
)
SELECT (SELECT count(*) FROM nodes) AS nodes,
       (SELECT count(*) FROM completed_children) AS completed_children,
       (SELECT count(*) FROM new_nodes) AS new_nodes,
       (SELECT count(*) FROM new_tasks) AS new_tasks,
       (SELECT count(*) FROM events) AS events,
       (SELECT count(*) FROM processed_results) AS processed_results,
       (SELECT count(*) FROM jobs) AS jobs,
       (SELECT count(*) FROM notifications) AS notifications;

-- name: abandon_children
-- After the step's other writes: the children under way of fan-outs that were given up.
UPDATE dagapp.dag_nodes AS node
SET status = 'failed', error_message = given.error_message, ended_at = %(now)s, deadline_at = NULL
FROM json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, parent_node_id text, error_message text)
JOIN dagapp.dag_jobs AS job
    ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
WHERE node.job_id = given.job_id AND node.parent_node_id = given.parent_node_id
  AND node.status IN ('dispatched', 'running');

-- name: withdraw_tasks
-- Those in the queue are taken by nobody any more; those in a worker's hands are lost to it, and it is told so.
-- They are locked in the order of their ids, as workers lock them.
UPDATE dagapp.dag_tasks
SET status = 'withdrawn', leased_by = NULL, lease_expires_at = NULL
WHERE task_id = ANY (ARRAY(
        SELECT task.task_id
        FROM json_to_recordset(%(rows)s) AS given (job_id text, owner_epoch bigint, task_id text)
        JOIN dagapp.dag_jobs AS job
            ON job.job_id = given.job_id AND job.owner_id = %(owner_id)s AND job.owner_epoch = given.owner_epoch
        JOIN dagapp.dag_tasks AS task
            ON task.job_id = given.job_id AND task.task_id = coalesce(given.task_id, task.task_id)
        WHERE task.status IN ('queued', 'leased')
        ORDER BY task.task_id
        FOR UPDATE OF task
    ));
