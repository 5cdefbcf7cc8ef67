-- Doors that PostgreSQL leaves open to every role, closed: the gateway is to write nothing, anywhere.
-- Every step may be repeated, and asks for no privilege when there is nothing left to do.

DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['graticule_orchestrator', 'graticule_worker', 'pgstac_admin', 'pgstac_ingest']
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
