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
