-- name: tasks_of_job
SELECT * FROM dagapp.dag_tasks WHERE job_id = %(job_id)s ORDER BY created_at, task_id;

-- name: dead_tasks
SELECT * FROM dagapp.dag_tasks
WHERE status = 'dead' AND (%(queue)s::text IS NULL OR queue = %(queue)s)
ORDER BY created_at DESC
LIMIT %(limit)s;
