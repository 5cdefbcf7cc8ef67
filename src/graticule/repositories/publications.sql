-- Copies for the public: who makes or removes them now, tables of features, and entries of the catalogue.

-- name: hold_version
-- One at a time makes or removes the copies of a version, to the end of its transaction. A holder that is stopped in the
-- middle loses it: its session ends when it has said nothing for a minute.
SELECT pg_try_advisory_xact_lock(
    hashtextextended('graticule publication ' || %(asset_id)s || ' ' || %(version_ordinal)s::int, 0)
) AS is_held;

-- name: time_of_holding
-- After the lock, so that of two holders the later one has the later time.
SELECT clock_timestamp() AS now;

-- name: why_unwanted
-- Why a job must not make or remove copies of a version: no decision asks for that, or not any more.
SELECT CASE WHEN job.job_id IS NULL THEN 'it was not started by a decision on this version'
            WHEN job.status NOT IN ('pending', 'running') OR job.cancel_requested_at IS NOT NULL THEN 'it was cancelled'
            WHEN later.job_id IS NOT NULL THEN 'a later job took its place' END AS reason
FROM (VALUES (%(job_id)s::text)) AS asked (job_id)
LEFT JOIN dagapp.dag_jobs AS job
    ON job.job_id = asked.job_id AND job.asset_id = %(asset_id)s AND job.purpose = %(purpose)s::dagapp.job_purpose
    AND (job.version_ordinal = %(version_ordinal)s::int OR job.purpose = 'unpublish')
LEFT JOIN LATERAL (
    SELECT other.job_id FROM dagapp.dag_jobs AS other
    WHERE other.asset_id = job.asset_id AND (other.created_at, other.job_id) > (job.created_at, job.job_id)
      AND (other.version_ordinal = %(version_ordinal)s::int AND other.purpose IN ('export', 'reversal')
           OR other.purpose = 'unpublish' AND job.purpose <> 'unpublish')
    LIMIT 1
) AS later ON true;

-- name: runs_of_exports
-- The runs in Azure Data Factory of exports that did not come to their end: they may still copy.
SELECT kept.data -> 'factory' ->> 'run_id' AS run_id
FROM dagapp.dag_jobs AS job
JOIN dagapp.dag_checkpoints AS kept ON kept.job_id = job.job_id
WHERE job.asset_id = %(asset_id)s AND job.version_ordinal = %(version_ordinal)s AND job.purpose = 'export'
  AND job.status <> 'completed' AND kept.data -> 'factory' ->> 'run_id' IS NOT NULL
ORDER BY job.created_at;

-- name: names_its_outputs
-- Whether what a job is about to publish is what the decision that started it named, no more and no less.
SELECT jsonb_strip_nulls(%(outputs)s) = (
    SELECT coalesce(jsonb_object_agg(name, value), '{}') FROM jsonb_each(jsonb_strip_nulls(input_params)) AS given (name, value)
    WHERE %(outputs)s ? name
) AS is_named
FROM dagapp.dag_jobs WHERE job_id = %(job_id)s;

-- name: find_original
SELECT pgstac.get_item(%(item_id)s, %(collection_id)s) AS content;

-- name: is_original_intact
-- An item without a recorded hash is taken as it is.
SELECT coalesce(dagapp.recorded_item_hash(%(job_id)s) = dagapp.hash_item(%(collection_id)s, %(item_id)s), true) AS intact;

-- name: make_copy
-- The functions that make and drop copies are the schema's: see schema/outputs.sql.
SELECT dagapp.make_copy(%(job_id)s, %(name)s) AS size;

-- name: drop_copy
SELECT dagapp.drop_copy(%(job_id)s, %(name)s);

-- name: copies_of_version
-- By their comments: names are cut where they are long. Of all revisions, or of all but one.
SELECT copy.relname AS name
FROM pg_class AS copy
WHERE copy.relnamespace = to_regnamespace('external') AND copy.relkind = 'r'
  AND starts_with(
      obj_description(copy.oid, 'pg_class'),
      format('Public copy of asset %%s, version %%s, revision ', %(asset_id)s::text, %(version_ordinal)s::int)
  )
  AND (%(but)s::int IS NULL OR NOT starts_with(
      obj_description(copy.oid, 'pg_class'),
      format(
          'Public copy of asset %%s, version %%s, revision %%s,',
          %(asset_id)s::text, %(version_ordinal)s::int, %(but)s::int
      )
  ))
ORDER BY copy.relname;

-- name: collections_of
-- Those of these names, and those whose names go on from there: the tiles of an output may have one of their own.
SELECT id FROM pgstac.collections
WHERE id = ANY (%(collection_ids)s)
   OR %(with_tiles)s AND EXISTS (SELECT FROM unnest(%(collection_ids)s::text[]) AS name WHERE starts_with(id, name || '-'))
ORDER BY id;

-- name: items_of_version
SELECT collection, id FROM pgstac.items
WHERE collection = ANY (%(collection_ids)s)
  AND (content -> 'properties' ->> 'platform:asset_id' = %(asset_id)s
       AND content -> 'properties' ->> 'platform:version_ordinal' = %(version_ordinal)s::int::text
       OR id = %(item_id)s)
  AND (%(but)s::int IS NULL OR content -> 'properties' ->> 'platform:revision' IS DISTINCT FROM %(but)s::int::text)
ORDER BY collection, id;

-- name: collection_to_delete
-- One that is there and has no items. A deployment that is older than this program does not allow to delete it; an empty
-- collection is shown to nobody.
SELECT id FROM pgstac.collections
WHERE id = %(collection_id)s AND NOT EXISTS (SELECT FROM pgstac.items WHERE collection = %(collection_id)s)
  AND has_function_privilege(to_regprocedure('dagapp.delete_collection(text)'), 'EXECUTE');

-- name: delete_collection
-- It drops the table of the items, so nothing else may be asked of that at the same time.
SELECT dagapp.delete_collection(%(collection_id)s);
