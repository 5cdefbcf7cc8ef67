-- name: has_workflow
SELECT FROM dagapp.dag_workflows WHERE workflow_hash = %(workflow_hash)s;

-- name: keep_workflow
-- The same content is kept once; a second job of it finds the row there.
INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition, created_at)
VALUES (%(workflow_hash)s, %(workflow_id)s, %(version)s, %(name)s, %(definition)s, %(created_at)s)
ON CONFLICT (workflow_hash) DO NOTHING;
