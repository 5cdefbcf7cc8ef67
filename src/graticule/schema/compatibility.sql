-- The engine's rows under the names that monitoring of earlier releases reads: a session whose search_path begins with
-- dagapp_compat runs its statements as they are. Nothing can be written through these views. Statuses are texts in capitals,
-- as most of those releases wrote them in SQL: a statement that compares with small letters finds nothing.

SET LOCAL ROLE graticule_owner;

DROP SCHEMA IF EXISTS dagapp_compat CASCADE;
CREATE SCHEMA dagapp_compat;
COMMENT ON SCHEMA dagapp_compat IS 'Read-only views for statements written for earlier releases of the platform family.';

-- An orchestrator has one heartbeat for all its jobs; nobody's job has none.
CREATE VIEW dagapp_compat.dag_jobs AS
SELECT job.job_id, job.workflow_id, job.workflow_version, upper(job.status::text) AS status, job.input_params,
       job.result AS result_data, job.error_message, job.correlation_id, job.submitted_by, job.callback_url,
       job.idempotency_key, job.priority, job.owner_id, orchestrator.heartbeat_at AS owner_heartbeat_at, job.created_at,
       job.started_at, job.updated_at, job.ended_at AS completed_at,
       (extract(epoch FROM job.updated_at) * 1000000)::bigint AS version -- another one after every change
FROM dagapp.dag_jobs AS job LEFT JOIN dagapp.dag_orchestrators AS orchestrator USING (owner_id);

CREATE VIEW dagapp_compat.dag_node_states AS
SELECT node.job_id, node.node_id, node.node_type::text AS node_type, upper(node.status::text) AS status, node.handler,
       node.queue, node.task_id, node.parent_node_id, node.fan_out_index, node.input_params, node.output,
       node.error_message, node.retry_count, node.worker_id, job.created_at, node.ready_at, node.dispatched_at,
       node.started_at, node.ended_at AS completed_at,
       (workflow.definition -> 'nodes' -> coalesce(node.parent_node_id, node.node_id)
        -> 'task' -> 'retry' ->> 'max_attempts')::int AS max_retries
FROM dagapp.dag_nodes AS node JOIN dagapp.dag_jobs AS job USING (job_id)
LEFT JOIN dagapp.dag_workflows AS workflow USING (workflow_hash);

-- Results alone: signs of life and progress were no rows there.
CREATE VIEW dagapp_compat.dag_task_results AS
SELECT task_id, job_id, node_id, upper(status::text) AS status, output, error_message, worker_id, metrics, reported_at,
       processed_at IS NOT NULL AS processed, processed_at
FROM dagapp.dag_task_results
WHERE status <> 'running';

CREATE VIEW dagapp_compat.dag_job_events AS
SELECT event_id, job_id, node_id, task_id, event_type::text AS event_type,
       CASE WHEN event_type::text LIKE '%\_failed' THEN 'failure'
            WHEN event_type IN ('node_retry', 'result_ignored', 'job_reclaimed') THEN 'warning'
            ELSE 'success' END AS event_status,
       data AS event_data, CASE WHEN event_type = 'checkpoint_saved' THEN data ->> 'phase' END AS checkpoint_name, actor,
       created_at
FROM dagapp.dag_job_events
WHERE job_id IS NOT NULL;

GRANT USAGE ON SCHEMA dagapp_compat TO graticule_gateway;
GRANT SELECT ON ALL TABLES IN SCHEMA dagapp_compat TO graticule_gateway;

RESET ROLE;
