-- The STAC catalogue, which is pgstac's.

-- name: begin_writing
-- Writers go one by one: the first item of a collection makes a table, for which pgstac locks all items and then all
-- collections, and two that do so while they write would wait for each other.
-- A worker's session plans for single rows; here there may be many.
SELECT set_config('plan_cache_mode', 'auto', true), set_config('cpu_operator_cost', '0.0025', true),
       set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
       set_config('enable_mergejoin', 'on', true),
       pg_advisory_xact_lock(hashtextextended('graticule catalogue', 0));

-- name: find_collection
SELECT content FROM pgstac.collections WHERE id = %(collection_id)s;

-- name: write_collection
SELECT pgstac.upsert_collection(%(content)s);

-- name: find_item
SELECT pgstac.get_item(%(item_id)s, %(collection_id)s) AS content;

-- name: hash_item
SELECT dagapp.hash_item(%(collection_id)s, %(item_id)s) AS hash;

-- name: make_room_for_items
-- Make the table of a collection's items, if there is none yet that takes items of this time.
SELECT pgstac.check_partition(
    %(collection_id)s, tstzrange(%(first)s, %(last)s, '[]'), tstzrange(%(first)s, %(last)s, '[]')
);

-- name: base_of_items
-- What all items of a collection have in common is kept once.
SELECT base_item_id, base_item FROM pgstac.current_base_item(%(collection_id)s);

-- name: insert_items
-- The rows that `pgstac.create_items` would make; but what an item has in common with others is left out already,
-- for there it takes a millisecond for each, which is nearly all of the time.
INSERT INTO pgstac.items (id, geometry, collection, datetime, end_datetime, content)
SELECT id, ST_GeomFromGeoJSON(geometry), %(collection_id)s, datetime, datetime, content
FROM jsonb_to_recordset(%(rows)s::jsonb) AS rows (id text, geometry jsonb, datetime timestamptz, content jsonb);

-- name: delete_items
DELETE FROM pgstac.items WHERE collection = %(collection_id)s AND id = ANY (%(item_ids)s);

-- name: delete_items_having
DELETE FROM pgstac.items
WHERE collection = %(collection_id)s AND content -> 'properties' ->> %(property)s = %(value)s;

-- name: coverage_of_collection
-- Where and when its items are. A box across the antimeridian is narrower when longitudes go from 0 to 360.
SELECT ARRAY[ST_XMin(plain), ST_YMin(plain), ST_XMax(plain), ST_YMax(plain)] AS box,
       ARRAY[ST_XMin(shifted), ST_YMin(shifted), ST_XMax(shifted), ST_YMax(shifted)] AS shifted_box,
       first AS start, last AS "end", projections
FROM (
    SELECT ST_Extent(geometry) AS plain, ST_Extent(ST_ShiftLongitude(geometry)) AS shifted,
           min(datetime) AS first, max(end_datetime) AS last,
           coalesce(array_agg(DISTINCT content -> 'properties' ->> 'proj:code')
                        FILTER (WHERE content -> 'properties' ? 'proj:code'), '{}') AS projections
    FROM pgstac.items WHERE collection = %(collection_id)s
) items
WHERE first IS NOT NULL;
