-- name: publish_layer
INSERT INTO dagapp.layer_catalog (asset_id, version_ordinal, entry, is_external, published_at, published_by)
VALUES (%(asset_id)s, %(version_ordinal)s, %(entry)s, %(is_external)s, %(published_at)s, %(published_by)s)
ON CONFLICT (asset_id, version_ordinal) DO UPDATE
SET entry = excluded.entry, is_external = excluded.is_external,
    published_at = excluded.published_at, published_by = excluded.published_by;

-- name: layers_of_asset
SELECT * FROM dagapp.layer_catalog WHERE asset_id = %(asset_id)s ORDER BY version_ordinal;

-- name: withdraw_layer
DELETE FROM dagapp.layer_catalog WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s;

-- name: columns_of_table
-- Of a table of features: what the source gave it, and how that is called there. The names are the database's own, which
-- everybody may read; the rows are not.
SELECT attribute.attname AS name, format_type(attribute.atttypid, NULL) AS type,
       coalesce(nullif(col_description(class.oid, attribute.attnum), ''), attribute.attname) AS field
FROM pg_namespace AS namespace
JOIN pg_class AS class ON class.relnamespace = namespace.oid
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
WHERE namespace.nspname = 'geo' AND class.relname = %(table_name)s AND attribute.attname NOT IN ('fid', 'geom')
ORDER BY attribute.attnum;
