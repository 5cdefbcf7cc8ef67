-- Logins of identities of Entra ID, which show tokens instead of passwords.

-- name: find_login
-- Its label says whose login it is; NULL: of nobody in Entra ID.
SELECT label
FROM pg_roles
LEFT JOIN pg_shseclabel
    ON objoid = pg_roles.oid AND classoid = 'pg_authid'::regclass AND provider = 'pgaadauth'
WHERE rolname = %(login)s;

-- name: create_login
-- Azure's own function. The login is no administrator, and a second factor is not asked for: no person has it.
SELECT pgaadauth_create_principal(%(login)s, false, false);

-- name: create_login_of_object
-- The same for the one identity of this object id, whatever else has its name.
SELECT pgaadauth_create_principal_with_oid(%(login)s, %(object_id)s, 'service', false, false);
