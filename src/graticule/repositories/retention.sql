-- What has ended long ago and may be removed. A job goes with its rows in one transaction; an active job never does,
-- nor one that an asset version names as its current one.

-- name: hold_removable_jobs
-- Oldest first. A job that someone holds (another prune, or a retry that makes it active again) is passed over.
SELECT job_id FROM dagapp.dag_jobs AS job
WHERE ended_at < %(before)s
  AND NOT EXISTS (SELECT FROM dagapp.asset_versions AS version WHERE version.current_job_id = job.job_id)
ORDER BY ended_at
LIMIT %(limit)s
FOR UPDATE OF job SKIP LOCKED;

-- name: stay
-- Something must be asked now and then while the storage is at work.
SELECT;

-- name: remove_jobs
-- The jobs are held, so that nothing is added to them meanwhile. Events of an asset are its history, and stay.
WITH events AS (
    DELETE FROM dagapp.dag_job_events WHERE job_id = ANY (%(job_ids)s) AND asset_id IS NULL RETURNING 1
), callbacks AS (
    DELETE FROM dagapp.dag_callbacks WHERE job_id = ANY (%(job_ids)s) RETURNING 1
), checkpoints AS (
    DELETE FROM dagapp.dag_checkpoints WHERE job_id = ANY (%(job_ids)s) RETURNING 1
), tasks AS (
    DELETE FROM dagapp.dag_tasks WHERE job_id = ANY (%(job_ids)s) RETURNING 1
), nodes AS (
    DELETE FROM dagapp.dag_nodes WHERE job_id = ANY (%(job_ids)s) RETURNING 1
), jobs AS (
    DELETE FROM dagapp.dag_jobs WHERE job_id = ANY (%(job_ids)s) RETURNING 1
)
SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM nodes) AS nodes,
       (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM events) AS events,
       (SELECT count(*) FROM checkpoints) AS checkpoints, (SELECT count(*) FROM callbacks) AS callbacks;

-- name: hold_scratch_jobs
-- Those of the jobs with these working folders (scratch_name in storage/paths.py) that ended long ago, whether their rows
-- stay or not.
SELECT job_id FROM dagapp.dag_jobs
WHERE ended_at < %(before)s AND CASE WHEN length(job_id) > 32 THEN job_id ELSE right(job_id, 8) END = ANY (%(names)s)
FOR UPDATE SKIP LOCKED;

-- name: shared_scratch
-- The working folders that other jobs have too. Few names are asked for, and so seldom that no index is kept for them.
SELECT DISTINCT name
FROM dagapp.dag_jobs, LATERAL (SELECT CASE WHEN length(job_id) > 32 THEN job_id ELSE right(job_id, 8) END AS name) AS folder
WHERE name = ANY (%(names)s) AND job_id <> ALL (%(job_ids)s);

-- name: remove_results
-- One page of the results by id, which grow with time: those whose job is gone are removed. No index leads from a job
-- to the results that were acted on (each would cost a write per task), so they are walked through.
WITH page AS (
    SELECT result_id, job_id, reported_at FROM dagapp.dag_task_results
    WHERE result_id > %(after)s
    ORDER BY result_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM dagapp.dag_task_results AS result USING page
    WHERE result.result_id = page.result_id AND page.reported_at < %(before)s
      AND NOT EXISTS (SELECT FROM dagapp.dag_jobs AS job WHERE job.job_id = page.job_id)
    RETURNING 1
)
SELECT max(result_id) AS last, coalesce(min(reported_at) >= %(before)s, true) AS through,
       (SELECT count(*) FROM removed) AS results
FROM page;

-- name: remove_workflows
-- Contents that no job has any more. The newest of each workflow is what its next job runs, and stays.
DELETE FROM dagapp.dag_workflows AS kept
WHERE created_at < %(before)s
  AND EXISTS (
      SELECT FROM dagapp.dag_workflows AS newer
      WHERE newer.workflow_id = kept.workflow_id
        AND (newer.created_at, newer.workflow_hash) > (kept.created_at, kept.workflow_hash)
  )
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_jobs AS job
      WHERE job.workflow_id = kept.workflow_id AND job.workflow_hash = kept.workflow_hash
  );

-- name: empty_definitions
-- Contents of what was superseded long ago. Its key stays: an orchestrator that still has this file would announce it as
-- new otherwise, and bring it back for all.
UPDATE dagapp.dag_definitions SET definition = '{}'
WHERE superseded_at < %(before)s AND definition <> '{}';

-- name: remove_messages
-- Job messages that were dealt with. A dead letter stays: a person decides about it.
DELETE FROM dagapp.dag_job_messages WHERE status IN ('done', 'withdrawn') AND created_at < %(before)s;

-- name: remove_workers
DELETE FROM dagapp.dag_workers WHERE stopped_at < %(before)s;

-- name: remove_orchestrators
DELETE FROM dagapp.dag_orchestrators AS instance
WHERE stopped_at < %(before)s
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_jobs AS job
      WHERE job.owner_id = instance.owner_id AND job.status IN ('pending', 'running')
  );

-- name: count_removable
WITH removable AS MATERIALIZED (
    SELECT job_id FROM dagapp.dag_jobs AS job
    WHERE ended_at < %(before)s
      AND NOT EXISTS (SELECT FROM dagapp.asset_versions AS version WHERE version.current_job_id = job.job_id)
)
SELECT (SELECT count(*) FROM removable) AS jobs,
       (SELECT count(*) FROM dagapp.dag_nodes JOIN removable USING (job_id)) AS nodes,
       (SELECT count(*) FROM dagapp.dag_tasks JOIN removable USING (job_id)) AS tasks,
       (SELECT count(*) FROM dagapp.dag_task_results JOIN removable USING (job_id)) AS results,
       (SELECT count(*) FROM dagapp.dag_job_events JOIN removable USING (job_id) WHERE asset_id IS NULL) AS events,
       (SELECT count(*) FROM dagapp.dag_checkpoints JOIN removable USING (job_id)) AS checkpoints,
       (SELECT count(*) FROM dagapp.dag_callbacks JOIN removable USING (job_id)) AS callbacks;

-- name: lock_schema
-- The lock of deployments: partitions are made and dropped by one process at a time.
SELECT pg_advisory_xact_lock(hashtext('graticule schema'));

-- name: wait_briefly_for_locks
-- While a partition is dropped nobody can write events, and whoever waits for its lock makes all others wait.
SELECT set_config('lock_timeout', '2s', true);

-- name: partition_exists
SELECT to_regclass('dagapp.' || quote_ident(%(name)s)) IS NOT NULL AS found;

-- name: past_partitions
-- The months of the event table that are wholly over; the default partition has no bounds and is none of them.
SELECT name FROM (
    SELECT part.relname AS name,
           substring(pg_get_expr(part.relpartbound, part.oid) FROM 'TO \(''([^'']+)''\)')::timestamptz AS ends_at
    FROM pg_inherits
    JOIN pg_class AS part ON part.oid = inhrelid
    WHERE inhparent = 'dagapp.dag_job_events'::regclass
) AS months
WHERE ends_at <= %(before)s
ORDER BY name;
