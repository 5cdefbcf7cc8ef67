-- What a database needs before our schema: extensions and roles.
-- Every step may be repeated, and asks for no privilege when there is nothing left to do.

CREATE EXTENSION IF NOT EXISTS postgis;

DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['graticule_owner', 'graticule_orchestrator', 'graticule_worker', 'graticule_gateway']
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
                -- Whoever makes them may act as them, so that one login is enough to begin with.
                EXECUTE format('GRANT %I TO %I', role_name, current_user);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another deployment on the same server was quicker
            END;
        END IF;
        IF NOT has_database_privilege(role_name, current_database(), 'CONNECT') THEN
            EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role_name);
        END IF;
    END LOOP;
END $$;

DO $$
BEGIN
    IF has_database_privilege('graticule_owner', current_database(), 'CREATE')
       AND has_database_privilege('graticule_owner', current_database(), 'TEMPORARY') THEN
        RETURN;
    END IF;
    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO graticule_owner', current_database());
END $$;

-- The partners' features are tables of a schema of their own, where workers make them.
DO $$
BEGIN
    IF to_regnamespace('geo') IS NULL THEN
        CREATE SCHEMA geo AUTHORIZATION graticule_owner;
        COMMENT ON SCHEMA geo IS 'Tables of features, one for each revision of a vector dataset.';
    END IF;
    IF NOT (has_schema_privilege('graticule_worker', 'geo', 'USAGE')
            AND has_schema_privilege('graticule_worker', 'geo', 'CREATE')) THEN
        GRANT USAGE, CREATE ON SCHEMA geo TO graticule_worker;
    END IF;
END $$;
