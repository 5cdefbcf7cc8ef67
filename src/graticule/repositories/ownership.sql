-- Who decides for which job. Every change of hands raises the epoch: what the former owner still writes is void.

-- name: request_cancel
-- Anyone may ask; only the owner ends the job, and it is told at once. Asking again changes nothing: the step that ends
-- the job is not to be taken anew for it.
WITH asked AS (
    UPDATE dagapp.dag_jobs
    SET cancel_requested_at = coalesce(cancel_requested_at, %(now)s),
        cancel_requested_by = CASE WHEN cancel_requested_at IS NULL THEN %(actor)s ELSE cancel_requested_by END,
        updated_at = CASE WHEN cancel_requested_at IS NULL THEN %(now)s ELSE updated_at END
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    RETURNING job_id, owner_id
)
SELECT job_id, pg_notify(coalesce('graticule_owner_' || md5(owner_id), 'graticule_orphans'), job_id) FROM asked;

-- name: take_ended
-- A failed job goes on in the hands of whoever resumes it; so does one that was cancelled, if its end is not an outcome
-- of an asset version. With another definition it starts over: then what it was before has no part in it.
UPDATE dagapp.dag_jobs
SET owner_id = %(owner_id)s, owner_epoch = owner_epoch + 1, updated_at = %(now)s,
    workflow_hash = coalesce(%(workflow_hash)s::text, workflow_hash),
    workflow_version = coalesce(%(workflow_version)s::text, workflow_version)
WHERE job_id = %(job_id)s
  AND (status = 'failed' OR status = 'cancelled' AND %(or_cancelled)s AND asset_id IS NULL);

-- name: remove_nodes
-- Of a job that starts over, with the highest number that an attempt of it has had: the new ones are beyond it.
WITH removed AS (
    DELETE FROM dagapp.dag_nodes WHERE job_id = %(job_id)s RETURNING retry_count
), forgotten AS (
    DELETE FROM dagapp.dag_checkpoints WHERE job_id = %(job_id)s
)
SELECT greatest(
    (SELECT max(retry_count) FROM removed), (SELECT max(retry_count) FROM dagapp.dag_tasks WHERE job_id = %(job_id)s), 0
) AS last;

-- name: load
-- How many active jobs an instance has, and all together; how many instances there are to share them; and whether
-- jobs wait for an owner. Where there is nobody to share with, the others are not counted.
WITH instances AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE owner_id <> %(owner_id)s AND owner_id <> ALL (%(dead)s)
                              AND heartbeat_at > now() - make_interval(secs => %(threshold)s)) AS others
    FROM dagapp.dag_orchestrators WHERE stopped_at IS NULL
), own AS (
    SELECT count(*) AS jobs FROM dagapp.dag_jobs WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running')
)
SELECT own.jobs AS own, instances.others + 1 AS instances,
       EXISTS (SELECT FROM dagapp.dag_jobs
               WHERE status IN ('pending', 'running') AND (owner_id IS NULL OR owner_id = ANY (%(dead)s))) AS has_orphans,
       CASE WHEN instances.others = 0 THEN own.jobs
            ELSE (SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')) END AS total
FROM own, instances;

-- name: give_away
-- Those that had nothing to do for the longest time.
WITH given AS (
    UPDATE dagapp.dag_jobs SET owner_id = NULL, owner_epoch = owner_epoch + 1, updated_at = %(now)s
    WHERE job_id = ANY (ARRAY(
            SELECT job_id FROM dagapp.dag_jobs
            WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running')
            ORDER BY updated_at
            LIMIT %(limit)s
            FOR NO KEY UPDATE SKIP LOCKED
        ))
    RETURNING job_id
)
SELECT count(*) AS given, pg_notify('graticule_orphans', '') FROM given;

-- name: take_orphans
-- The active jobs of instances that are gone, and those that were handed over; shared among whoever asks. Who is
-- certain that instances are dead tells the others, too.
WITH orphans AS (
    SELECT job_id, owner_id IS NOT NULL AS is_of_dead FROM dagapp.dag_jobs
    WHERE status IN ('pending', 'running') AND (owner_id IS NULL OR owner_id = ANY (%(dead)s))
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE dagapp.dag_jobs AS job
    SET owner_id = %(owner_id)s, owner_epoch = job.owner_epoch + 1, updated_at = %(now)s
    FROM orphans WHERE job.job_id = orphans.job_id
    RETURNING job.job_id, job.owner_epoch, is_of_dead
), told AS (
    INSERT INTO dagapp.dag_job_events (event_type, job_id, actor, data, owner_epoch, created_at)
    SELECT 'job_reclaimed', job_id, %(owner_id)s, jsonb_build_object('owner_epoch', owner_epoch), owner_epoch, %(now)s
    FROM taken
)
SELECT job_id, is_of_dead, (SELECT pg_notify('graticule_events', '')),
       (SELECT pg_notify('graticule_orphans', 'dead') WHERE cardinality(%(dead)s) > 0)
FROM taken;

-- name: take_late
-- Ended jobs of closed instances with late results, which are recorded all the same.
WITH late AS (
    SELECT job_id FROM dagapp.dag_jobs
    WHERE job_id = ANY (ARRAY(SELECT DISTINCT job_id FROM dagapp.dag_task_results WHERE processed_at IS NULL LIMIT 10000))
      AND status NOT IN ('pending', 'running') AND owner_id <> %(owner_id)s
      AND owner_id NOT IN (SELECT owner_id FROM dagapp.dag_orchestrators WHERE stopped_at IS NULL)
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE dagapp.dag_jobs AS job
SET owner_id = %(owner_id)s, owner_epoch = job.owner_epoch + 1, updated_at = %(now)s
FROM late WHERE job.job_id = late.job_id
RETURNING job.job_id;

-- name: dead_owners
-- An instance is gone when the lock of its session is free, or when its heartbeat is older than the threshold. The
-- first may pass: one that lost its session, as all do when the server is restarted, has a new one in a moment.
SELECT owner_id, heartbeat_at < now() - make_interval(secs => %(threshold)s) AS is_silent
FROM dagapp.dag_orchestrators
WHERE stopped_at IS NULL AND owner_id <> %(owner_id)s
  AND (heartbeat_at < now() - make_interval(secs => %(threshold)s)
       OR NOT EXISTS (
           SELECT FROM pg_locks
           WHERE locktype = 'advisory' AND granted AND objsubid = 1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND classid::bigint = (lock_key >> 32) & 4294967295 AND objid::bigint = lock_key & 4294967295
       ));

-- name: absent_owners
-- Active jobs of an instance that was closed already, or that died before it had a row (a new one may not have it yet).
-- The owners are found by going from one to the next in the index: there are few, however many jobs they have.
WITH RECURSIVE owners AS (
    (SELECT owner_id FROM dagapp.dag_jobs
     WHERE status IN ('pending', 'running') AND owner_id IS NOT NULL
     ORDER BY owner_id LIMIT 1)
    UNION ALL
    SELECT (SELECT job.owner_id FROM dagapp.dag_jobs AS job
            WHERE job.status IN ('pending', 'running') AND job.owner_id > owners.owner_id
            ORDER BY job.owner_id LIMIT 1)
    FROM owners WHERE owner_id IS NOT NULL
)
SELECT owner_id, true AS is_silent
FROM owners LEFT JOIN dagapp.dag_orchestrators AS instance USING (owner_id)
WHERE instance.stopped_at IS NOT NULL
   OR instance.owner_id IS NULL AND EXISTS (
       SELECT FROM dagapp.dag_jobs AS job
       WHERE job.owner_id = owners.owner_id AND job.status IN ('pending', 'running')
         AND job.updated_at < now() - make_interval(secs => %(threshold)s)
   );

-- name: close_dead
UPDATE dagapp.dag_orchestrators AS instance SET stopped_at = %(now)s
WHERE owner_id = ANY (%(dead)s) AND stopped_at IS NULL AND heartbeat_at < now()  -- not one that has just come back
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_jobs AS job
      WHERE job.owner_id = instance.owner_id AND job.status IN ('pending', 'running')
  );

-- name: hand_over
-- The jobs of an instance that stops: the others take them at once.
WITH given AS (
    UPDATE dagapp.dag_jobs SET owner_id = NULL, owner_epoch = owner_epoch + 1, updated_at = %(now)s
    WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running')
    RETURNING job_id
), closed AS (
    UPDATE dagapp.dag_orchestrators SET stopped_at = %(now)s WHERE owner_id = %(owner_id)s AND stopped_at IS NULL
)
SELECT count(*) AS given, pg_notify('graticule_orphans', '') FROM given;

-- name: waiting_jobs
-- Jobs of the owner with results that nobody acted on, or with a cancel that was asked for.
SELECT job_id FROM dagapp.dag_jobs
WHERE job_id = ANY (ARRAY(SELECT DISTINCT job_id FROM dagapp.dag_task_results WHERE processed_at IS NULL LIMIT 10000))
  AND owner_id = %(owner_id)s
UNION
SELECT job_id FROM dagapp.dag_jobs
WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running') AND cancel_requested_at IS NOT NULL;

-- name: due_nodes
-- Retries whose backoff ends within the horizon.
SELECT node.job_id, node.node_id, node.ready_at
FROM dagapp.dag_nodes AS node JOIN dagapp.dag_jobs AS job USING (job_id)
WHERE node.status = 'ready' AND node.ready_at <= %(horizon)s
  AND job.owner_id = %(owner_id)s AND job.status IN ('pending', 'running')
ORDER BY node.ready_at
LIMIT %(limit)s;

-- name: expired_nodes
-- Nodes whose deadline is over. A task that was leased is in a worker's hands, which has not said so yet.
SELECT node.job_id, node.node_id, task.status = 'leased' AS taken
FROM dagapp.dag_nodes AS node
JOIN dagapp.dag_jobs AS job USING (job_id)
LEFT JOIN dagapp.dag_tasks AS task ON task.task_id = node.task_id
WHERE node.status IN ('dispatched', 'running') AND node.deadline_at <= %(now)s
  AND job.owner_id = %(owner_id)s AND job.status IN ('pending', 'running')
ORDER BY node.deadline_at
LIMIT %(limit)s;

-- name: count_active
SELECT count(*) AS active FROM dagapp.dag_jobs WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running');
