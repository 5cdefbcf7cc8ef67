-- name: unprocessed_results
SELECT * FROM dagapp.dag_task_results
WHERE job_id = %(job_id)s AND processed_at IS NULL
ORDER BY result_id
LIMIT %(limit)s;
