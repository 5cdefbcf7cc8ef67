-- What is asked and done when a database comes back from a backup.

-- name: occupied
-- Those of our schemas that are there already.
SELECT nspname FROM pg_namespace
WHERE nspname IN ('dagapp', 'dagapp_compat', 'geo', 'external', 'serving', 'pgstac')
ORDER BY nspname;

-- name: has_roles
SELECT count(*) = cardinality(%(roles)s::text[]) FROM pg_roles WHERE rolname = ANY (%(roles)s);

-- name: at_work
-- Orchestrators whose sessions are open.
SELECT owner_id FROM dagapp.dag_orchestrators
WHERE stopped_at IS NULL
  AND EXISTS (
      SELECT FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint = (lock_key >> 32) & 4294967295 AND objid::bigint = lock_key & 4294967295
  )
ORDER BY owner_id;

-- name: settle
-- Whoever held something is not here, and its lease is over. What was under way gets its whole time again: that the
-- database was away is not its fault. What a broker was given is given anew, for it may be another one; one message too
-- many does no harm.
WITH nodes AS (
    UPDATE dagapp.dag_nodes
    SET deadline_at = now() + greatest(deadline_at - coalesce(started_at, dispatched_at), interval '0')
    WHERE status IN ('dispatched', 'running') AND deadline_at IS NOT NULL
), messages AS (
    UPDATE dagapp.dag_job_messages SET lease_expires_at = now() WHERE status = 'leased'
), leased AS (
    UPDATE dagapp.dag_tasks SET lease_expires_at = now() WHERE status = 'leased'
), sent AS (
    UPDATE dagapp.dag_tasks SET sent_at = NULL WHERE status = 'queued' AND sent_at IS NOT NULL RETURNING 1
)
SELECT (SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')) AS jobs,
       (SELECT count(*) FROM sent) AS tasks;
