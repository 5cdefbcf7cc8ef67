-- The state of the schema as a whole.

-- name: server
SELECT current_database() AS database, current_setting('server_version') AS server_version,
       (SELECT extversion FROM pg_extension WHERE extname = 'postgis') AS postgis_version,
       (SELECT count(*) = 6 AND bool_or(rolname = 'graticule_owner' AND has_database_privilege(oid, current_database(), 'CREATE'))
        FROM pg_roles
        WHERE rolname IN ('graticule_owner', 'graticule_orchestrator', 'graticule_worker', 'graticule_gateway',
                          'graticule_serve_internal', 'graticule_serve_external')) AS prepared,
       to_regclass('dagapp.schema_deployments') IS NOT NULL AS deployed,
       obj_description(to_regprocedure('dagapp.keep_first_times()'), 'pg_proc') AS rules,
       obj_description(to_regnamespace('serving'), 'pg_namespace') AS serving;

-- name: last_deployment
SELECT fingerprint, deployed_at FROM dagapp.schema_deployments ORDER BY deployed_at DESC, deployment_id DESC LIMIT 1;

-- name: record_deployment
-- Each fingerprint is recorded when it becomes the newest. Programs look for theirs anywhere in the list:
-- migrations only add, so what an older program needs is still there beside a newer one.
INSERT INTO dagapp.schema_deployments (fingerprint, program_version, deployed_by)
SELECT %(fingerprint)s, %(program_version)s, left(session_user, 128)
WHERE %(fingerprint)s IS DISTINCT FROM (
    SELECT fingerprint FROM dagapp.schema_deployments ORDER BY deployed_at DESC, deployment_id DESC LIMIT 1
);

-- name: reserved_platforms
-- Older than the rule that keeps their names for hand-made jobs; their outputs are protected all the same.
SELECT platform_id FROM dagapp.platforms WHERE platform_id ~ '^direct(_|$)' ORDER BY platform_id;

-- name: tables_of_workers
-- Tables that were live before they belonged to the owner of the schema.
SELECT relnamespace::regnamespace::text, relname::text FROM pg_class
WHERE relnamespace IN (to_regnamespace('geo'), to_regnamespace('external')) AND relkind = 'r'
  AND relowner = 'graticule_worker'::regrole
  AND obj_description(oid, 'pg_class') ~ '^(Tiles\. )?(Made by job|Public copy of asset) '
ORDER BY 1, 2;

-- name: take_table
SELECT dagapp.take_table(%(in_schema)s, %(name)s);

-- name: objection_to_table
SELECT dagapp.objection_to_table(to_regclass(format('%%I.%%I', %(in_schema)s::text, %(name)s::text)));

-- name: lock
-- One deployment at a time, for as long as the session lasts.
SELECT pg_advisory_lock(hashtext('graticule schema'));

-- name: unlock
SELECT pg_advisory_unlock(hashtext('graticule schema'));
