-- Messages that ask for a job, as a queue: leases as those of tasks, taken by orchestrators.

-- name: send_message
-- A message that was sent twice is one message.
WITH sent AS (
    INSERT INTO dagapp.dag_job_messages (message_id, queue, body, priority, max_deliveries, available_at, created_at)
    VALUES (%(message_id)s, %(queue)s, %(body)s, %(priority)s, %(max_deliveries)s, %(available_at)s, %(created_at)s)
    ON CONFLICT (message_id) DO NOTHING
    RETURNING queue
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent FROM sent
)
SELECT count(sent) > 0 AS is_new FROM told;

-- name: claim_messages
-- A message whose workflow no orchestrator knew is left to those who know it, until it has waited long enough.
UPDATE dagapp.dag_job_messages
SET status = 'leased', leased_by = %(owner_id)s, delivery_count = delivery_count + 1,
    lease_expires_at = now() + %(lease_seconds)s * interval '1 second'
WHERE message_id = ANY (ARRAY(
        SELECT message_id FROM dagapp.dag_job_messages
        WHERE queue = %(queue)s AND status = 'queued'
          AND available_at <= now() - %(waited_seconds)s * interval '1 second'
          AND (unknown_since IS NULL OR unknown_since <= now() - %(unknown_seconds)s * interval '1 second'
               OR body ->> 'workflow_id' = ANY (%(workflows)s))
        ORDER BY priority DESC, available_at, message_id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
RETURNING *;

-- name: claim_dead_messages
-- Dead letters of the last day whose workflow is known by now: an orchestrator that did not know it set them aside.
UPDATE dagapp.dag_job_messages
SET status = 'leased', leased_by = %(owner_id)s, delivery_count = 1, dead_reason = NULL, unknown_since = NULL,
    lease_expires_at = now() + %(lease_seconds)s * interval '1 second'
WHERE message_id = ANY (ARRAY(
        SELECT message_id FROM dagapp.dag_job_messages
        WHERE status = 'dead' AND starts_with(dead_reason, 'There is no workflow ')
          AND body ->> 'workflow_id' = ANY (%(workflows)s)
          AND queue = %(queue)s AND created_at > now() - interval '1 day'
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
RETURNING *;

-- name: leave_messages
-- Others may know the workflows: they hear of these messages at once, and the deliveries do not count.
WITH left_to_others AS (
    UPDATE dagapp.dag_job_messages
    SET status = 'queued', leased_by = NULL, lease_expires_at = NULL, delivery_count = delivery_count - 1,
        unknown_since = coalesce(unknown_since, now())
    WHERE message_id = ANY (%(message_ids)s) AND status = 'leased' AND leased_by = %(owner_id)s
    RETURNING queue
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent
    FROM (SELECT DISTINCT queue FROM left_to_others) AS of_queue
)
SELECT (SELECT count(*) FROM left_to_others) AS messages, (SELECT count(sent) FROM told) AS told;

-- name: count_waiting_messages
-- Up to a bound: it is only to be known how they could be shared.
SELECT count(*) AS messages FROM (
    SELECT FROM dagapp.dag_job_messages
    WHERE queue = %(queue)s AND status = 'queued' AND available_at <= now()
    LIMIT %(bound)s
) AS waiting;

-- name: complete_message
UPDATE dagapp.dag_job_messages
SET status = 'done', leased_by = NULL, lease_expires_at = NULL
WHERE message_id = %(message_id)s AND delivery_count = %(delivery_count)s
  AND status = 'leased' AND leased_by = %(owner_id)s;

-- name: abandon_message
-- One that was given back too often is set aside: it would go round for ever.
WITH given_back AS (
    UPDATE dagapp.dag_job_messages
    SET status = (CASE WHEN %(counts)s AND delivery_count >= max_deliveries THEN 'dead' ELSE 'queued' END
                 )::dagapp.message_status,
        dead_reason = CASE WHEN %(counts)s AND delivery_count >= max_deliveries
                           THEN 'given back ' || delivery_count || ' times; at last: ' || %(reason)s::text END,
        delivery_count = delivery_count - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
        available_at = CASE WHEN %(delay_seconds)s > 0 THEN now() + %(delay_seconds)s * interval '1 second'
                            ELSE available_at END,
        leased_by = NULL, lease_expires_at = NULL
    WHERE message_id = %(message_id)s AND delivery_count = %(delivery_count)s
      AND status = 'leased' AND leased_by = %(owner_id)s
    RETURNING queue, status
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent FROM given_back WHERE status = 'queued'
)
SELECT status, (SELECT count(sent) FROM told) AS told FROM given_back;

-- name: abandon_messages_of
-- All that an instance was given: it works on none of them. One that was given back too often is set aside.
WITH given_back AS (
    UPDATE dagapp.dag_job_messages
    SET status = (CASE WHEN %(counts)s AND delivery_count >= max_deliveries THEN 'dead' ELSE 'queued' END
                 )::dagapp.message_status,
        dead_reason = CASE WHEN %(counts)s AND delivery_count >= max_deliveries
                           THEN 'delivered ' || delivery_count || ' times, and no job could be made' END,
        delivery_count = delivery_count - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
        leased_by = NULL, lease_expires_at = NULL
    WHERE status = 'leased' AND leased_by = %(owner_id)s
    RETURNING queue, status
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent
    FROM (SELECT DISTINCT queue FROM given_back WHERE status = 'queued') AS of_queue
)
SELECT queue, status, (SELECT count(sent) FROM told) AS told FROM given_back;

-- name: dead_letter_message
UPDATE dagapp.dag_job_messages
SET status = 'dead', dead_reason = %(reason)s, leased_by = NULL, lease_expires_at = NULL
WHERE message_id = %(message_id)s AND delivery_count = %(delivery_count)s
  AND status = 'leased' AND leased_by = %(owner_id)s;

-- name: reap_expired_messages
-- Those whose lease ran out, and those of instances that are known to be gone.
WITH moved AS (
    UPDATE dagapp.dag_job_messages
    SET status = (CASE WHEN delivery_count >= max_deliveries THEN 'dead' ELSE 'queued' END)::dagapp.message_status,
        dead_reason = CASE WHEN delivery_count >= max_deliveries
                           THEN 'poison message: delivered ' || delivery_count || ' times without an answer' END,
        leased_by = NULL, lease_expires_at = NULL
    WHERE message_id = ANY (ARRAY(
            SELECT message_id FROM dagapp.dag_job_messages
            WHERE status = 'leased'
              AND (lease_expires_at < coalesce(%(now)s::timestamptz, now()) OR leased_by = ANY (%(owners)s::text[]))
            ORDER BY lease_expires_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING queue, status
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent
    FROM (SELECT DISTINCT queue FROM moved WHERE status = 'queued') AS of_queue
)
SELECT queue, status, (SELECT count(sent) FROM told) AS told FROM moved;

-- name: dead_messages
-- Newest first, keyset paged: the page begins after the row that the cursor names.
SELECT * FROM dagapp.dag_job_messages
WHERE status = 'dead' AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(before_created_at)s::timestamptz IS NULL
       OR (created_at, message_id) < (%(before_created_at)s, %(before_message_id)s))
ORDER BY created_at DESC, message_id DESC
LIMIT %(limit)s;

-- name: requeue_dead_message
WITH requeued AS (
    UPDATE dagapp.dag_job_messages
    SET status = 'queued', dead_reason = NULL, unknown_since = NULL, delivery_count = 0, available_at = now()
    WHERE message_id = %(message_id)s AND status = 'dead'
    RETURNING queue
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent FROM requeued
)
SELECT count(sent) > 0 AS is_requeued FROM told;

-- name: discard_dead_message
UPDATE dagapp.dag_job_messages SET status = 'withdrawn' WHERE message_id = %(message_id)s AND status = 'dead';
