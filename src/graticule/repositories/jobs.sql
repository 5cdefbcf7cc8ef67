-- name: find_job_by_idempotency_key
SELECT * FROM dagapp.dag_jobs WHERE idempotency_key = %(idempotency_key)s;

-- name: jobs_by_ids
SELECT * FROM dagapp.dag_jobs WHERE job_id = ANY (%(job_ids)s::text[]);
