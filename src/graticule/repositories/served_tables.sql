-- Tables of features as they are served: only read. Names and conditions in braces are composed; the conditions are
-- made by graticule.serve.features, with what a caller gave as numbered parameters.

-- name: describe
-- The columns of one table in their order.
SELECT attribute.attname AS name, format_type(attribute.atttypid, NULL) AS type,
       coalesce(key.indkey[0] = attribute.attnum, false) AS is_key,
       geometry.type AS geometry_type, geometry.srid,
       nullif(col_description(class.oid, attribute.attnum), '') AS comment
FROM pg_namespace AS namespace
JOIN pg_class AS class ON class.relnamespace = namespace.oid
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
LEFT JOIN pg_index AS key ON key.indrelid = class.oid AND key.indisprimary AND key.indnkeyatts = 1
LEFT JOIN LATERAL (
    SELECT postgis_typmod_type(attribute.atttypmod) AS type, postgis_typmod_srid(attribute.atttypmod) AS srid
) AS geometry ON attribute.atttypid = 'geometry'::regtype
WHERE namespace.nspname = %(schema)s AND class.relname = %(table)s
ORDER BY attribute.attnum;

-- name: extent
-- Where all shapes of a table are, in its own projection; it reads them all.
SELECT ST_XMin(box) AS west, ST_YMin(box) AS south, ST_XMax(box) AS east, ST_YMax(box) AS north
FROM (SELECT ST_Extent({geometry}) AS box FROM {table}) AS whole;

-- name: known_srids
-- The coordinate reference systems of EPSG that PostGIS can transform to.
SELECT srid FROM spatial_ref_sys WHERE auth_name = 'EPSG' AND auth_srid = srid;

-- name: count
SELECT count(*) FROM {table} WHERE {condition};

-- name: written
-- Rows as they are answered, and the bytes of each with all before it. They end before the one with which there would be
-- too many bytes; the first is always there. What the table keeps of a row is looked at before that is read: the database
-- knows the size of a large value without it. What is written can be larger, since it was packed, so it is measured too.
-- A window without an order takes the rows as they come, which is the order of the query below it; that has an offset of
-- nothing, or it would be made part of the one above it, and the columns would be written twice.
SELECT served_row, bytes
FROM (
    SELECT served_row, row_number() OVER so_far AS place,
           CAST(sum(greatest(pg_column_size(served_row), {unpacked_bytes})) OVER so_far AS bigint) AS bytes
    FROM (
        SELECT {columns}
        FROM (
            SELECT *, row_number() OVER so_far AS served_place, sum({stored_bytes}) OVER so_far AS served_bytes
            FROM (
                SELECT * FROM {table} WHERE {condition} ORDER BY {order} LIMIT {limit} OFFSET {offset}
            ) AS asked
            WINDOW so_far AS (ORDER BY {order} ROWS UNBOUNDED PRECEDING)
        ) AS stored
        WHERE served_place = 1 OR served_bytes <= {most_read}
        OFFSET 0
    ) AS served_row
    WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)
) AS measured
WHERE place = 1 OR bytes <= {most_written};

-- name: page
SELECT (served_row).*, bytes AS served_bytes FROM ({written}) AS page;

-- name: tile
-- The order makes a tile of too many features the same each time. Those beyond its edges are not counted.
SELECT ST_AsMVT(served_row, {layer}, {resolution}, {geometry}) AS content, count(*) AS rows,
       count(*) FILTER (WHERE (served_row).{shape} && ST_MakeEnvelope(0, 0, {resolution}, {resolution})) AS shown
FROM ({written}) AS written;

-- name: count_some
SELECT count(*) FROM (SELECT FROM {table} WHERE {condition} LIMIT {limit}) AS asked;

-- name: find_overview
-- Whether there are prepared tiles of the table as it is: an older release replaces a table without them. They are of the
-- same owner: a worker could make others beside a table that is not its own.
SELECT EXISTS (
    SELECT FROM pg_class AS live JOIN pg_class AS overview ON overview.relowner = live.relowner
    WHERE live.oid = to_regclass(%(table)s) AND overview.oid = to_regclass(%(overview)s) AND overview.relkind = 'r'
      AND obj_description(overview.oid, 'pg_class') = 'Tiles. ' || obj_description(live.oid, 'pg_class')
);

-- name: overview_zoom
SELECT max(z)::int FROM {overview};

-- name: prepared_tile
SELECT mvt, shown, merged FROM {overview} WHERE z = $1 AND x = $2 AND y = $3;
