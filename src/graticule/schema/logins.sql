-- Logins of identities of Entra ID, which show tokens instead of passwords.

-- name: has_login
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(login)s);

-- name: create_login
-- Azure's own function. The login is no administrator, and a second factor is not asked for: no person has it.
SELECT pgaadauth_create_principal(%(login)s, false, false);
