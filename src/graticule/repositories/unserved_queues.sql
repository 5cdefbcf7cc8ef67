-- Queues whose tasks wait although no live worker serves them.

-- name: served_queues
SELECT DISTINCT queue FROM dagapp.dag_workers CROSS JOIN unnest(queues) AS served (queue)
WHERE stopped_at IS NULL AND heartbeat_at > now() - make_interval(secs => %(threshold)s);

-- name: unserved_queues
-- Queues are found by going from one to the next in the index of what waits: there are few, however many tasks wait.
WITH RECURSIVE waiting_queues AS (
    (SELECT queue FROM dagapp.dag_tasks WHERE status = 'queued' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT task.queue FROM dagapp.dag_tasks AS task
            WHERE task.status = 'queued' AND task.queue > waiting_queues.queue ORDER BY task.queue LIMIT 1)
    FROM waiting_queues WHERE queue IS NOT NULL
)
SELECT queue FROM waiting_queues
WHERE queue IS NOT NULL AND NOT EXISTS (
    SELECT FROM dagapp.dag_workers
    WHERE stopped_at IS NULL AND heartbeat_at > now() - make_interval(secs => %(threshold)s)
      AND waiting_queues.queue = ANY (queues)
);

-- name: waiting_tasks
-- The next tasks of a queue in the order of its index, after the one that was seen last: those that became available in a
-- stretch of time. However many wait, each page reads no more than it returns.
SELECT of.priority, task.turn, task.available_at, task.task_id, task.job_id, task.node_id
FROM generate_series(0, %(after_priority)s) AS of (priority), LATERAL (
    SELECT turn, available_at, task_id, job_id, node_id FROM dagapp.dag_tasks
    WHERE status = 'queued' AND queue = %(queue)s AND dag_tasks.priority = of.priority
      AND available_at > %(since)s AND available_at <= %(until)s
      AND (turn, available_at, task_id) > (
          CASE WHEN of.priority = %(after_priority)s THEN %(after_turn)s ELSE -1 END, %(after_at)s, %(after_id)s::text
      )
    ORDER BY turn, available_at, task_id
    LIMIT %(limit)s
) AS task
ORDER BY of.priority DESC, task.turn, task.available_at, task.task_id
LIMIT %(limit)s;

-- name: note_waiting_nodes
-- One event per node and queue; children of a fan-out are one event of the fan-out. Only jobs that lack theirs are held: the
-- same tasks are looked at often. A job that is just taking a step is passed over: it goes on, or is met by a later look.
WITH waiting AS (
    SELECT job_id, coalesce(node.parent_node_id, node.node_id) AS node_id, count(*) AS tasks
    FROM unnest(%(job_ids)s::text[], %(node_ids)s::text[]) AS task (job_id, node_id)
    JOIN dagapp.dag_jobs AS job USING (job_id)
    JOIN dagapp.dag_nodes AS node USING (job_id, node_id)
    WHERE job.owner_id = %(owner_id)s AND job.status IN ('pending', 'running')
    GROUP BY 1, 2
), unnoted AS MATERIALIZED (
    SELECT * FROM waiting
    WHERE NOT EXISTS (
        SELECT FROM dagapp.dag_job_events AS event
        WHERE event.job_id = waiting.job_id AND event.node_id = waiting.node_id
          AND event.event_type = 'node_waiting_for_worker' AND event.data ->> 'queue' = %(queue)s::text
    )
), own AS (
    SELECT job_id, owner_epoch FROM dagapp.dag_jobs
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM unnoted)) AND owner_id = %(owner_id)s AND status IN ('pending', 'running')
    FOR SHARE SKIP LOCKED
), noted AS (
    INSERT INTO dagapp.dag_job_events (event_type, job_id, node_id, actor, data, owner_epoch, created_at)
    SELECT 'node_waiting_for_worker', job_id, node_id, %(owner_id)s,
           jsonb_build_object('queue', %(queue)s::text, 'tasks', tasks, 'command', %(command)s::text), owner_epoch,
           %(now)s
    FROM unnoted JOIN own USING (job_id)
    RETURNING job_id
)
SELECT count(*) AS events, (SELECT pg_notify('graticule_events', '') FROM noted LIMIT 1) FROM noted;
