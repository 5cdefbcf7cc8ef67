-- name: bound_transaction
-- The server itself ends a statement that takes too long, also when nobody waits for it any more.
SELECT set_config('statement_timeout', %(milliseconds)s::int::text, true);
