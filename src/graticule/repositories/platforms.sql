-- name: list_platforms
SELECT * FROM dagapp.platforms WHERE is_active OR %(with_inactive)s ORDER BY platform_id;

-- name: set_platform_active
UPDATE dagapp.platforms SET is_active = %(is_active)s, updated_at = %(now)s
WHERE platform_id = %(platform_id)s
RETURNING *;
