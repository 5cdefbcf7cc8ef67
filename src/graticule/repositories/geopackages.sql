-- A GeoPackage, which is a database of SQLite.

-- name: distrust_schema
PRAGMA trusted_schema = OFF;

-- name: list_objects
PRAGMA main.table_list;

-- name: list_layers
SELECT table_name FROM gpkg_contents WHERE data_type = 'features' ORDER BY rowid;

-- name: list_columns
SELECT name, hidden FROM pragma_table_xinfo(:table);

-- name: list_texts
-- As bytes, for they need not be characters of UTF-8. The names are the file's own, quoted.
SELECT CAST({column} AS BLOB) FROM {table} WHERE {column} IS NOT NULL;

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
