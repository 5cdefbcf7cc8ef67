-- name: save_checkpoint
INSERT INTO dagapp.dag_checkpoints (job_id, node_id, task_id, phase, data, artifacts, saved_at)
VALUES (%(job_id)s, %(node_id)s, %(task_id)s, %(phase)s, %(data)s, %(artifacts)s, %(saved_at)s)
ON CONFLICT (job_id, node_id) DO UPDATE
SET task_id = excluded.task_id, phase = excluded.phase, data = excluded.data,
    artifacts = excluded.artifacts, saved_at = excluded.saved_at;
