-- Which versions the items of the catalogue stand for. Each audience has its own view; see schema/serving.sql.

-- name: internal_versions_of_items
SELECT collection_id, item_id, asset_id, version_ordinal, url_mode
FROM unnest(%(collection_ids)s::text[], %(item_ids)s::text[]) AS asked (collection_id, item_id)
JOIN serving.internal_items USING (collection_id, item_id);

-- name: external_versions_of_items
SELECT collection_id, item_id, asset_id, version_ordinal, url_mode
FROM unnest(%(collection_ids)s::text[], %(item_ids)s::text[]) AS asked (collection_id, item_id)
JOIN serving.external_items USING (collection_id, item_id);
