-- name: dead_messages
SELECT * FROM dagapp.dag_job_messages
WHERE status = 'dead' AND (%(queue)s::text IS NULL OR queue = %(queue)s)
ORDER BY created_at DESC
LIMIT %(limit)s;
