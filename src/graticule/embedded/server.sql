-- What is asked of a server before there is a schema.

-- name: available_extensions
SELECT name FROM pg_available_extensions WHERE name = ANY (%(names)s);

-- name: database_exists
SELECT 1 FROM pg_database WHERE datname = %(name)s;
