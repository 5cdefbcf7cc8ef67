-- The rows of running processes. All of their times are the database's.

-- name: beat_orchestrator
UPDATE dagapp.dag_orchestrators SET heartbeat_at = now() WHERE owner_id = %(owner_id)s AND stopped_at IS NULL;

-- name: rejoin_orchestrator
-- It was taken for dead and closed by another, and lives.
UPDATE dagapp.dag_orchestrators SET heartbeat_at = now(), stopped_at = NULL WHERE owner_id = %(owner_id)s;

-- name: stop_orchestrator
UPDATE dagapp.dag_orchestrators SET stopped_at = %(now)s WHERE owner_id = %(owner_id)s AND stopped_at IS NULL;

-- name: running_orchestrators
SELECT * FROM dagapp.dag_orchestrators WHERE stopped_at IS NULL ORDER BY started_at, owner_id;

-- name: beat_worker
UPDATE dagapp.dag_workers SET heartbeat_at = now() WHERE worker_id = %(worker_id)s AND stopped_at IS NULL;

-- name: stop_worker
UPDATE dagapp.dag_workers SET stopped_at = now() WHERE worker_id = %(worker_id)s AND stopped_at IS NULL;

-- name: running_workers
SELECT * FROM dagapp.dag_workers WHERE stopped_at IS NULL ORDER BY started_at, worker_id;

-- name: silent_workers
-- Those that have said nothing for some seconds, but did so not long before.
SELECT * FROM dagapp.dag_workers
WHERE stopped_at IS NULL AND heartbeat_at < now() - %(seconds)s * interval '1 second'
  AND heartbeat_at > now() - %(long_seconds)s * interval '1 second';
