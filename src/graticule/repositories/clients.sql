-- name: find_client_by_key_hash
SELECT * FROM dagapp.api_clients WHERE key_hash = %(key_hash)s AND is_active;

-- name: list_clients
SELECT * FROM dagapp.api_clients ORDER BY client_id;

-- name: set_client_key
UPDATE dagapp.api_clients SET key_hash = %(key_hash)s, updated_at = %(now)s
WHERE client_id = %(client_id)s
RETURNING *;

-- name: set_client_active
-- No row when the client is so already.
UPDATE dagapp.api_clients SET is_active = %(is_active)s, updated_at = %(now)s
WHERE client_id = %(client_id)s AND is_active <> %(is_active)s
RETURNING *;

-- name: note_clients_used
-- Many processes tell of the same clients: a row that another one writes now is left to it.
UPDATE dagapp.api_clients SET last_used_at = %(now)s
WHERE client_id IN (
    SELECT client_id FROM dagapp.api_clients
    WHERE client_id = ANY (%(client_ids)s::text[])
      AND (last_used_at IS NULL OR last_used_at <= %(before)s)
    FOR UPDATE SKIP LOCKED
);
