-- Whose files stand below a prefix: one registration at a time decides it. Whoever reaches the database holds it by a
-- lock of the session; a task on a worker that does not holds it by a row, which an orchestrator writes under that lock.

-- name: hold_prefix
-- To the end of the transaction. A holder that is stopped in the middle loses it: its session ends when it has said
-- nothing for a minute.
SELECT pg_advisory_xact_lock(hashtextextended('graticule prefix ' || %(prefix)s, 0));

-- name: time_of_holding
-- After the lock, so that of two holders the later one has the later time. A task may still hold the prefix.
SELECT clock_timestamp() AS now, EXISTS (
    SELECT FROM dagapp.dag_held_prefixes WHERE prefix = %(prefix)s AND expires_at > clock_timestamp()
) AS is_a_tasks;

-- name: is_held
SELECT 1;

-- name: find_promoted_item
SELECT pgstac.get_item(%(item_id)s, %(collection_id)s) AS content;

-- name: try_to_hold_prefix
SELECT pg_try_advisory_xact_lock(hashtextextended('graticule prefix ' || %(prefix)s, 0)) AS is_free;

-- name: hold_for_task
-- Under the lock. A task whose job was cancelled may hold it as well, to take back what it has moved.
INSERT INTO dagapp.dag_held_prefixes AS held (prefix, hold_id, task_id, worker_id, delivery_count, expires_at)
SELECT %(prefix)s, %(hold_id)s, task_id, %(worker_id)s::text, delivery_count, clock_timestamp() + %(seconds)s * interval '1 second'
FROM dagapp.dag_tasks
WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s
  AND (status = 'leased' AND leased_by = %(worker_id)s::text OR status = 'withdrawn')
ON CONFLICT (prefix) DO UPDATE
SET hold_id = excluded.hold_id, task_id = excluded.task_id, worker_id = excluded.worker_id,
    delivery_count = excluded.delivery_count, expires_at = excluded.expires_at
WHERE held.expires_at <= clock_timestamp()
RETURNING clock_timestamp() AS now;

-- name: is_of_worker
-- Whether a task is in the hands that ask: still leased to them, or withdrawn under them.
SELECT 1 FROM dagapp.dag_tasks
WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s
  AND (status = 'leased' AND leased_by = %(worker_id)s::text OR status = 'withdrawn');

-- name: is_prefix_of_job
-- Whoever holds the prefix of another job keeps it from putting its files there.
SELECT 1 FROM dagapp.dag_tasks AS task
JOIN dagapp.dag_jobs AS job USING (job_id)
WHERE task.task_id = %(task_id)s
  AND CASE WHEN job.asset_id IS NULL THEN starts_with(%(prefix)s, 'direct/')
           ELSE job.input_params ->> 'blob_prefix' = %(prefix)s END;

-- name: hold_longer
-- Not when its time is over: another one may have held the prefix since.
UPDATE dagapp.dag_held_prefixes
SET expires_at = clock_timestamp() + %(seconds)s * interval '1 second'
WHERE prefix = %(prefix)s AND hold_id = %(hold_id)s AND task_id = %(task_id)s AND worker_id = %(worker_id)s
  AND delivery_count = %(delivery_count)s AND expires_at > clock_timestamp()
RETURNING clock_timestamp() AS now;

-- name: release_prefix
DELETE FROM dagapp.dag_held_prefixes
WHERE prefix = %(prefix)s AND hold_id = %(hold_id)s AND task_id = %(task_id)s AND worker_id = %(worker_id)s
  AND delivery_count = %(delivery_count)s;
