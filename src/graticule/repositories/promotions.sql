-- Whose files stand below a prefix: one registration at a time decides it.

-- name: hold_prefix
-- To the end of the transaction. A holder that is stopped in the middle loses it: its session ends when it has said
-- nothing for a minute.
SELECT pg_advisory_xact_lock(hashtextextended('graticule prefix ' || %(prefix)s, 0));

-- name: time_of_holding
-- After the lock, so that of two holders the later one has the later time.
SELECT clock_timestamp() AS now;

-- name: is_held
SELECT 1;

-- name: find_promoted_item
SELECT pgstac.get_item(%(item_id)s, %(collection_id)s) AS content;
