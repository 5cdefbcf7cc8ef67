-- Overviews: vector tiles made in advance for those places of a table that hold more features than a tile can be made of
-- while someone waits. Names in braces are composed as identifiers.
--
-- A feature is drawn itself in the tiles where it is two pixels wide or high. In the others it is merged: burnt into a
-- grid of 512 x 512 pixels, once, at the highest zoom at which it is that small. Lower zooms are made from higher ones.
-- A row of eight pixels is a bit mask, with the number of features whose middle is in it. Positions are parts of the
-- world: 0 is the west or the north of the Mercator square, 1 the east or the south.

-- name: lock_overview
-- The staging table stays until its overview is made, and of two attempts to make it the second finds it made.
SELECT pg_advisory_xact_lock_shared(hashtextextended('graticule staging ' || %(job_id)s, 0)),
       pg_advisory_xact_lock(hashtextextended('graticule overview ' || %(job_id)s, 0)),
       set_config('statement_timeout', %(timeout)s, true), set_config('work_mem', %(memory)s, true),
       set_config('jit', 'off', true);  -- to compile a statement takes longer than to make a tile

-- name: measure_rows
-- How many rows there are, and how many bytes of a tile the attributes of one take.
SELECT count(*) AS row_count, coalesce(avg({attribute_bytes}), 0)::float8 AS attribute_bytes,
       coalesce(sum(pg_column_size({geometry})), 0)::bigint AS geometry_bytes,
       coalesce(min({feature_id}), 0) AS first, coalesce(max({feature_id}), 0) AS last
FROM {table};

-- name: create_boxes
-- Where each feature is. `merge_zoom` is the highest zoom at which it is smaller than two pixels, below zero for none.
CREATE UNLOGGED TABLE {boxes} AS
SELECT fid, dimension, u0, v0, u1, v1, size, bytes, 0 AS x, 0 AS y, true AS is_inside,
       CASE WHEN size > 0 THEN ceil(-8 - ln(size) / ln(2.0::float8))::int - 1 ELSE {never} END AS merge_zoom
FROM (
    SELECT fid, dimension, bytes, least(greatest(u0, 0), {edge}) AS u0, least(greatest(v0, 0), {edge}) AS v0,
           least(greatest(u1, 0), {edge}) AS u1, least(greatest(v1, 0), {edge}) AS v1,
           greatest(u1 - u0, v1 - v0) AS size
    FROM (
        SELECT fid, dimension, bytes, ST_XMin(box) / {world} + 0.5 AS u0, ST_XMax(box) / {world} + 0.5 AS u1,
               0.5 - ST_YMax(box) / {world} AS v0, 0.5 - ST_YMin(box) / {world} AS v1
        FROM (
            SELECT {feature_id} AS fid, ST_Dimension({geometry})::smallint AS dimension,
                   pg_column_size({geometry}) AS bytes, Box2D(ST_Transform({geometry}, 3857)) AS box
            FROM {table}
            WHERE NOT ST_IsEmpty({geometry})
            OFFSET 0
        ) AS projected
        OFFSET 0
    ) AS placed
    WHERE u1 >= 0 AND u0 <= 1 AND v1 >= 0 AND v0 <= 1
    OFFSET 0
) AS measured;

-- name: index_boxes
CREATE UNIQUE INDEX ON {boxes} (fid);

-- name: create_tiles
CREATE TABLE {overview} (
    z smallint NOT NULL, x integer NOT NULL, y integer NOT NULL,
    mvt bytea, shown bigint, merged bigint,
    PRIMARY KEY (z, x, y)
);

-- name: store_plainly
-- Who reads a tile compresses it in another way.
ALTER TABLE {overview} ALTER mvt SET STORAGE EXTERNAL;

-- name: find_dense
-- Those tiles of a zoom that hold too much to be made while someone waits.
INSERT INTO {overview} (z, x, y)
SELECT %(zoom)s, x, y FROM {members}
GROUP BY x, y
HAVING count(*) > %(max_features)s OR sum(bytes) > %(max_bytes)s AND %(zoom)s <= %(max_zoom_by_bytes)s;

-- name: count_dense
SELECT count(*) AS found FROM {overview} WHERE z = %(zoom)s;

-- name: create_members
-- The features of the four tiles below each dense one, and of what a tile draws beyond its edges.
CREATE UNLOGGED TABLE {children} AS
SELECT fid, dimension, u0, v0, u1, v1, size, bytes, merge_zoom, child.x, child.y,
       u0 * {tiles} < child.x + 1 AND u1 * {tiles} >= child.x
       AND v0 * {tiles} < child.y + 1 AND v1 * {tiles} >= child.y AS is_inside
FROM {members} AS parent
JOIN {overview} AS dense ON dense.z = {zoom} AND dense.x = parent.x AND dense.y = parent.y
CROSS JOIN (VALUES (0, 0), (0, 1), (1, 0), (1, 1)) AS quarter (x, y)
CROSS JOIN LATERAL (SELECT 2 * parent.x + quarter.x AS x, 2 * parent.y + quarter.y AS y) AS child
WHERE u0 * {tiles} < child.x + 1 + {margin} AND u1 * {tiles} >= child.x - {margin}
  AND v0 * {tiles} < child.y + 1 + {margin} AND v1 * {tiles} >= child.y - {margin}
LIMIT {most};

-- name: count_members
SELECT count(*) AS found FROM {members};

-- name: index_members
CREATE INDEX ON {members} (x, y, size DESC, fid) WHERE merge_zoom < {zoom} AND is_inside;

-- name: create_burnt
CREATE UNLOGGED TABLE {burnt} (zoom smallint, dimension smallint, x integer, y integer, mask integer, merged bigint);

-- name: burn
-- The pixels that features touch. One whose box is in one pixel touches that, and its shape need not be looked at. Each is
-- counted in one of its pixels: in that of its middle, if it touches that.
INSERT INTO {burnt}
SELECT zoom, dimension, x >> 3, y, bit_or(1 << (x & 7)), sum((place = 1)::int)
FROM (
    SELECT zoom, dimension, x, y,
           row_number() OVER (PARTITION BY fid ORDER BY x <> middle_x OR y <> middle_y) AS place
    FROM (
        SELECT *, floor(u0 * pixels)::int AS x0, floor(u1 * pixels)::int AS x1,
               floor(v0 * pixels)::int AS y0, floor(v1 * pixels)::int AS y1,
               floor((u0 + u1) / 2 * pixels)::int AS middle_x, floor((v0 + v1) / 2 * pixels)::int AS middle_y
        FROM (
            SELECT box.fid, box.dimension, merging.zoom, (512 << merging.zoom)::float8 AS pixels,
                   box.u0, box.v0, box.u1, box.v1,
                   CASE WHEN box.size > 0 THEN ST_Transform(feature.{geometry}, 3857) END AS shape
            FROM {boxes} AS box
            JOIN {table} AS feature ON feature.{feature_id} = box.fid
            CROSS JOIN LATERAL (SELECT least(box.merge_zoom, {zoom})) AS merging (zoom)
            WHERE box.fid >= %(first)s AND box.fid < %(after)s AND box.merge_zoom >= 0
            OFFSET 0
        ) AS placed
        OFFSET 0
    ) AS spread
    CROSS JOIN LATERAL generate_series(x0, x1) AS x
    CROSS JOIN LATERAL generate_series(y0, y1) AS y
    WHERE (x0 = x1 AND y0 = y1) OR ST_Intersects(shape, {pixel})
) AS touched
GROUP BY zoom, dimension, x >> 3, y;

-- name: pixel
ST_MakeEnvelope(
    (x / pixels - 0.5) * {world}, (0.5 - (y + 1) / pixels) * {world},
    ((x + 1) / pixels - 0.5) * {world}, (0.5 - y / pixels) * {world}, 3857
)

-- name: create_runs
-- Where the pixels of each mask begin and end: each by itself for points, those beside each other for the others.
-- A table, which the planner knows the size of: it would compare each row of pixels with each run.
CREATE UNLOGGED TABLE {runs} AS
SELECT dimension::smallint, mask, a, b, min(a) OVER (PARTITION BY dimension, mask) AS first_a
FROM generate_series(0, 2) AS dimension, generate_series(1, 255) AS mask,
     generate_series(0, 7) AS a, generate_series(1, 8) AS b
WHERE b > a AND mask & ((1 << b) - (1 << a)) = (1 << b) - (1 << a)
  AND (dimension = 0 AND b = a + 1
       OR dimension > 0 AND (a = 0 OR mask & (1 << (a - 1)) = 0) AND (b = 8 OR mask & (1 << b) = 0));

-- name: index_runs
CREATE INDEX ON {runs} (dimension, mask);

-- name: create_level
-- All that is merged at a zoom: what is burnt there, and what was merged above it, at half its size.
CREATE UNLOGGED TABLE {level} AS
SELECT dimension, x, y, bit_or(mask) AS mask, sum(merged)::bigint AS merged
FROM (
    SELECT dimension, x, y, mask, merged FROM {burnt} WHERE zoom = {zoom}
    {and_above}
) AS merging
GROUP BY dimension, x, y;

-- name: and_above
UNION ALL
SELECT dimension, x >> 1, y >> 1,
       ((half & 1) | ((half >> 1) & 2) | ((half >> 2) & 4) | ((half >> 3) & 8)) << (4 * (x & 1)), merged
FROM (SELECT *, mask | (mask >> 1) AS half FROM {above} OFFSET 0) AS above

-- name: index_level
CREATE INDEX ON {level} ((x >> 6), (y >> 9));

-- name: dense_tiles
SELECT x, y FROM {overview} WHERE z = %(zoom)s ORDER BY x, y;

-- name: fill_tile
-- One tile: the largest features themselves, and all others merged, a shape for each eight by eight pixels.
-- Rows of pixels of one pattern below each other become one. A little room is left around: no shape touches a pixel that
-- is not its own.
WITH drawn AS MATERIALIZED (
    SELECT {attributes} CAST(NULL AS bigint) AS {count}, {shape} AS geom
    FROM (
        SELECT fid AS member FROM {members}
        WHERE x = {x} AND y = {y} AND merge_zoom < {zoom} AND is_inside
        ORDER BY size DESC, fid LIMIT {limit}
    ) AS largest
    JOIN {table} AS feature ON feature.{feature_id} = largest.member
), merging AS (
    SELECT dimension, x, y, mask, merged FROM {level} WHERE x >> 6 = {x} AND y >> 9 = {y}
    UNION ALL
    {left_out}
), lines AS MATERIALIZED (
    SELECT dimension, x & 63 AS x, y & 511 AS y, bit_or(mask) AS mask, sum(merged)::bigint AS merged
    FROM merging GROUP BY dimension, x, y
), bands AS (
    SELECT dimension, x, mask, min(y) AS y0, max(y) + 1 AS y1, sum(merged) AS merged
    FROM (
        SELECT *, y - row_number() OVER (PARTITION BY dimension, x, y >> 3, mask ORDER BY y) AS band FROM lines
    ) AS numbered
    GROUP BY dimension, x, y >> 3, mask, CASE WHEN dimension = 2 THEN band ELSE y END
), blocks AS (
    SELECT sum(bands.merged) FILTER (WHERE a = first_a)::bigint AS merged,
           ST_Collect(CASE dimension
               WHEN 2 THEN ST_Reverse(ST_MakeEnvelope(
                   (8 * x + a) * {cell} + 1, y0 * {cell} + 1, (8 * x + b) * {cell} - 1, y1 * {cell} - 1
               ))
               WHEN 1 THEN ST_MakeLine(
                   ST_MakePoint((8 * x + a) * {cell} + 1, y0 * {cell} + {cell} / 2),
                   ST_MakePoint((8 * x + b) * {cell} - 1, y0 * {cell} + {cell} / 2)
               )
               ELSE ST_MakePoint((8 * x + a) * {cell} + {cell} / 2, y0 * {cell} + {cell} / 2)
           END ORDER BY y0, a) AS geom
    FROM bands JOIN {runs} USING (dimension, mask)
    GROUP BY dimension, x, y0 >> 3
), written AS (
    SELECT * FROM drawn WHERE geom IS NOT NULL
    UNION ALL
    SELECT {no_attributes} merged, geom FROM blocks
)
UPDATE {overview}
SET mvt = (SELECT ST_AsMVT("graticule:row", {layer}, {resolution}, 'geom') FROM written AS "graticule:row"),
    shown = (SELECT count(*) FROM drawn WHERE geom IS NOT NULL),
    merged = (SELECT coalesce(sum(merged), 0) FROM lines)
WHERE z = {zoom} AND x = {x} AND y = {y}
RETURNING octet_length(mvt) AS bytes, shown;

-- name: left_out
-- Features that are large enough to be drawn themselves, and for which there is no room. Of the largest of them only the
-- middle is kept: so many of them lie upon each other that those which are drawn cover what they cover.
SELECT dimension, x >> 3, y, bit_or(1 << (x & 7)), sum((x = middle_x AND y = middle_y)::int)::bigint
FROM (
    SELECT *, CASE WHEN is_small THEN greatest(floor(u0 * pixels)::int, {x} << 9) ELSE middle_x END AS x0,
           CASE WHEN is_small THEN least(floor(u1 * pixels)::int, ({x} << 9) + 511) ELSE middle_x END AS x1,
           CASE WHEN is_small THEN greatest(floor(v0 * pixels)::int, {y} << 9) ELSE middle_y END AS y0,
           CASE WHEN is_small THEN least(floor(v1 * pixels)::int, ({y} << 9) + 511) ELSE middle_y END AS y1
    FROM (
        SELECT smaller.*, ST_Transform(feature.{geometry}, 3857) AS shape
        FROM (
            SELECT fid, dimension, u0, v0, u1, v1, pixels, size * pixels <= {small} AS is_small,
                   least(greatest(floor((u0 + u1) / 2 * pixels)::int, {x} << 9), ({x} << 9) + 511) AS middle_x,
                   least(greatest(floor((v0 + v1) / 2 * pixels)::int, {y} << 9), ({y} << 9) + 511) AS middle_y
            FROM {members} CROSS JOIN (SELECT (512 << {zoom})::float8) AS grid (pixels)
            WHERE x = {x} AND y = {y} AND merge_zoom < {zoom} AND is_inside
            ORDER BY size DESC, fid OFFSET {limit}
        ) AS smaller
        JOIN {table} AS feature ON feature.{feature_id} = smaller.fid
        OFFSET 0
    ) AS placed
    OFFSET 0
) AS spread
CROSS JOIN LATERAL generate_series(x0, x1) AS x
CROSS JOIN LATERAL generate_series(y0, y1) AS y
WHERE (x = middle_x AND y = middle_y) OR ST_Intersects(shape, {pixel})
GROUP BY dimension, x >> 3, y

-- name: drop
DROP TABLE IF EXISTS {table};

-- name: analyze
ANALYZE {table};
