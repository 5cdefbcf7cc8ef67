-- What workers report by HTTP. A report counts when its worker holds the task's lease, whatever carried the task. A
-- report that names its delivery counts only for that one. A result also counts, as a late one, of a task that was
-- withdrawn in the delivery that it names: its owner notes it and changes nothing. Who reports locks the task, so that
-- of two reports one is the first. Workers of the earlier kind know neither leases nor deliveries: the first report of a
-- task that waits takes its lease, see lease_unclaimed.

-- name: lease_unclaimed
-- Such a worker renews nothing, so that the lease lasts as long as the task may take.
UPDATE dagapp.dag_tasks
SET status = 'leased', leased_by = %(worker_id)s::text, delivery_count = delivery_count + 1,
    lease_expires_at = now() + timeout_seconds * interval '1 second'
WHERE task_id = %(task_id)s AND status = 'queued';

-- name: accept_result
WITH reported AS (
    UPDATE dagapp.dag_tasks
    SET status = 'done', leased_by = NULL, lease_expires_at = NULL, report_hash = %(report_hash)s::text
    WHERE task_id = %(task_id)s
      AND (status = 'leased' AND leased_by = %(worker_id)s::text
           AND (%(delivery_count)s::int IS NULL OR delivery_count = %(delivery_count)s)
           OR status = 'withdrawn' AND %(worker_id)s::text IS NOT NULL AND delivery_count = %(delivery_count)s::int)
    RETURNING task_id, job_id, node_id
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, output, output_ref, error_message,
                                         retryable, progress, metrics, worker_id)
    SELECT task_id, job_id, node_id, %(status)s::text::dagapp.result_status, %(output)s::text::jsonb,
           %(output_ref)s::text, %(error_message)s::text, %(retryable)s, %(progress)s::text::jsonb,
           %(metrics)s::text::jsonb, %(worker_id)s::text
    FROM reported
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM reported JOIN dagapp.dag_jobs AS job ON job.job_id = reported.job_id
    WHERE job.owner_id IS NOT NULL
)
SELECT task_id, (SELECT count(sent) FROM told) AS owners FROM reported;

-- name: accept_progress
WITH reported AS (
    SELECT task_id, job_id, node_id FROM dagapp.dag_tasks
    WHERE task_id = %(task_id)s
      AND status = 'leased' AND leased_by = %(worker_id)s::text
      AND (%(delivery_count)s::int IS NULL OR delivery_count = %(delivery_count)s)
    FOR UPDATE
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, progress, metrics, worker_id)
    SELECT task_id, job_id, node_id, 'running', %(progress)s::text::jsonb, %(metrics)s::text::jsonb, %(worker_id)s::text
    FROM reported
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM reported JOIN dagapp.dag_jobs AS job ON job.job_id = reported.job_id
    WHERE job.owner_id IS NOT NULL
)
SELECT task_id, (SELECT count(sent) FROM told) AS owners FROM reported;

-- name: accept_checkpoint
WITH reported AS (
    SELECT task_id, job_id, node_id FROM dagapp.dag_tasks
    WHERE task_id = %(task_id)s
      AND status = 'leased' AND leased_by = %(worker_id)s::text
      AND (%(delivery_count)s::int IS NULL OR delivery_count = %(delivery_count)s)
    FOR UPDATE
), saved AS (
    INSERT INTO dagapp.dag_checkpoints (job_id, node_id, task_id, phase, data, artifacts, saved_at)
    SELECT job_id, node_id, task_id, %(phase)s, %(data)s::text::jsonb, %(artifacts)s::text[], now() FROM reported
    ON CONFLICT (job_id, node_id) DO UPDATE
    SET task_id = excluded.task_id, phase = excluded.phase, data = excluded.data,
        artifacts = excluded.artifacts, saved_at = excluded.saved_at
    RETURNING job_id
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, checkpoint, worker_id)
    SELECT task_id, job_id, node_id, 'running', %(phase)s, %(worker_id)s::text FROM reported
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM saved JOIN dagapp.dag_jobs AS job ON job.job_id = saved.job_id
    WHERE job.owner_id IS NOT NULL
)
SELECT task_id, (SELECT count(sent) FROM told) AS owners FROM reported;

-- name: task_statuses
SELECT task_id, job_id, node_id, retry_count, status, report_hash FROM dagapp.dag_tasks WHERE task_id = ANY (%(task_ids)s);

-- name: has_reported
-- Whether the result of a task came from this worker, where no hash can be compared: of one that nobody has acted on yet,
-- or of the node's last attempt.
SELECT EXISTS (
           SELECT FROM dagapp.dag_task_results
           WHERE job_id = %(job_id)s AND processed_at IS NULL AND task_id = %(task_id)s AND worker_id = %(worker_id)s
             AND status <> 'running'
       ) OR EXISTS (
           SELECT FROM dagapp.dag_nodes
           WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND task_id = %(task_id)s AND worker_id = %(worker_id)s
       ) AS has_reported;

-- name: hold_lease
-- What a worker has others write for it counts only if it holds the task until that is committed. Last of all: whoever
-- holds the lease keeps the worker from renewing it.
SELECT task_id FROM dagapp.dag_tasks
WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s AND status = 'leased' AND leased_by = %(worker_id)s
FOR SHARE;

-- name: job_of_task
SELECT job_id FROM dagapp.dag_tasks WHERE task_id = %(task_id)s;

-- name: checkpoint_of_task
SELECT checkpoint.*
FROM dagapp.dag_tasks AS task JOIN dagapp.dag_checkpoints AS checkpoint USING (job_id, node_id)
WHERE task.task_id = %(task_id)s;
