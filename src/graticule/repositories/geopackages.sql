-- A GeoPackage, which is a database of SQLite.

-- name: distrust_schema
PRAGMA trusted_schema = OFF;

-- name: list_objects
PRAGMA main.table_list;

-- name: list_layers
-- GDAL makes the one that is left out where there would be none.
SELECT table_name FROM gpkg_contents
WHERE data_type = 'features' AND table_name <> 'ogr_empty_table' ORDER BY rowid;

-- name: list_others
SELECT table_name, data_type FROM gpkg_contents WHERE data_type <> 'features' ORDER BY rowid;

-- name: has_rows
-- The name is the file's own, quoted.
SELECT EXISTS (SELECT 1 FROM {table});

-- name: list_columns
SELECT name, hidden FROM pragma_table_xinfo(:table);

-- name: list_crs_texts
-- As bytes, for they need not be characters of UTF-8. The name of the column is the file's own, quoted.
SELECT srs_id, organization, organization_coordsys_id, CAST({column} AS BLOB)
FROM gpkg_spatial_ref_sys WHERE {column} IS NOT NULL;

-- name: list_keys
SELECT name, type FROM pragma_table_xinfo(:table) WHERE pk > 0;

-- name: find_key
-- The key that comes so many rows after another. The names are the file's own, quoted.
SELECT {key} FROM {table} WHERE {key} >= :begin ORDER BY {key} LIMIT 1 OFFSET :rows;

-- name: count_rest
SELECT count(*), max({key}) FROM {table} WHERE {key} >= :begin;

-- name: find_zones
-- A zone is a Z or a sign after the first colon. Each of the two ends at the first that it finds.
-- The names are the file's own, quoted.
SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} GLOB '*:*[Z+-]*'),
       EXISTS (SELECT 1 FROM {table} WHERE {column} NOT GLOB '*:*[Z+-]*');

-- name: shadow_crs_table
-- For one connection, a temporary table takes the place of the file's own.
CREATE TEMP TABLE gpkg_spatial_ref_sys AS SELECT * FROM main.gpkg_spatial_ref_sys;

-- name: replace_crs_text
-- The name of the column and the text are quoted.
UPDATE temp.gpkg_spatial_ref_sys SET {column} = {text} WHERE srs_id = {srs_id};
