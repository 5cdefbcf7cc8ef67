-- The outputs of versions in service, as `graticule verify` looks at them, and what it has found.

-- name: served_outputs
-- The next ones in the order of their keys, of one asset or of all.
SELECT * FROM serving.outputs
WHERE (asset_id, version_ordinal, audience::text)
      > (%(after_asset_id)s, %(after_version_ordinal)s::int, %(after_audience)s)
  AND (%(asset_id)s::text IS NULL OR asset_id = %(asset_id)s)
ORDER BY asset_id, version_ordinal, audience::text
LIMIT %(limit)s;

-- name: count_served_outputs
SELECT count(*) AS outputs FROM serving.outputs WHERE %(asset_id)s::text IS NULL OR asset_id = %(asset_id)s;

-- name: served_output
SELECT * FROM serving.outputs
WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s AND audience = %(audience)s::dagapp.audience;

-- name: describe_table
-- Whose table it is, what it has besides rows, and the hash of these. That of a copy is the one of its original, which
-- its comment does not repeat.
SELECT pg_get_userbyid(served.relowner) AS owner, obj_description(served.oid, 'pg_class') AS comment,
       dagapp.objection_to_table(served.oid) AS objection,
       substring(obj_description(original.oid, 'pg_class') FROM 'Content: ([0-9a-f]{64})[.]$') AS content_hash
FROM pg_class AS served
JOIN pg_namespace AS zone ON zone.oid = served.relnamespace
LEFT JOIN pg_class AS original
    ON original.relname = served.relname AND original.relnamespace = 'geo'::regnamespace
    AND starts_with(obj_description(original.oid, 'pg_class'), format('Made by job %%s:', %(job_id)s::text))
WHERE zone.nspname = %(table_schema)s AND served.relname = %(table_name)s AND served.relkind = 'r';

-- name: hash_table
SELECT dagapp.hash_table(%(table_schema)s, %(table_name)s) AS hash;

-- name: find_item_of_output
SELECT pgstac.get_item(%(item_id)s, %(collection_id)s) AS content,
       dagapp.hash_item(%(collection_id)s, %(item_id)s) AS hash;

-- name: hashes_of_tiles
-- By the paths of the tiles in their container: those of a copy are the same.
SELECT asset ->> 'href' AS path, right(asset ->> 'file:checksum', 64) AS sha256
FROM pgstac.items, LATERAL (SELECT content -> 'assets' -> 'data' AS asset) AS of_item
WHERE collection = ANY (%(collection_ids)s)
  AND starts_with(asset ->> 'href', %(prefix)s) AND asset ->> 'file:checksum' ~ '^1220[0-9a-f]{64}$';

-- name: record_check
INSERT INTO dagapp.output_checks
    (asset_id, version_ordinal, audience, revision, checked_at, hashed_at, files_mark, faults)
VALUES (%(asset_id)s, %(version_ordinal)s, %(audience)s, %(revision)s, %(checked_at)s, %(hashed_at)s, %(files_mark)s,
        %(faults)s)
ON CONFLICT (asset_id, version_ordinal, audience) DO UPDATE
SET revision = excluded.revision, checked_at = excluded.checked_at, hashed_at = excluded.hashed_at,
    files_mark = excluded.files_mark, faults = excluded.faults;

-- name: forget_withdrawn
-- What was found in outputs that are in service no more.
DELETE FROM dagapp.output_checks AS checked
WHERE NOT EXISTS (
    SELECT FROM serving.outputs AS served
    WHERE served.asset_id = checked.asset_id AND served.version_ordinal = checked.version_ordinal
      AND served.audience = checked.audience
);
