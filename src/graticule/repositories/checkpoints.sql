-- name: save_checkpoint_under_lease
-- A worker that lost the task must not overwrite what the next one saves: the lease is held until this commits.
WITH held AS (
    SELECT task_id, job_id, node_id FROM dagapp.dag_tasks
    WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s
      AND status = 'leased' AND leased_by = %(worker_id)s
    FOR UPDATE
), saved AS (
    INSERT INTO dagapp.dag_checkpoints (job_id, node_id, task_id, phase, data, artifacts, saved_at)
    SELECT job_id, node_id, task_id, %(phase)s, %(data)s, %(artifacts)s, now() FROM held
    ON CONFLICT (job_id, node_id) DO UPDATE
    SET task_id = excluded.task_id, phase = excluded.phase, data = excluded.data,
        artifacts = excluded.artifacts, saved_at = excluded.saved_at
    RETURNING job_id
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, checkpoint, worker_id)
    SELECT task_id, job_id, node_id, 'running', %(phase)s, %(worker_id)s FROM held
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM saved JOIN dagapp.dag_jobs AS job ON job.job_id = saved.job_id
    WHERE job.owner_id IS NOT NULL
)
SELECT job_id, (SELECT count(sent) FROM told) AS owners FROM saved;
