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
