-- The nodes of a job. A write holds only while the job is in the writer's hands.

-- name: list_nodes
SELECT * FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id IS NOT DISTINCT FROM %(parent_node_id)s
ORDER BY fan_out_index, node_id;

-- name: transition_node
-- The job is locked against a claim until the step commits: else it could commit in a term that is over.
WITH held AS (
    SELECT job_id FROM dagapp.dag_jobs
    WHERE job_id = %(job_id)s AND owner_id IS NOT DISTINCT FROM %(owner_id)s AND owner_epoch = %(owner_epoch)s
    FOR SHARE
)
UPDATE dagapp.dag_nodes AS node
SET status = %(new)s::text::dagapp.node_status,
    task_id = coalesce(%(task_id)s, node.task_id),
    output = coalesce(%(output)s, node.output),
    error_message = CASE WHEN %(new)s = 'ready' THEN NULL ELSE coalesce(%(error_message)s, node.error_message) END,
    retry_count = node.retry_count + CASE WHEN node.status = 'failed' THEN 1 ELSE 0 END,
    ready_at = CASE WHEN %(new)s = 'ready' THEN %(now)s ELSE node.ready_at END,
    dispatched_at = CASE WHEN %(new)s = 'dispatched' THEN %(now)s ELSE node.dispatched_at END,
    started_at = CASE WHEN %(new)s = 'running' THEN %(now)s ELSE node.started_at END,
    ended_at = CASE WHEN %(new)s IN ('completed', 'failed', 'skipped') THEN %(now)s::timestamptz END
FROM held
WHERE node.job_id = held.job_id AND node.node_id = %(node_id)s AND node.status = ANY (%(sources)s::dagapp.node_status[])
RETURNING node.*;

-- name: holds_job
SELECT EXISTS (
    SELECT FROM dagapp.dag_jobs
    WHERE job_id = %(job_id)s AND owner_id IS NOT DISTINCT FROM %(owner_id)s AND owner_epoch = %(owner_epoch)s
) AS holds;
