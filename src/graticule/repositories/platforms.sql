-- name: list_platforms
SELECT * FROM dagapp.platforms WHERE is_active OR %(with_inactive)s ORDER BY platform_id;

-- name: add_platform
INSERT INTO dagapp.platforms (platform_id, display_name, description, required_refs, optional_refs, version_ref,
                              source_containers, is_active, four_eyes, created_at, updated_at)
VALUES (%(platform_id)s, %(display_name)s, %(description)s, %(required_refs)s, %(optional_refs)s, %(version_ref)s,
        %(source_containers)s, %(is_active)s, %(four_eyes)s, %(created_at)s, %(updated_at)s)
ON CONFLICT (platform_id) DO NOTHING;

-- name: hold_platform
-- An asset that is added refers to its platform and waits for this lock; one that was added before is seen after it.
SELECT * FROM dagapp.platforms WHERE platform_id = %(platform_id)s FOR UPDATE;

-- name: keep_platform
-- What identifies its datasets stays as it is until the asset is there that was identified by it.
SELECT * FROM dagapp.platforms WHERE platform_id = %(platform_id)s FOR KEY SHARE;

-- name: change_platform
UPDATE dagapp.platforms
SET display_name = %(display_name)s, description = %(description)s, required_refs = %(required_refs)s,
    optional_refs = %(optional_refs)s, version_ref = %(version_ref)s,
    source_containers = %(source_containers)s, is_active = %(is_active)s, four_eyes = %(four_eyes)s,
    updated_at = %(updated_at)s
WHERE platform_id = %(platform_id)s
RETURNING *;

-- name: platform_has_assets
SELECT EXISTS (SELECT FROM dagapp.geospatial_assets WHERE platform_id = %(platform_id)s) AS has_assets;
