-- name: hold_lock
SELECT pg_advisory_lock(%(lock_key)s);
