-- What a database needs before our schema: extensions and roles.
-- Every step may be repeated, and asks for no privilege when there is nothing left to do.

CREATE EXTENSION IF NOT EXISTS postgis;

DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['graticule_owner', 'graticule_orchestrator', 'graticule_worker', 'graticule_gateway',
                                     'graticule_serve_internal', 'graticule_serve_external']
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

-- Workers make tables, and the owner of the schema takes over those that are complete (see outputs.sql).
DO $$
BEGIN
    IF NOT pg_has_role('graticule_owner', 'graticule_worker', 'MEMBER') THEN
        GRANT graticule_worker TO graticule_owner;
    END IF;
END $$;

-- The partners' features are tables of schemas of their own, one for each audience. Workers make tables in the first; the
-- second is filled by dagapp.make_copy alone.
DO $$
DECLARE
    zone record;
BEGIN
    FOR zone IN
        SELECT * FROM (VALUES
            ('geo', 'Tables of features, one for each revision of a vector dataset.', 'graticule_serve_internal'),
            ('external', 'Copies of tables of features for the public.', 'graticule_serve_external')
        ) AS zones (name, comment, reader)
    LOOP
        IF to_regnamespace(zone.name) IS NULL THEN
            EXECUTE format('CREATE SCHEMA %I AUTHORIZATION graticule_owner', zone.name);
            EXECUTE format('COMMENT ON SCHEMA %I IS %L', zone.name, zone.comment);
        END IF;
        IF NOT has_schema_privilege(zone.reader, zone.name, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', zone.name, zone.reader);
        END IF;
    END LOOP;
    IF NOT (has_schema_privilege('graticule_worker', 'geo', 'USAGE')
            AND has_schema_privilege('graticule_worker', 'geo', 'CREATE')) THEN
        GRANT USAGE, CREATE ON SCHEMA geo TO graticule_worker;
    END IF;
    IF has_schema_privilege('graticule_worker', 'external', 'USAGE') THEN
        REVOKE ALL ON SCHEMA external FROM graticule_worker;
    END IF;
END $$;
