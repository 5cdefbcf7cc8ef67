-- Logins with passwords.

-- name: ensure_scaler
-- Who scales the workers asks again and again how many tasks wait. May be repeated.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'graticule_scaler') THEN
        BEGIN
            CREATE ROLE graticule_scaler NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- another deployment on the same server was quicker
        END;
    END IF;
END $$;

-- name: grant_scaler
-- It can read the three columns that tell, nothing else, and never for long. May be repeated.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO graticule_scaler', current_database());
END $$;
ALTER ROLE graticule_scaler SET default_transaction_read_only = on;
ALTER ROLE graticule_scaler SET statement_timeout = '5s';
GRANT USAGE ON SCHEMA dagapp TO graticule_scaler;
GRANT SELECT (queue, status, available_at) ON dagapp.dag_tasks TO graticule_scaler;
