-- The nodes of a job. A write holds only while the job is in the writer's hands.

-- name: list_nodes
SELECT * FROM dagapp.dag_nodes
WHERE job_id = %(job_id)s AND parent_node_id IS NOT DISTINCT FROM %(parent_node_id)s
ORDER BY fan_out_index, node_id;

-- name: transition_node
-- A retry begins afresh: nothing of the attempt before is left but its count.
-- The job is locked against a claim until the step commits: else it could commit in a term that is over.
WITH held AS (
    SELECT job_id FROM dagapp.dag_jobs
    WHERE job_id = %(job_id)s AND owner_id IS NOT DISTINCT FROM %(owner_id)s AND owner_epoch = %(owner_epoch)s
    FOR SHARE
)
UPDATE dagapp.dag_nodes AS node
SET status = %(new)s::text::dagapp.node_status,
    task_id = CASE WHEN %(new)s = 'ready' THEN NULL ELSE coalesce(%(task_id)s, node.task_id) END,
    worker_id = CASE WHEN %(new)s = 'ready' THEN NULL ELSE coalesce(%(worker_id)s, node.worker_id) END,
    output = coalesce(%(output)s, node.output),
    output_ref = coalesce(%(output_ref)s, node.output_ref),
    error_message = CASE WHEN %(new)s = 'ready' THEN NULL ELSE coalesce(%(error_message)s, node.error_message) END,
    retry_count = node.retry_count + CASE WHEN node.status = 'failed' THEN 1 ELSE 0 END,
    ready_at = CASE WHEN %(new)s = 'ready' THEN coalesce(%(ready_at)s::timestamptz, %(now)s::timestamptz) ELSE node.ready_at END,
    dispatched_at = CASE %(new)s WHEN 'dispatched' THEN %(now)s WHEN 'ready' THEN NULL ELSE node.dispatched_at END,
    started_at = CASE %(new)s WHEN 'running' THEN %(now)s WHEN 'ready' THEN NULL ELSE node.started_at END,
    deadline_at = CASE WHEN %(new)s IN ('dispatched', 'running') THEN coalesce(%(deadline_at)s::timestamptz, node.deadline_at) END,
    ended_at = CASE WHEN %(new)s IN ('completed', 'failed', 'skipped') THEN %(now)s::timestamptz END
FROM held
WHERE node.job_id = held.job_id AND node.node_id = %(node_id)s AND node.status = ANY (%(sources)s::dagapp.node_status[])
RETURNING node.*;

-- name: holds_job
SELECT EXISTS (
    SELECT FROM dagapp.dag_jobs
    WHERE job_id = %(job_id)s AND owner_id IS NOT DISTINCT FROM %(owner_id)s AND owner_epoch = %(owner_epoch)s
) AS holds;
