-- Doors that PostgreSQL leaves open to every role, closed: the gateway is to write nothing, anywhere.
-- Every step may be repeated, and asks for no privilege when there is nothing left to do.

DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['pgstac_admin', 'pgstac_ingest']
    LOOP
        IF NOT EXISTS (
            SELECT FROM pg_database, aclexplode(datacl) acl
            WHERE datname = current_database() AND acl.grantee = role_name::regrole AND acl.privilege_type = 'TEMPORARY'
        ) THEN
            EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I', current_database(), role_name);
        END IF;
    END LOOP;
    -- Whoever inspects the schema also reads which version of pgstac there is.
    IF NOT pg_has_role('graticule_owner', 'pgstac_read', 'MEMBER') THEN
        GRANT pgstac_read TO graticule_owner;
    END IF;
END $$;

-- Workers write the STAC catalogue, by themselves or by way of an orchestrator, and nothing else of pgstac. Its role for
-- writers may far more: triggers on all of its tables, which then run as its administrator or as whoever deploys, and
-- statements in its queue likewise. Items are written through their parent, so that no partition is granted, now or
-- later.
DO $$
DECLARE
    role_name text;
    wanted record;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['graticule_worker', 'graticule_orchestrator']
    LOOP
        IF pg_has_role(role_name, 'pgstac_ingest', 'MEMBER') THEN
            EXECUTE format('REVOKE pgstac_ingest FROM %I', role_name);
        END IF;
        IF NOT has_schema_privilege(role_name, 'pgstac', 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA pgstac TO %I', role_name);
        END IF;
        FOR wanted IN
            SELECT table_name, privilege
            FROM (VALUES ('collections', 'SELECT, INSERT, UPDATE'), ('items', 'SELECT, INSERT, DELETE'),
                         ('base_items', 'SELECT'), ('partition_stats', 'SELECT, INSERT, UPDATE'),
                         ('pgstac_settings', 'SELECT'), ('format_item_cache', 'SELECT, DELETE')
                 ) AS granted (table_name, privileges),
                 LATERAL unnest(string_to_array(privileges, ', ')) AS privilege
            WHERE NOT has_table_privilege(role_name, 'pgstac.' || table_name, privilege)
        LOOP
            EXECUTE format('GRANT %s ON pgstac.%I TO %I', wanted.privilege, wanted.table_name, role_name);
        END LOOP;
        IF NOT has_function_privilege(role_name, 'pgstac.check_partition(text, tstzrange, tstzrange)', 'EXECUTE') THEN
            EXECUTE format(
                'GRANT EXECUTE ON FUNCTION pgstac.check_partition(text, tstzrange, tstzrange) TO %I', role_name
            );
        END IF;
        -- Functions that run as pgstac's administrator look for tables among the temporary ones first. Whoever may call
        -- them must not be able to put one in the way.
        IF EXISTS (
            SELECT FROM pg_database, aclexplode(datacl) acl
            WHERE datname = current_database() AND acl.grantee = role_name::regrole AND acl.privilege_type = 'TEMPORARY'
        ) THEN
            EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM %I', current_database(), role_name);
        END IF;
        -- What all items of a collection have in common. A row there would change what every one of them says.
        IF has_table_privilege(role_name, 'pgstac.base_items', 'INSERT') THEN
            EXECUTE format('REVOKE INSERT ON pgstac.base_items FROM %I', role_name);
        END IF;
    END LOOP;
    -- So pgstac's own trigger on collections, by which it gets there, runs as pgstac's administrator. Nobody else may have
    -- a table of theirs call it.
    IF NOT (SELECT prosecdef FROM pg_proc WHERE oid = 'pgstac.collections_trigger_func()'::regprocedure)
       OR has_function_privilege('pgstac_read', 'pgstac.collections_trigger_func()', 'EXECUTE') THEN
        REVOKE EXECUTE ON FUNCTION pgstac.collections_trigger_func() FROM PUBLIC, pgstac_read, pgstac_ingest;
        ALTER FUNCTION pgstac.collections_trigger_func() SECURITY DEFINER;
    END IF;
    -- Workers delete empty collections by dagapp.delete_collection (outputs.sql), which asks whose they are.
    IF NOT has_function_privilege('graticule_owner', 'pgstac.delete_collection(text)', 'EXECUTE') THEN
        GRANT EXECUTE ON FUNCTION pgstac.delete_collection(text) TO graticule_owner;
    END IF;
    IF has_function_privilege('graticule_worker', 'pgstac.delete_collection(text)', 'EXECUTE') THEN
        REVOKE EXECUTE ON FUNCTION pgstac.delete_collection(text) FROM graticule_worker;
    END IF;
END $$;

-- pgstac makes its tables as pgstac_admin. Whoever may make functions where it looks for its own could have them run
-- as that role, so those who only write items may not.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_namespace, aclexplode(nspacl) acl
        WHERE nspname = 'pgstac' AND acl.grantee = 'pgstac_ingest'::regrole AND acl.privilege_type = 'CREATE'
    ) THEN
        REVOKE CREATE ON SCHEMA pgstac FROM pgstac_ingest;
    END IF;
END $$;

-- By default everyone may make temporary tables, and before PostgreSQL 15 also tables in "public".
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) acl
        WHERE datname = current_database() AND acl.grantee = 0 AND acl.privilege_type IN ('CREATE', 'TEMPORARY')
    ) THEN
        EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    END IF;
    IF EXISTS (
        SELECT FROM pg_namespace, aclexplode(nspacl) acl
        WHERE nspname = 'public' AND acl.grantee = 0 AND acl.privilege_type = 'CREATE'
    ) THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    END IF;
END $$;

-- Everyone may also take advisory locks, by which decisions and deployments wait for each other, and ask for the extent
-- of any table of features. Only a superuser can close these doors: elsewhere, trust the logins of the services no
-- further than that.
DO $$
DECLARE
    closed regprocedure;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOR closed IN
            SELECT oid::regprocedure FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^pg_(try_)?advisory_(xact_)?lock'
               OR proname = 'st_estimatedextent'
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', closed);
            EXECUTE format(
                'GRANT EXECUTE ON FUNCTION %s TO graticule_owner, graticule_orchestrator, graticule_worker,
                 graticule_gateway, pgstac_admin, pgstac_read, pgstac_ingest',
                closed
            );
        END LOOP;
    END IF;
END $$;

-- Everyone may also write large objects, which no table privilege covers. Only a superuser can close that
-- door; elsewhere the gateway's read-only transactions are what is left (PostgreSQL 16 and later refuse there).
DO $$
DECLARE
    writer regprocedure;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOR writer IN
            SELECT oid::regprocedure FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace
              AND proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lo_open', 'lowrite', 'lo_truncate',
                              'lo_truncate64', 'lo_unlink', 'lo_import')
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', writer);
        END LOOP;
    END IF;
END $$;
