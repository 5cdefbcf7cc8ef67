-- name: find_job_by_idempotency_key
SELECT * FROM dagapp.dag_jobs WHERE idempotency_key = %(idempotency_key)s;

-- name: jobs_by_ids
SELECT * FROM dagapp.dag_jobs WHERE job_id = ANY (%(job_ids)s::text[]);

-- name: list_jobs
-- Newest first, keyset paged: the page begins after the row that the cursor names.
SELECT * FROM dagapp.dag_jobs
WHERE (%(status)s::dagapp.job_status IS NULL OR status = %(status)s)
  AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
  AND (%(before_created_at)s::timestamptz IS NULL
       OR (created_at, job_id) < (%(before_created_at)s, %(before_job_id)s))
ORDER BY created_at DESC, job_id DESC
LIMIT %(limit)s;
