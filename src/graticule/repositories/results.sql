-- name: unprocessed_results
SELECT * FROM dagapp.dag_task_results
WHERE job_id = %(job_id)s AND processed_at IS NULL
ORDER BY result_id
LIMIT %(limit)s;

-- name: mark_results_processed
-- A result counts once: the second to mark it moves no row.
UPDATE dagapp.dag_task_results SET processed_at = %(now)s
WHERE result_id = ANY (%(result_ids)s) AND processed_at IS NULL;
