-- name: due_callbacks
SELECT * FROM dagapp.dag_callbacks
WHERE delivered_at IS NULL AND given_up_at IS NULL AND next_attempt_at <= %(now)s
ORDER BY next_attempt_at
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED;
