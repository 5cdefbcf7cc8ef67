-- name: insert_event
WITH written AS (
    INSERT INTO dagapp.dag_job_events (
        event_type, job_id, node_id, task_id, asset_id, version_ordinal, actor, owner_epoch, data, created_at
    )
    VALUES (
        %(event_type)s, %(job_id)s, %(node_id)s, %(task_id)s, %(asset_id)s, %(version_ordinal)s, %(actor)s,
        %(owner_epoch)s, %(data)s, %(created_at)s
    )
    RETURNING *
), announced AS MATERIALIZED (
    SELECT pg_notify('graticule_events', '')
    UNION ALL
    SELECT pg_notify('graticule_assets', %(changed_asset)s) WHERE %(changed_asset)s::text IS NOT NULL
)
SELECT written.* FROM written, (SELECT count(*) FROM announced) AS told;

-- name: events_of_job
SELECT * FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;

-- name: events_of_asset
SELECT * FROM dagapp.dag_job_events
WHERE asset_id = %(asset_id)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;

-- name: events_of_job_by_type
SELECT * FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_id > %(after)s
  AND (%(types)s::dagapp.event_type[] IS NULL OR event_type = ANY (%(types)s::dagapp.event_type[]))
ORDER BY event_id
LIMIT %(limit)s;

-- name: event_horizon
-- The newest event, and who may yet commit an older one. A writer locks the table before it is given an id and
-- keeps the lock to its end; the locks are looked at after the snapshot: whoever could bring an older id is seen.
SELECT coalesce((SELECT max(event_id) FROM dagapp.dag_job_events), 0) AS newest,
       ARRAY(
           SELECT DISTINCT virtualtransaction FROM pg_locks
           WHERE locktype = 'relation' AND relation = 'dagapp.dag_job_events'::regclass
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND mode = 'RowExclusiveLock' AND granted
       ) AS writers;

-- name: event_writers_remaining
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'dagapp.dag_job_events'::regclass
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND granted AND virtualtransaction = ANY (%(writers)s::text[])
) AS remaining;

-- name: events_between
SELECT * FROM dagapp.dag_job_events
WHERE event_id > %(after)s AND event_id <= %(up_to)s
  AND (%(job_ids)s::text[] IS NULL OR job_id = ANY (%(job_ids)s::text[]))
ORDER BY event_id
LIMIT %(limit)s;

-- name: last_event_of_types
SELECT * FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_type = ANY (%(types)s::dagapp.event_type[])
ORDER BY event_id DESC
LIMIT 1;
