-- What is in service, through the views of one audience. The view's name in braces is composed as an identifier.

-- name: served_latest
-- The highest ordinal in service; when none is, the highest that was.
SELECT * FROM {view} WHERE asset_id = %(asset_id)s ORDER BY is_served DESC, version_ordinal DESC LIMIT 1;

-- name: served_version
SELECT * FROM {view} WHERE asset_id = %(asset_id)s AND version_ordinal = %(version_ordinal)s;

-- name: served_nothing
-- Whether the view is there.
SELECT asset_id FROM {view} LIMIT 0;
