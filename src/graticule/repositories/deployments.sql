-- name: is_deployed
-- Migrations only add, so a program is served by every schema that once had its fingerprint.
SELECT EXISTS (SELECT FROM dagapp.schema_deployments WHERE fingerprint = %(fingerprint)s) AS deployed;
