-- A GeoPackage, which is a database of SQLite.

-- name: distrust_schema
PRAGMA trusted_schema = OFF;

-- name: list_objects
PRAGMA main.table_list;

-- name: list_layers
SELECT table_name FROM gpkg_contents WHERE data_type = 'features' ORDER BY rowid;

-- name: list_columns
SELECT hidden FROM pragma_table_xinfo(:table);
