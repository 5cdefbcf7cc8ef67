-- The outbox of callbacks. A claim moves next_attempt_at to the end of a lease, and raises attempt_count: both together
-- name the claim, and whoever has lost it (to another sender, or to an operator who sends anew) records nothing.

-- name: claim_callbacks
-- Not to hosts that are busy, so that one that is silent keeps nobody else's callbacks waiting.
UPDATE dagapp.dag_callbacks
SET attempt_count = attempt_count + 1, next_attempt_at = %(held_until)s
WHERE callback_id = ANY (ARRAY(
        SELECT callback_id FROM dagapp.dag_callbacks
        WHERE delivered_at IS NULL AND given_up_at IS NULL AND next_attempt_at <= %(now)s
          AND coalesce(substring(lower(url) FROM %(host)s::text), '') <> ALL (%(busy)s::text[])
        ORDER BY next_attempt_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
RETURNING *, (SELECT traceparent FROM dagapp.dag_jobs AS job WHERE job.job_id = dag_callbacks.job_id) AS traceparent;

-- name: next_callback
SELECT min(next_attempt_at) AS due FROM dagapp.dag_callbacks
WHERE delivered_at IS NULL AND given_up_at IS NULL
  AND coalesce(substring(lower(url) FROM %(host)s::text), '') <> ALL (%(busy)s::text[]);

-- name: record_callback
-- What came of a try, with its event.
WITH recorded AS (
    UPDATE dagapp.dag_callbacks
    SET delivered_at = %(delivered_at)s, given_up_at = %(given_up_at)s, last_error = %(error)s,
        next_attempt_at = coalesce(%(next_attempt_at)s, next_attempt_at)
    WHERE callback_id = %(callback_id)s AND attempt_count = %(attempt)s AND next_attempt_at = %(held_until)s
      AND delivered_at IS NULL AND given_up_at IS NULL
    RETURNING job_id
), told AS (
    INSERT INTO dagapp.dag_job_events (event_type, job_id, data, created_at)
    SELECT %(event_type)s, job_id, %(data)s, %(now)s FROM recorded
)
SELECT job_id, pg_notify('graticule_events', '') FROM recorded;

-- name: redeliver_callback
WITH renewed AS (
    UPDATE dagapp.dag_callbacks
    SET attempt_count = 0, next_attempt_at = %(now)s, delivered_at = NULL, given_up_at = NULL
    WHERE callback_id = %(callback_id)s
    RETURNING job_id
), told AS (
    INSERT INTO dagapp.dag_job_events (event_type, job_id, actor, data, created_at)
    SELECT 'command_executed', job_id, %(actor)s, %(data)s, %(now)s FROM renewed
)
SELECT job_id, pg_notify('graticule_events', ''), pg_notify('graticule_callbacks', '') FROM renewed;

-- name: list_callbacks
-- Newest first.
SELECT * FROM dagapp.dag_callbacks
WHERE (%(before)s::bigint IS NULL OR callback_id < %(before)s)
  AND (%(job_id)s::text IS NULL OR job_id = %(job_id)s)
  AND (%(state)s::text IS NULL
       OR %(state)s = 'waiting' AND delivered_at IS NULL AND given_up_at IS NULL
       OR %(state)s = 'delivered' AND delivered_at IS NOT NULL
       OR %(state)s = 'given_up' AND given_up_at IS NOT NULL)
ORDER BY callback_id DESC
LIMIT %(limit)s;
