-- Jobs and their nodes. Every write names the owner and its epoch: a process that lost the job moves no row.

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

-- name: transition_job
-- A job that ends gets its time, one that is resumed loses it: the two cannot be told apart later.
UPDATE dagapp.dag_jobs
SET status = %(new)s::text::dagapp.job_status,
    started_at = CASE WHEN %(new)s = 'running' THEN coalesce(started_at, %(now)s) ELSE started_at END,
    ended_at = CASE WHEN %(new)s IN ('completed', 'failed', 'cancelled') THEN %(now)s::timestamptz END,
    error_message = CASE WHEN %(new)s = 'running' THEN NULL ELSE coalesce(%(error_message)s, error_message) END,
    result = coalesce(%(result)s, result),
    updated_at = %(now)s
WHERE job_id = %(job_id)s AND status = ANY (%(sources)s::dagapp.job_status[])
  AND owner_id IS NOT DISTINCT FROM %(owner_id)s AND owner_epoch = %(owner_epoch)s
RETURNING *;

-- name: claim_job
-- Taking a job over raises its epoch: whatever the former owner still writes is void.
UPDATE dagapp.dag_jobs
SET owner_id = %(owner_id)s, owner_epoch = owner_epoch + 1, updated_at = %(now)s
WHERE job_id = %(job_id)s AND owner_epoch = %(owner_epoch)s AND status IN ('pending', 'running')
RETURNING *;
