-- Who may write which output; the function is the schema's (schema/outputs.sql).

-- name: require_outputs
SELECT dagapp.require_outputs(%(job_id)s, %(kind)s, %(names)s);
