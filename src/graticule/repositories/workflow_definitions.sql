-- The workflows that orchestrators announce to each other: of each id, one definition is current.

-- name: lock_definitions
-- Announcements are decided one after the other, each with what the others wrote.
SELECT pg_advisory_xact_lock(hashtext('graticule workflow definitions'));

-- name: definition_keys
-- All that were ever announced, without their contents.
SELECT workflow_id, workflow_hash, superseded_at IS NULL AS is_current, source, program_version, reloaded_by IS NOT NULL AS is_reload
FROM dagapp.dag_definitions;

-- name: current_definitions
SELECT * FROM dagapp.dag_definitions
WHERE superseded_at IS NULL AND (%(ids)s::text[] IS NULL OR workflow_id = ANY (%(ids)s));

-- name: supersede_definition
UPDATE dagapp.dag_definitions SET superseded_at = %(now)s
WHERE workflow_id = %(workflow_id)s AND superseded_at IS NULL;

-- name: put_definition
INSERT INTO dagapp.dag_definitions (
    workflow_id, workflow_hash, definition, source, file, program_version, announced_by, reloaded_by,
    announced_at
)
VALUES (
    %(workflow_id)s, %(workflow_hash)s, %(definition)s, %(source)s, %(file)s, %(program_version)s,
    %(announced_by)s, %(reloaded_by)s, %(announced_at)s
)
ON CONFLICT (workflow_id, workflow_hash) DO UPDATE
SET definition = excluded.definition, superseded_at = NULL, source = excluded.source, file = excluded.file,
    program_version = excluded.program_version, announced_by = excluded.announced_by,
    reloaded_by = excluded.reloaded_by, announced_at = excluded.announced_at;

-- name: withdraw_definitions
DELETE FROM dagapp.dag_definitions WHERE workflow_id = ANY (%(ids)s);

-- name: notify_workflows
SELECT pg_notify('graticule_workflows', '');

-- name: workflow_holders
-- The other instances that are open, with the workflows of their files, and whether their sessions are there.
SELECT owner_id, hostname, program_version, workflows, workflow_problems,
       EXISTS (
           SELECT FROM pg_locks
           WHERE locktype = 'advisory' AND granted AND objsubid = 1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND classid::bigint = (lock_key >> 32) & 4294967295 AND objid::bigint = lock_key & 4294967295
       ) AS has_session
FROM dagapp.dag_orchestrators
WHERE stopped_at IS NULL AND owner_id <> %(owner_id)s AND heartbeat_at > now() - make_interval(secs => %(threshold)s)
ORDER BY started_at, owner_id;

-- name: note_workflow_files
UPDATE dagapp.dag_orchestrators SET workflows = %(workflows)s, workflow_problems = %(problems)s
WHERE owner_id = %(owner_id)s
  AND (workflows IS DISTINCT FROM %(workflows)s::jsonb OR workflow_problems IS DISTINCT FROM %(problems)s::varchar[]);
