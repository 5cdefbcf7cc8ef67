-- Tables of features, in the schema "geo". Names in braces are composed as identifiers.
--
-- A job fills a staging table of its own, chunk by chunk, and keeps a ledger of those that are in it. Both have a comment
-- that names the job. When all chunks are there, the staging table takes the place of the live one.

-- name: hold_lease
-- A worker that lost the task must write nothing: the lease is held until this transaction ends.
SELECT task_id FROM dagapp.dag_tasks
WHERE task_id = %(task_id)s AND delivery_count = %(delivery_count)s AND status = 'leased'
FOR UPDATE;

-- name: lock_staging
-- Of two attempts to make or publish the staging table of a job, one waits for the other.
SELECT pg_advisory_xact_lock(hashtextextended('graticule staging ' || %(job_id)s, 0));

-- name: lock_index
-- The staging table stays until its index is made, and of two attempts to make one index the second finds it made.
SELECT pg_advisory_xact_lock_shared(hashtextextended('graticule staging ' || %(job_id)s, 0)),
       pg_advisory_xact_lock(hashtextextended('graticule index ' || %(name)s, 0));

-- name: find_tables
SELECT to_regclass(%(staging)s) IS NOT NULL AND to_regclass(%(ledger)s) IS NOT NULL AS is_staged,
       obj_description(to_regclass(%(staging)s), 'pg_class') AS staging_comment,
       to_regclass(%(staging)s)::oid AS staging_oid,
       to_regclass(%(overview)s) IS NOT NULL AS has_overview,
       obj_description(to_regclass(%(live)s), 'pg_class') AS live_comment;

-- name: drop_table
DROP TABLE IF EXISTS {table};

-- name: create_staging
-- What is filled at once and indexed then needs no vacuum meanwhile, which would be in the way of the index.
CREATE TABLE {table} ({feature_id} bigint NOT NULL, {columns}) WITH (autovacuum_enabled = off);

-- name: create_ledger
CREATE TABLE {ledger} (chunk integer PRIMARY KEY, row_count bigint NOT NULL, result jsonb NOT NULL);

-- name: hide
-- The schema's default privileges let the service read each table from its first moment; what is not whole is not for it.
REVOKE ALL ON {table} FROM graticule_serve_internal;

-- name: comment
COMMENT ON TABLE {table} IS {comment};

-- name: find_columns
SELECT coalesce(array_agg(attname::text ORDER BY attnum), '{}') AS names
FROM pg_attribute
WHERE attrelid = to_regclass(%(staging)s) AND attnum > 0 AND NOT attisdropped;

-- name: find_chunk
SELECT result FROM {ledger} WHERE chunk = %(chunk)s;

-- name: allow_for_reading
-- The next rows may take a while to be prepared. A worker that is stopped in the middle keeps others from publishing
-- until then.
SELECT set_config('idle_in_transaction_session_timeout', %(timeout)s, true),
       set_config('statement_timeout', %(timeout)s, true);

-- name: copy_rows
COPY {table} ({columns}) FROM STDIN (FORMAT binary);

-- name: note_chunk
INSERT INTO {ledger} (chunk, row_count, result) VALUES (%(chunk)s, %(row_count)s, %(result)s);

-- name: read_ledger
SELECT coalesce(array_agg(chunk ORDER BY chunk), '{{}}') AS chunks, coalesce(sum(row_count), 0)::bigint AS row_count
FROM {ledger};

-- name: find_abandoned
-- A job that failed may be resumed for some days, and then needs what it has loaded. Live tables have another comment.
SELECT array_agg(staging.relname::text ORDER BY staging.relname) AS names
FROM pg_class AS staging,
     substring(obj_description(staging.oid, 'pg_class') FROM '^Staging of job ([^ ,]+)[,.]') AS owner (job_id)
WHERE staging.relnamespace = 'geo'::regnamespace AND staging.relkind = 'r' AND owner.job_id IS NOT NULL
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_jobs AS job
      WHERE job.job_id = owner.job_id AND (job.ended_at IS NULL OR job.ended_at > now() - interval '7 days')
  )
GROUP BY owner.job_id;

-- name: index_key
CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {table} ({column});

-- name: index_geometry
CREATE INDEX IF NOT EXISTS {index} ON {table} USING gist ({column});

-- name: add_primary_key
-- The index takes the name of the constraint.
ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY USING INDEX {index};

-- name: rename_index
ALTER INDEX {index} RENAME TO {name};

-- name: allow_vacuum
ALTER TABLE {table} RESET (autovacuum_enabled);

-- name: comment_on_column
COMMENT ON COLUMN {column} IS {comment};

-- name: analyze
ANALYZE {table};

-- name: wait_briefly
-- Whoever comes after one that waits for a table waits, too.
SELECT set_config('lock_timeout', %(timeout)s, true);

-- name: wait_as_usual
-- What a savepoint has set would hold until the transaction ends.
SET LOCAL lock_timeout TO DEFAULT;

-- name: lock_name
-- A table that is not there yet cannot be locked, but its name can.
SELECT pg_advisory_xact_lock(hashtextextended('graticule table ' || %(name)s, 0));

-- name: hash_table
SELECT dagapp.hash_rows('geo', %(name)s) AS hash;

-- name: live_hash
SELECT substring(obj_description(to_regclass(%(live)s), 'pg_class') FROM 'Content: ([0-9a-f]{64})[.]$') AS hash;

-- name: promote_table
-- The staging table takes the name, and what has it now goes; the database refuses a name that is not the job's.
SELECT dagapp.promote_table(%(job_id)s, %(name)s);

-- name: keep_in_place
-- Nobody puts another table in its place until the transaction ends; whoever reads it goes on.
LOCK TABLE {table} IN ACCESS SHARE MODE;
