-- Tasks as a queue. A claim leases a task to a worker, for a term that the database's clock ends. The lease is
-- named by worker and delivery_count: whoever lost it moves no row.
-- Leases come as a list of ids and one document that says more of each id. They are not joined as rows: the planner
-- knows neither how many are given nor, in a table that grew a moment ago, how many are leased, and would compare
-- each with each. For the same reason their status is compared as text, which keeps it from the index of the leases.

-- name: tasks_of_job
SELECT * FROM dagapp.dag_tasks WHERE job_id = %(job_id)s ORDER BY created_at, task_id;

-- name: claim_tasks
-- The array keeps the planner to the primary key, however large it believes the queue to be.
-- Where partners are passed over, only the first of all that wait are looked at: a claim never reads a whole line. What
-- is passed over is not locked: other claims would skip it.
UPDATE dagapp.dag_tasks
SET status = 'leased', leased_by = %(worker_id)s, delivery_count = delivery_count + 1,
    lease_expires_at = now() + %(lease_seconds)s * interval '1 second'
WHERE task_id = ANY (CASE WHEN %(passed_over)s::text[] = '{}' THEN ARRAY(
        SELECT task_id FROM dagapp.dag_tasks
        WHERE queue = %(queue)s AND status = 'queued' AND available_at <= now()
          AND handler <> ALL (%(without)s::text[])
        ORDER BY priority DESC, turn, available_at, task_id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ) ELSE ARRAY(
        SELECT task.task_id FROM (
            SELECT task_id, handler, share FROM dagapp.dag_tasks
            WHERE queue = %(queue)s AND status = 'queued' AND available_at <= now()
            ORDER BY priority DESC, turn, available_at, task_id
            LIMIT 50
        ) AS first, LATERAL (
            SELECT task_id FROM dagapp.dag_tasks
            WHERE task_id = ANY (ARRAY[first.task_id]) AND status::text = 'queued'
            FOR UPDATE SKIP LOCKED
        ) AS task
        WHERE handler <> ALL (%(without)s::text[]) AND split_part(share, '/', 1) <> ALL (%(passed_over)s::text[])
        LIMIT %(limit)s
    ) END) AND status::text = 'queued'
RETURNING task_id, job_id, node_id, queue, handler, params, timeout_seconds, retry_count, delivery_count,
          max_deliveries, priority, share, turn, traceparent, available_at,
          extract(epoch FROM now() - available_at)::float8 AS waited_seconds, (
              -- What may be read for an asset is its partner's: by the registry, whatever the task's parameters say.
              SELECT coalesce(platform.source_containers, ARRAY['bronze/' || platform.platform_id || '/'])
              FROM dagapp.platforms AS platform
              WHERE platform.platform_id = (
                      SELECT asset.platform_id FROM dagapp.geospatial_assets AS asset
                      WHERE asset.asset_id = (SELECT job.asset_id FROM dagapp.dag_jobs AS job WHERE job.job_id = dag_tasks.job_id)
                  )
          ) AS sources;

-- name: take_tasks
-- Named by the messages of a broker, which say no more than that they wait: what is to be done says the row. One whose
-- lease ran out waits again, whether or not that was noticed yet; one whose time has not come has another message, that
-- the broker still keeps. (A broker's clock may be ahead a little.) What was not leased is told as it was before.
WITH taken AS (
    UPDATE dagapp.dag_tasks
    SET status = 'leased', leased_by = %(worker_id)s, delivery_count = delivery_count + 1,
        lease_expires_at = now() + %(lease_seconds)s * interval '1 second'
    WHERE task_id = ANY (%(task_ids)s) AND available_at <= now() + interval '5 s'
      AND (status::text = 'queued' OR status::text = 'leased' AND lease_expires_at < now())
    RETURNING *
)
SELECT told.*, (
        SELECT coalesce(platform.source_containers, ARRAY['bronze/' || platform.platform_id || '/'])
        FROM dagapp.platforms AS platform
        WHERE platform.platform_id = (
                SELECT asset.platform_id FROM dagapp.geospatial_assets AS asset
                WHERE asset.asset_id = (SELECT job.asset_id FROM dagapp.dag_jobs AS job WHERE job.job_id = told.job_id)
            )
    ) AS sources
FROM (
    SELECT task_id, true AS is_held, job_id, node_id, queue, handler, timeout_seconds, retry_count, delivery_count,
           max_deliveries, priority, traceparent, params,
           extract(epoch FROM now() - available_at)::float8 AS waited_seconds
    FROM taken
    UNION ALL
    SELECT task_id, is_held, job_id, node_id, queue, handler, timeout_seconds, retry_count, delivery_count,
           max_deliveries, priority, traceparent, CASE WHEN is_held THEN params END, NULL
    FROM (
        SELECT *, status::text = 'leased' AND leased_by = %(worker_id)s AS is_held
        FROM dagapp.dag_tasks
        WHERE task_id = ANY (ARRAY(
                SELECT asked FROM unnest(%(task_ids)s::text[]) AS asked WHERE asked NOT IN (SELECT task_id FROM taken)
            ))
    ) AS others
) AS told;

-- name: next_available
-- When the first of the tasks that wait for their time comes up, as seconds from now.
SELECT extract(epoch FROM min(available_at) - now())::float8 AS seconds
FROM dagapp.dag_tasks
WHERE status = 'queued' AND queue = ANY (%(queues)s) AND available_at > now();

-- name: renew_leases
UPDATE dagapp.dag_tasks AS task
SET lease_expires_at = now() + %(lease_seconds)s * interval '1 second'
WHERE task.task_id = ANY (%(task_ids)s) AND task.status::text = 'leased' AND task.leased_by = %(worker_id)s
  AND task.delivery_count = (%(deliveries)s::jsonb ->> task.task_id)::int
RETURNING task.task_id;

-- name: withdrawn_tasks
-- Which of the tasks that could not be renewed nobody wants any more. A statement of its own: one that waited for a
-- withdrawal to commit still sees what was there before it.
SELECT task_id FROM dagapp.dag_tasks WHERE task_id = ANY (%(task_ids)s) AND status::text = 'withdrawn';

-- name: finish_tasks
-- Tasks are done, their results are there, and the owners of their jobs know: all of it or nothing.
-- A task that was withdrawn under its worker's hands has nobody's lease: its late result is recorded all the same.
WITH finished AS (
    UPDATE dagapp.dag_tasks AS task
    SET status = 'done', leased_by = NULL, lease_expires_at = NULL
    WHERE task.task_id = ANY (%(task_ids)s)
      AND (task.status::text = 'leased' AND task.leased_by = %(worker_id)s OR task.status::text = 'withdrawn')
      AND task.delivery_count = (%(reports)s::jsonb -> task.task_id ->> 'delivery_count')::int
    RETURNING task.task_id, task.job_id, task.node_id, %(reports)s::jsonb -> task.task_id AS report
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, output, output_ref, error_message,
                                         retryable, metrics, progress, worker_id)
    SELECT task_id, job_id, node_id, status, output, output_ref, error_message, retryable, metrics, progress,
           %(worker_id)s
    FROM finished, jsonb_to_record(report) AS told (
            status dagapp.result_status, output jsonb, output_ref text, error_message text, retryable boolean,
            metrics jsonb, progress jsonb
        )
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM dagapp.dag_jobs AS job
    WHERE job.job_id = ANY (ARRAY(SELECT DISTINCT job_id FROM finished)) AND job.owner_id IS NOT NULL
)
SELECT task_id, (SELECT count(sent) FROM told) AS owners FROM finished;

-- name: report_running
-- What tasks that still run have to tell: that they run, how far they are, which phase they saved.
WITH held AS (
    SELECT task.task_id, task.job_id, task.node_id, %(reports)s::jsonb -> task.task_id AS report
    FROM dagapp.dag_tasks AS task
    WHERE task.task_id = ANY (%(task_ids)s) AND task.status::text = 'leased' AND task.leased_by = %(worker_id)s
      AND task.delivery_count = (%(reports)s::jsonb -> task.task_id ->> 'delivery_count')::int
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, progress, checkpoint, worker_id)
    SELECT task_id, job_id, node_id, 'running', progress, checkpoint, %(worker_id)s
    FROM held, jsonb_to_record(report) AS told (progress jsonb, checkpoint text)
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM dagapp.dag_jobs AS job
    WHERE job.job_id = ANY (ARRAY(SELECT DISTINCT job_id FROM held)) AND job.owner_id IS NOT NULL
)
SELECT task_id, (SELECT count(sent) FROM told) AS owners FROM held;

-- name: complete_tasks
-- The result went another way (by HTTP); only the queue is told.
UPDATE dagapp.dag_tasks AS task
SET status = 'done', leased_by = NULL, lease_expires_at = NULL
WHERE task.task_id = ANY (%(task_ids)s) AND task.status::text = 'leased' AND task.leased_by = %(worker_id)s
  AND task.delivery_count = (%(deliveries)s::jsonb ->> task.task_id)::int
RETURNING task.task_id;

-- name: abandon_tasks
-- Back to the queue. A worker that only makes room for others does not bring the task nearer to its last delivery.
WITH given_back AS (
    UPDATE dagapp.dag_tasks AS task
    SET status = 'queued', leased_by = NULL, lease_expires_at = NULL, sent_at = NULL,
        delivery_count = task.delivery_count - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
        available_at = CASE WHEN %(delay_seconds)s > 0 THEN now() + %(delay_seconds)s * interval '1 second'
                            ELSE task.available_at END
    WHERE task.task_id = ANY (%(task_ids)s) AND task.status::text = 'leased' AND task.leased_by = %(worker_id)s
      AND task.delivery_count = (%(deliveries)s::jsonb ->> task.task_id)::int
    RETURNING task.task_id, task.queue
), channels AS (
    SELECT DISTINCT 'graticule_queue_' || md5(queue) AS channel FROM given_back
    UNION ALL
    SELECT 'graticule_outbox' WHERE EXISTS (SELECT FROM given_back)
), told AS (
    SELECT pg_notify(channel, '') AS sent FROM channels
)
SELECT task_id, (SELECT count(sent) FROM told) AS queues FROM given_back;

-- name: abandon_other_tasks
-- What the worker was given and never heard of. The delivery counts all the same: its number names the lease, and is
-- not used again.
WITH given_back AS (
    UPDATE dagapp.dag_tasks
    SET status = 'queued', leased_by = NULL, lease_expires_at = NULL, sent_at = NULL
    WHERE task_id = ANY (ARRAY(
            SELECT task_id FROM dagapp.dag_tasks
            WHERE status = 'leased' AND leased_by = %(worker_id)s AND task_id <> ALL (%(held)s)
            ORDER BY task_id
            FOR UPDATE
        ))
    RETURNING task_id, queue
), channels AS (
    SELECT DISTINCT 'graticule_queue_' || md5(queue) AS channel FROM given_back
    UNION ALL
    SELECT 'graticule_outbox' WHERE EXISTS (SELECT FROM given_back)
), told AS (
    SELECT pg_notify(channel, '') AS sent FROM channels
)
SELECT task_id, (SELECT count(sent) FROM told) AS queues FROM given_back;

-- name: dead_letter_task
-- Nobody can run it: it is set aside, and its node fails for good.
WITH dead AS (
    UPDATE dagapp.dag_tasks
    SET status = 'dead', dead_reason = %(reason)s, leased_by = NULL, lease_expires_at = NULL
    WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s
      AND status = 'leased' AND leased_by = %(worker_id)s
    RETURNING task_id, job_id, node_id, queue, dead_reason
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, error_message, retryable, worker_id)
    SELECT task_id, job_id, node_id, 'failed', dead_reason, false, %(worker_id)s FROM dead
), told AS (
    SELECT pg_notify('graticule_owner_' || md5(job.owner_id), job.job_id) AS sent
    FROM dead JOIN dagapp.dag_jobs AS job ON job.job_id = dead.job_id
    WHERE job.owner_id IS NOT NULL
)
SELECT queue, (SELECT count(sent) FROM told) AS owners FROM dead;

-- name: reap_expired_leases
-- Their workers are silent: others may have the tasks, but a task that ended every one of them is set aside.
WITH moved AS (
    UPDATE dagapp.dag_tasks
    SET status = (CASE WHEN delivery_count >= max_deliveries THEN 'dead' ELSE 'queued' END)::dagapp.message_status,
        dead_reason = CASE WHEN delivery_count >= max_deliveries
                           THEN 'poison task: delivered ' || delivery_count || ' times without a result' END,
        leased_by = NULL, lease_expires_at = NULL, sent_at = NULL
    WHERE task_id = ANY (ARRAY(
            SELECT task_id FROM dagapp.dag_tasks
            WHERE status = 'leased' AND lease_expires_at < coalesce(%(now)s::timestamptz, now())
            ORDER BY lease_expires_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING task_id, job_id, node_id, queue, status, dead_reason
), written AS (
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, error_message, retryable)
    SELECT task_id, job_id, node_id, 'failed', dead_reason, false FROM moved WHERE status = 'dead'
), channels AS (
    SELECT DISTINCT 'graticule_queue_' || md5(queue) AS channel, '' AS payload FROM moved WHERE status = 'queued'
    UNION
    SELECT 'graticule_outbox', '' WHERE EXISTS (SELECT FROM moved WHERE status = 'queued')
    UNION
    SELECT 'graticule_owner_' || md5(job.owner_id), job.job_id
    FROM moved JOIN dagapp.dag_jobs AS job ON job.job_id = moved.job_id
    WHERE moved.status = 'dead' AND job.owner_id IS NOT NULL
), told AS (
    SELECT pg_notify(channel, payload) AS sent FROM channels
)
SELECT task_id, queue, status, (SELECT count(sent) FROM told) AS told FROM moved;

-- name: unsent_tasks
-- The outbox of a broker. Only the owner of a job sends its tasks: two that do would send each twice.
SELECT task.task_id, task.job_id, task.node_id, task.queue, task.handler, task.params, task.timeout_seconds,
       task.retry_count, task.traceparent, task.available_at, task.xmin::text AS version
FROM dagapp.dag_tasks AS task JOIN dagapp.dag_jobs AS job USING (job_id)
WHERE task.status = 'queued' AND task.sent_at IS NULL AND job.owner_id = %(owner_id)s
  AND task.queue <> ALL (%(without)s::text[])
  AND (task.task_id, task.xmin::text) NOT IN
      (SELECT * FROM unnest(%(task_ids)s::text[], %(versions)s::text[]) AS sent (task_id, version))
ORDER BY task.created_at
LIMIT %(limit)s;

-- name: note_sent_tasks
-- One that was taken, given back or withdrawn since it was read is another row version: of its message nothing is known.
UPDATE dagapp.dag_tasks AS task SET sent_at = now()
FROM unnest(%(task_ids)s::text[], %(versions)s::text[]) AS sent (task_id, version)
WHERE task.task_id = sent.task_id AND task.status::text = 'queued' AND task.sent_at IS NULL
  AND task.xmin::text = sent.version;

-- name: send_tasks_again
-- The broker has dropped their messages by now.
UPDATE dagapp.dag_tasks SET sent_at = NULL
WHERE status = 'queued' AND sent_at < %(sent_before)s;

-- name: send_first_tasks_again
-- Of each queue, those that were sent first.
UPDATE dagapp.dag_tasks SET sent_at = NULL
WHERE task_id = ANY (ARRAY(
        SELECT first.task_id
        FROM unnest(%(queues)s::text[]) AS served (queue),
             LATERAL (SELECT task_id FROM dagapp.dag_tasks AS task
                      WHERE task.queue = served.queue AND task.status = 'queued' AND task.sent_at IS NOT NULL
                      ORDER BY task.sent_at
                      LIMIT %(limit)s
                      FOR UPDATE SKIP LOCKED) AS first
    ));

-- name: dead_tasks
-- Newest first, keyset paged: the page begins after the row that the cursor names.
SELECT * FROM dagapp.dag_tasks
WHERE status = 'dead' AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(before_created_at)s::timestamptz IS NULL
       OR (created_at, task_id) < (%(before_created_at)s, %(before_task_id)s))
ORDER BY created_at DESC, task_id DESC
LIMIT %(limit)s;

-- name: hold_job_of_task
-- Whether the node still waits is for the job's steps to decide: none is written meanwhile. A statement of its own: one
-- that waited for a step still sees what was there before it.
SELECT job_id FROM dagapp.dag_jobs
WHERE job_id = (SELECT job_id FROM dagapp.dag_tasks WHERE task_id = %(task_id)s)
FOR NO KEY UPDATE;

-- name: requeue_dead_task
-- Only a node that still waits for this very attempt would take its result; one that failed with it, and its job with
-- the node, can be resumed. That it failed, which nobody has acted on yet, is forgotten.
WITH letter AS (
    SELECT task.task_id, task.queue, task.status,
           node.task_id IS NOT NULL AND node.status IN ('dispatched', 'running') AS is_awaited,
           node.task_id IS NOT NULL AND node.status = 'failed' AND job.status = 'failed' AS can_be_resumed
    FROM dagapp.dag_tasks AS task JOIN dagapp.dag_jobs AS job USING (job_id)
    LEFT JOIN dagapp.dag_nodes AS node
        ON node.job_id = task.job_id AND node.node_id = task.node_id AND node.task_id = task.task_id
    WHERE task.task_id = %(task_id)s
    FOR UPDATE OF task
), requeued AS (
    UPDATE dagapp.dag_tasks AS task
    SET status = 'queued', dead_reason = NULL, delivery_count = 0, available_at = now(),
        leased_by = NULL, lease_expires_at = NULL, sent_at = NULL
    FROM letter
    WHERE task.task_id = letter.task_id AND letter.status = 'dead' AND letter.is_awaited
    RETURNING task.task_id, task.job_id, task.queue
), forgotten AS (
    UPDATE dagapp.dag_task_results AS result SET processed_at = now()
    FROM requeued
    WHERE result.job_id = requeued.job_id AND result.task_id = requeued.task_id AND result.processed_at IS NULL
), told AS (
    SELECT pg_notify('graticule_queue_' || md5(queue), '') AS sent, pg_notify('graticule_outbox', '') FROM requeued
)
SELECT CASE WHEN (SELECT count(sent) FROM told) > 0 THEN 'requeued'
            WHEN status = 'dead' AND can_be_resumed THEN 'job_failed'
            WHEN status = 'dead' THEN 'not_awaited'
            ELSE 'not_dead' END AS outcome
FROM letter;

-- name: discard_dead_task
UPDATE dagapp.dag_tasks SET status = 'withdrawn' WHERE task_id = %(task_id)s AND status = 'dead';

-- name: notify_queues
SELECT pg_notify('graticule_queue_' || md5(queue), '') FROM unnest(%(queues)s::text[]) AS given (queue);
