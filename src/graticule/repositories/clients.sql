-- name: find_client_by_key_hash
SELECT * FROM dagapp.api_clients WHERE key_hash = %(key_hash)s AND is_active;

-- name: list_clients
SELECT * FROM dagapp.api_clients ORDER BY client_id;
