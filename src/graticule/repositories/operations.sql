-- What operators look at: queues, processes, and numbers of the last days. Each statement reads partial indexes or
-- a bounded stretch of one, never all that ever was.

-- name: queues_now
-- Messages that ask for jobs wait for orchestrators, and not for workers.
SELECT queue,
       sum(queued)::bigint AS queued, sum(delayed)::bigint AS delayed, sum(leased)::bigint AS leased,
       sum(dead)::bigint AS dead, sum(workers)::bigint AS workers,
       CASE WHEN sum(workers) = 0 THEN sum(tasks) ELSE 0 END::bigint AS unserved,
       extract(epoch FROM now() - min(oldest))::float8 AS oldest_seconds
FROM (
    SELECT queue, count(*) FILTER (WHERE available_at <= now()) AS queued,
           count(*) FILTER (WHERE available_at > now()) AS delayed, 0 AS leased, 0 AS dead, 0 AS workers,
           count(*) FILTER (WHERE available_at <= now()) AS tasks,
           min(available_at) FILTER (WHERE available_at <= now()) AS oldest
    FROM dagapp.dag_tasks WHERE status = 'queued' GROUP BY queue
    UNION ALL
    SELECT queue, count(*) FILTER (WHERE available_at <= now()),
           count(*) FILTER (WHERE available_at > now()), 0, 0, 0, 0,
           min(available_at) FILTER (WHERE available_at <= now())
    FROM dagapp.dag_job_messages WHERE status = 'queued' GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, count(*), 0, 0, 0, NULL FROM dagapp.dag_tasks WHERE status = 'leased' GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, count(*), 0, 0, 0, NULL FROM dagapp.dag_job_messages WHERE status = 'leased' GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, 0, count(*), 0, 0, NULL FROM dagapp.dag_tasks WHERE status = 'dead' GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, 0, count(*), 0, 0, NULL FROM dagapp.dag_job_messages WHERE status = 'dead' GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, 0, 0, count(*), 0, NULL
    FROM dagapp.dag_workers CROSS JOIN unnest(queues) AS served (queue)
    WHERE stopped_at IS NULL AND heartbeat_at > now() - %(threshold)s * interval '1 second'
    GROUP BY queue
) AS part
GROUP BY queue
ORDER BY queue;

-- name: state_now
-- The state as a few numbers, for whoever asks again and again. What waits is counted to a bound. Queues are found by
-- going from one to the next in the index of what waits, and the oldest of a queue is the first of one of its priorities:
-- it matters how many queues there are, and not how many tasks.
WITH RECURSIVE waiting_queues AS (
    (SELECT queue FROM dagapp.dag_tasks WHERE status = 'queued' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT task.queue FROM dagapp.dag_tasks AS task
            WHERE task.status = 'queued' AND task.queue > waiting_queues.queue ORDER BY task.queue LIMIT 1)
    FROM waiting_queues WHERE queue IS NOT NULL
), live_workers AS MATERIALIZED (
    SELECT queues FROM dagapp.dag_workers
    WHERE stopped_at IS NULL AND heartbeat_at > now() - %(threshold)s * interval '1 second'
), served AS (
    SELECT queue, count(*) AS workers FROM live_workers CROSS JOIN unnest(queues) AS served (queue) GROUP BY queue
), queues AS MATERIALIZED (
    SELECT queue, coalesce(sum(workers), 0) AS workers
    FROM (SELECT queue, 0 AS workers FROM waiting_queues WHERE queue IS NOT NULL
          UNION ALL
          SELECT * FROM served) AS found
    GROUP BY queue ORDER BY queue LIMIT %(most_queues)s
), task_queues AS MATERIALIZED (
    SELECT 'task' AS kind, queue, counted.*, (
        SELECT min(available_at) FROM generate_series(0, 10) AS of (priority), LATERAL (
            SELECT available_at FROM dagapp.dag_tasks AS task
            WHERE task.status = 'queued' AND task.queue = queues.queue AND task.priority = of.priority
              AND available_at <= now()
            ORDER BY turn, available_at LIMIT 100
        ) AS first
    ) AS since
    FROM queues, LATERAL (
        SELECT count(*) FILTER (WHERE available_at <= now()) AS waiting,
               count(*) FILTER (WHERE available_at > now()) AS delayed
        FROM (SELECT available_at FROM dagapp.dag_tasks AS task
              WHERE task.status = 'queued' AND task.queue = queues.queue LIMIT %(bound)s) AS bounded
    ) AS counted
), job_queue AS MATERIALIZED (
    SELECT 'job' AS kind, %(job_queue)s AS queue, count(*) FILTER (WHERE available_at <= now()) AS waiting,
           count(*) FILTER (WHERE available_at > now()) AS delayed,
           min(available_at) FILTER (WHERE available_at <= now()) AS since
    FROM (SELECT available_at FROM dagapp.dag_job_messages
          WHERE status = 'queued' AND queue = %(job_queue)s LIMIT %(bound)s) AS bounded
), every_queue AS (
    SELECT * FROM task_queues UNION ALL SELECT * FROM job_queue
), active_jobs AS MATERIALIZED (
    SELECT label AS status, counted.* FROM unnest(ARRAY['pending', 'running']) AS label, LATERAL (
        SELECT count(*) AS jobs, min(created_at) AS since FROM (
            SELECT created_at FROM dagapp.dag_jobs AS job
            WHERE job.status = label::dagapp.job_status ORDER BY created_at LIMIT %(bound)s
        ) AS bounded
    ) AS counted
), unprocessed AS MATERIALIZED (
    SELECT count(*) AS results, min(reported_at) AS since FROM (
        SELECT reported_at FROM dagapp.dag_task_results WHERE processed_at IS NULL
        ORDER BY job_id, result_id LIMIT %(bound)s
    ) AS bounded
), undelivered AS MATERIALIZED (
    SELECT count(*) AS callbacks, min(created_at) AS since FROM (
        SELECT created_at FROM dagapp.dag_callbacks WHERE delivered_at IS NULL AND given_up_at IS NULL
        ORDER BY next_attempt_at LIMIT %(bound)s
    ) AS bounded
)
SELECT 'queue_depth' AS name, ARRAY[kind, queue, 'waiting'] AS labels, waiting::float8 AS value FROM every_queue
UNION ALL
SELECT 'queue_depth', ARRAY[kind, queue, 'delayed'], delayed FROM every_queue
UNION ALL
SELECT 'queue_depth', ARRAY['task', queue, 'leased'], count(*) FROM dagapp.dag_tasks WHERE status = 'leased' GROUP BY queue
UNION ALL
SELECT 'queue_oldest_seconds', ARRAY[kind, queue], coalesce(extract(epoch FROM now() - since), 0) FROM every_queue
UNION ALL
SELECT 'queue_workers', ARRAY[queue], workers FROM queues
UNION ALL
SELECT 'dead_letters_waiting', ARRAY['task', queue], count(*) FROM (
    SELECT queue FROM dagapp.dag_tasks WHERE status = 'dead' ORDER BY queue, created_at DESC LIMIT %(bound)s
) AS bounded GROUP BY queue
UNION ALL
SELECT 'dead_letters_waiting', ARRAY['job', queue], count(*) FROM (
    SELECT queue FROM dagapp.dag_job_messages WHERE status = 'dead' ORDER BY queue, created_at DESC LIMIT %(bound)s
) AS bounded GROUP BY queue
UNION ALL
SELECT 'jobs_active', ARRAY[status], jobs FROM active_jobs
UNION ALL
SELECT 'jobs_oldest_seconds', ARRAY[status], coalesce(extract(epoch FROM now() - since), 0) FROM active_jobs
UNION ALL
SELECT 'orchestrator_jobs_owned', '{}', count(*)
FROM dagapp.dag_jobs WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running')
UNION ALL
SELECT 'results_waiting', '{}', results FROM unprocessed
UNION ALL
SELECT 'results_oldest_seconds', '{}', coalesce(extract(epoch FROM now() - since), 0) FROM unprocessed
UNION ALL
SELECT 'callbacks_waiting', '{}', callbacks FROM undelivered
UNION ALL
SELECT 'callbacks_oldest_seconds', '{}', coalesce(extract(epoch FROM now() - since), 0) FROM undelivered
UNION ALL
SELECT 'outputs_damaged', ARRAY[label], (
    SELECT count(*) FROM (
        -- Each is looked up by its key: a join with the view may read all versions for each of them.
        SELECT FROM dagapp.output_checks AS checked
        WHERE faults <> '[]' AND checked.audience::text = label AND (
            SELECT true FROM serving.outputs AS served
            WHERE served.asset_id = checked.asset_id AND served.version_ordinal = checked.version_ordinal
              AND served.audience = checked.audience AND served.revision = checked.revision
        )
        LIMIT %(most_damaged)s
    ) AS bounded
) FROM unnest(ARRAY['internal', 'external']) AS label
UNION ALL
SELECT 'outputs_verified_at', '{}', extract(epoch FROM min(checked_at)) FROM dagapp.output_checks
HAVING min(checked_at) IS NOT NULL
UNION ALL
SELECT 'workers_alive', '{}', count(*) FROM live_workers
UNION ALL
SELECT 'orchestrators_alive', '{}', count(*) FROM dagapp.dag_orchestrators
WHERE stopped_at IS NULL AND heartbeat_at > now() - %(threshold)s * interval '1 second';

-- name: workers_now
-- Those that run, then those that stopped, newest first.
SELECT worker.*, coalesce(held.tasks, 0) AS active_tasks,
       CASE WHEN stopped_at IS NOT NULL THEN 'stopped'
            WHEN heartbeat_at > now() - %(threshold)s * interval '1 second' THEN 'alive' ELSE 'stale' END AS state
FROM dagapp.dag_workers AS worker
LEFT JOIN (SELECT leased_by, count(*) AS tasks FROM dagapp.dag_tasks WHERE status = 'leased' GROUP BY leased_by) AS held
    ON held.leased_by = worker.worker_id
WHERE stopped_at IS NULL OR %(stopped)s
ORDER BY stopped_at DESC NULLS FIRST, started_at DESC, worker_id
LIMIT %(limit)s;

-- name: orchestrators_now
SELECT instance.*, coalesce(held.jobs, 0) AS active_jobs,
       CASE WHEN stopped_at IS NOT NULL THEN 'stopped'
            WHEN heartbeat_at <= now() - %(threshold)s * interval '1 second' THEN 'stale'
            WHEN EXISTS (
                SELECT FROM pg_locks
                WHERE locktype = 'advisory' AND granted AND objsubid = 1
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND classid::bigint = (lock_key >> 32) & 4294967295 AND objid::bigint = lock_key & 4294967295
            ) THEN 'alive'
            ELSE 'gone' END AS state
FROM dagapp.dag_orchestrators AS instance
LEFT JOIN (SELECT owner_id, count(*) AS jobs FROM dagapp.dag_jobs WHERE status IN ('pending', 'running') GROUP BY owner_id)
    AS held ON held.owner_id = instance.owner_id
WHERE stopped_at IS NULL OR %(stopped)s
ORDER BY stopped_at DESC NULLS FIRST, started_at DESC, instance.owner_id
LIMIT %(limit)s;

-- name: jobs_by_status
-- Counted to a bound: beyond it, nobody needs the exact number.
SELECT label AS status, (
    SELECT count(*) FROM (
        SELECT FROM dagapp.dag_jobs WHERE dag_jobs.status = label LIMIT %(bound)s
    ) AS counted
) AS jobs
FROM unnest(enum_range(NULL::dagapp.job_status)) AS label;

-- name: jobs_ended_by_hour
SELECT date_trunc('hour', ended_at) AS hour,
       count(*) FILTER (WHERE status = 'completed') AS completed,
       count(*) FILTER (WHERE status = 'failed') AS failed,
       count(*) FILTER (WHERE status = 'cancelled') AS cancelled
FROM (
    SELECT ended_at, status FROM dagapp.dag_jobs
    WHERE ended_at > now() - interval '24 hours'
    ORDER BY ended_at DESC LIMIT %(bound)s
) AS recent
GROUP BY hour
ORDER BY hour;

-- name: durations_by_workflow
-- From the first dispatch to the end, of the newest jobs that completed.
SELECT workflow_id, count(*) AS jobs,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50_seconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95_seconds
FROM (
    SELECT workflow_id, extract(epoch FROM ended_at - coalesce(started_at, created_at))::float8 AS seconds
    FROM dagapp.dag_jobs
    WHERE ended_at > now() - interval '7 days' AND status = 'completed'
    ORDER BY ended_at DESC LIMIT %(bound)s
) AS recent
GROUP BY workflow_id
ORDER BY workflow_id;
