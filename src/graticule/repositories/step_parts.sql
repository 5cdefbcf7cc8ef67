-- All that follows from a decision is one statement: `step`, with those of the parts below it that have rows. (One that
-- has none would cost as much as one that has.)
-- When a job was changed, or taken by another, the fence is broken and nothing is written. A node or job is written only
-- if it is still in the status that was read, and a result counts once. What falls short divides by zero: a statement
-- that fails leaves nothing behind, so that it needs no transaction around it.
-- That the rows are those of the jobs at hand is said to the planner, too: of few rows it looks each up in the table,
-- where of many it might read a table that was small when the plan was made, and no longer is.

-- name: step
WITH held AS MATERIALIZED (
    SELECT FROM dagapp.dag_jobs AS job
    WHERE job.job_id = ANY (%(job_ids)s) AND job.owner_id = %(owner_id)s
      AND job.owner_epoch = (%(versions)s::jsonb -> job.job_id ->> 'owner_epoch')::bigint
      AND job.updated_at = (%(versions)s::jsonb -> job.job_id ->> 'updated_at')::timestamptz
    ORDER BY job.job_id
    FOR NO KEY UPDATE
), fence AS MATERIALIZED (
    SELECT count(*) AS jobs, count(*) = cardinality(%(job_ids)s) AS intact FROM held
){parts}
SELECT 1 / (%(expected)s::bigint[] = ARRAY[(SELECT jobs FROM fence){counts}])::int;

-- name: part
, {part} AS (
{statement}
);

-- name: count
, (SELECT count(*) FROM {part});

-- name: nodes
UPDATE dagapp.dag_nodes AS node
SET status = changed.status,
    retry_count = changed.retry_count,
    retry_base = changed.retry_base,
    task_id = changed.task_id,
    worker_id = changed.worker_id,
    output = CASE changed.output_from
                 WHEN 'kept' THEN node.output
                 WHEN 'result' THEN result.output
                 ELSE changed.output
             END,
    output_ref = changed.output_ref,
    error_message = changed.error_message,
    progress = changed.progress,
    input_params = changed.input_params,
    children_total = changed.children_total,
    children_started = changed.children_started,
    children_done = changed.children_done,
    children_failed = changed.children_failed,
    ready_at = changed.ready_at,
    dispatched_at = changed.dispatched_at,
    started_at = changed.started_at,
    ended_at = changed.ended_at,
    deadline_at = changed.deadline_at
FROM json_to_recordset(%(nodes)s) AS changed (
        job_id text, node_id text, before dagapp.node_status, status dagapp.node_status, retry_count int,
        retry_base int, task_id text, worker_id text, output_from text, output jsonb, result_id bigint,
        output_ref text, error_message text, progress jsonb, input_params jsonb, children_total int,
        children_started int, children_done int, children_failed int, ready_at timestamptz,
        dispatched_at timestamptz, started_at timestamptz, ended_at timestamptz, deadline_at timestamptz
    )
LEFT JOIN dagapp.dag_task_results AS result ON result.result_id = changed.result_id
WHERE node.job_id = changed.job_id AND node.node_id = changed.node_id AND node.status = changed.before
  AND changed.job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: completed_children
-- Children of which nothing but their completion is new: the most frequent write of all.
UPDATE dagapp.dag_nodes AS node
SET status = 'completed', output = result.output, output_ref = result.output_ref, worker_id = result.worker_id,
    ended_at = %(now)s, deadline_at = NULL
FROM json_to_recordset(%(completed_children)s) AS changed (
        job_id text, node_id text, before dagapp.node_status, result_id bigint
    )
JOIN dagapp.dag_task_results AS result ON result.result_id = changed.result_id
WHERE node.job_id = changed.job_id AND node.node_id = changed.node_id AND node.status = changed.before
  AND changed.job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: new_nodes
INSERT INTO dagapp.dag_nodes (
    job_id, node_id, node_type, status, handler, queue, retry_count, retry_base, task_id, output, error_message,
    parent_node_id, fan_out_index, fan_out_key, input_params, children_total, children_started, ready_at,
    dispatched_at, started_at, ended_at, deadline_at
)
SELECT job_id, node_id, node_type, status, handler, queue, retry_count, retry_base, task_id, output, error_message,
       parent_node_id, fan_out_index, fan_out_key, input_params, children_total, children_started, ready_at,
       dispatched_at, started_at, ended_at, deadline_at
FROM json_to_recordset(%(new_nodes)s) AS added (
        job_id text, node_id text, node_type dagapp.node_type, status dagapp.node_status, handler text,
        queue text, retry_count int, retry_base int, task_id text, output jsonb, error_message text,
        parent_node_id text, fan_out_index int, fan_out_key text, input_params jsonb, children_total int,
        children_started int, ready_at timestamptz, dispatched_at timestamptz, started_at timestamptz,
        ended_at timestamptz, deadline_at timestamptz
    )
WHERE job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: new_tasks
-- Shares take turns (start-time fair queueing): the first of a share's new tasks lines up behind its last one that
-- waits, and not before the turn that has come; the others follow in their order. What was given back waits in its old
-- turn, which is over: it does not say which turn has come. Two processes that write at once may use a turn twice.
-- The priorities of one partner (`pa`, `pa/1` and so on) are shares that divide its turns: each leaves out one turn for
-- every other one that has tasks waiting, or a partner that uses them all would have as many turns as priorities.
INSERT INTO dagapp.dag_tasks (
    task_id, job_id, node_id, queue, handler, params, priority, share, turn, retry_count, timeout_seconds,
    available_at, traceparent, created_at
)
SELECT task_id, job_id, node_id, queue, handler, params, priority, share,
       max(first_turn) OVER line + place + (place + 1) * max(others) OVER line, retry_count, timeout_seconds, now(),
       traceparent, %(now)s
FROM (
    SELECT *, CASE WHEN place = 0 THEN greatest(
        (SELECT turn FROM dagapp.dag_tasks AS waiting
         WHERE waiting.queue = added.queue AND waiting.priority = added.priority AND waiting.status = 'queued'
           AND waiting.delivery_count = 0
         ORDER BY turn LIMIT 1),
        (SELECT turn + 1 FROM dagapp.dag_tasks AS waiting
         WHERE waiting.queue = added.queue AND waiting.priority = added.priority AND waiting.share = added.share
           AND waiting.status = 'queued'
         ORDER BY turn DESC LIMIT 1),
        0
    ) END AS first_turn,
    CASE WHEN place = 0 AND share <> '' THEN (
        -- Sought by order: only the index of shares has it, whatever the planner believes of how often each occurs.
        SELECT count(*)
        FROM generate_series(0, 10) AS level,
             concat(split_part(added.share, '/', 1), '/' || nullif(level, 0)) AS other
        WHERE other <> added.share
          AND other = (SELECT share FROM dagapp.dag_tasks AS waiting
                       WHERE waiting.queue = added.queue AND waiting.priority = added.priority
                         AND waiting.share >= other AND waiting.status = 'queued'
                       ORDER BY share LIMIT 1)
    ) ELSE 0 END AS others
    FROM (
        SELECT *, row_number() OVER (PARTITION BY queue, priority, share ORDER BY number) - 1 AS place
        FROM ROWS FROM (json_to_recordset(%(new_tasks)s) AS (
                job_id text, task_id text, node_id text, queue text, handler text, params jsonb, retry_count int,
                timeout_seconds int, priority int, share text, traceparent text
            )) WITH ORDINALITY AS listed (
                job_id, task_id, node_id, queue, handler, params, retry_count, timeout_seconds, priority, share,
                traceparent, number
            )
    ) AS added
) AS added
WHERE job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
WINDOW line AS (PARTITION BY queue, priority, share)
RETURNING 1;

-- name: events
INSERT INTO dagapp.dag_job_events (
    event_type, job_id, node_id, task_id, asset_id, version_ordinal, actor, data, owner_epoch, created_at
)
SELECT event_type, job_id, node_id, task_id, asset_id, version_ordinal,
       CASE WHEN asset_id IS NULL THEN actor ELSE %(owner_id)s END, data, owner_epoch, %(now)s
FROM json_to_recordset(%(events)s) AS added (
        job_id text, event_type dagapp.event_type, node_id text, task_id text, asset_id text, version_ordinal int,
        actor text, data jsonb, owner_epoch bigint
    )
WHERE job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: processed_results
-- Not joined, and with a condition that no partial index knows: the planner, which believes that few results are
-- unprocessed, would rather read all of those than look each up.
UPDATE dagapp.dag_task_results
SET processed_at = %(now)s
WHERE result_id = ANY (ARRAY(SELECT (given ->> 'result_id')::bigint FROM json_array_elements(%(processed_results)s) AS given))
  AND (processed_at IS NULL)::text = 'true' AND (SELECT intact FROM fence)
RETURNING 1;

-- name: jobs
UPDATE dagapp.dag_jobs AS job
SET status = changed.status,
    result = changed.result,
    result_ref = changed.result_ref,
    error_message = changed.error_message,
    started_at = CASE WHEN changed.status = 'pending' THEN job.started_at ELSE coalesce(job.started_at, %(now)s) END,
    ended_at = CASE WHEN changed.status IN ('completed', 'failed', 'cancelled') THEN %(now)s::timestamptz END,
    cancel_requested_at = CASE WHEN changed.before IN ('failed', 'cancelled') THEN NULL ELSE job.cancel_requested_at END,
    updated_at = %(now)s
FROM json_to_recordset(%(jobs)s) AS changed (
        job_id text, before dagapp.job_status, status dagapp.job_status, result jsonb, result_ref text,
        error_message text
    )
WHERE job.job_id = changed.job_id AND job.status::text = changed.before::text
  AND changed.job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: other_jobs
-- Those whose status stays get a new version all the same. A step whose connection broke, and that is taken anew while
-- the server still writes it, is thus written once.
UPDATE dagapp.dag_jobs
SET updated_at = %(now)s
WHERE job_id = ANY (ARRAY(SELECT given ->> 'job_id' FROM json_array_elements(%(other_jobs)s) AS given))
  AND (SELECT intact FROM fence)
RETURNING 1;

-- name: processed_versions
-- What an asset version becomes with the job that processes it; a job that is not its current one changes nothing there.
-- A decision lasts through a new revision only if that was made of the same content, and that is known; an approval only if
-- the workflow is one that it can be trusted to be.
UPDATE dagapp.asset_versions AS version
SET processing_state = changed.processing_state,
    processing_started_at = coalesce(
        CASE WHEN changed.processing_state <> 'processing' THEN version.processing_started_at END, %(now)s
    ),
    processing_completed_at = CASE WHEN changed.processing_state IN ('completed', 'failed') THEN %(now)s::timestamptz END,
    last_error = changed.error_message,
    told_error = changed.told_error,
    validation = changed.validation,
    node_summary = changed.node_summary,
    (content_hash, output_hash, blob_path, table_name, stac_item_id, stac_collection_id, bbox) = (
        SELECT made.* FROM (VALUES (
            changed.content_hash, changed.output_hash, changed.blob_path, changed.table_name, changed.stac_item_id,
            changed.stac_collection_id, changed.bbox
        )) AS made WHERE changed.processing_state = 'completed'
        UNION ALL
        SELECT kept.* FROM (VALUES (
            version.content_hash, version.output_hash, version.blob_path, version.table_name, version.stac_item_id,
            version.stac_collection_id, version.bbox
        )) AS kept WHERE changed.processing_state <> 'completed'
    ),
    (approval_state, reviewer, reviewed_at, rejection_reason, revoked_at, approved_revision) = (
        SELECT kept.*, CASE WHEN version.approval_state = 'approved' AND changed.processing_state = 'completed'
                            THEN version.revision ELSE version.approved_revision END
        FROM (VALUES (
            version.approval_state, version.reviewer, version.reviewed_at, version.rejection_reason, version.revoked_at
        )) AS kept
        WHERE changed.processing_state <> 'completed' OR version.content_hash = changed.content_hash AND (
            version.approval_state <> 'approved' OR dagapp.keeps_approval(changed.job_id)
        )
        UNION ALL
        SELECT 'pending_review', NULL, NULL, NULL, NULL, version.approved_revision
        WHERE changed.processing_state = 'completed' AND (version.content_hash = changed.content_hash AND (
            version.approval_state <> 'approved' OR dagapp.keeps_approval(changed.job_id)
        )) IS NOT TRUE
    ),
    updated_at = %(now)s
FROM json_to_recordset(%(processed_versions)s) AS changed (
        job_id text, owner_epoch bigint, asset_id text, version_ordinal int, processing_state dagapp.processing_state,
        error_message text, told_error text, validation jsonb, node_summary jsonb, content_hash text, output_hash text,
        blob_path text, table_name text, stac_item_id text, stac_collection_id text, bbox double precision[]
    )
WHERE version.asset_id = changed.asset_id AND version.version_ordinal = changed.version_ordinal
  AND version.current_job_id = changed.job_id AND version.processing_state <> changed.processing_state
  AND changed.job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING version.asset_id, version.version_ordinal, version.revision, version.processing_state::text AS state,
          version.approval_state, version.last_request_id, version.last_error, version.told_error, changed.job_id,
          changed.owner_epoch;

-- name: answered_requests
UPDATE dagapp.platform_requests AS request
SET status = processed_versions.state::dagapp.request_status, job_id = processed_versions.job_id,
    last_error = processed_versions.told_error, updated_at = %(now)s
FROM processed_versions
WHERE request.request_id = processed_versions.last_request_id;

-- name: version_events
INSERT INTO dagapp.dag_job_events (event_type, job_id, asset_id, version_ordinal, actor, data, owner_epoch, created_at)
SELECT (CASE state WHEN 'processing' THEN 'asset_processing_started' WHEN 'completed' THEN 'asset_processing_completed'
        ELSE 'asset_processing_failed' END)::dagapp.event_type,
       job_id, asset_id, version_ordinal, %(owner_id)s,
       jsonb_strip_nulls(jsonb_build_object(
           'revision', revision,
           'approval_state', CASE WHEN state = 'failed' AND approval_state = 'pending_review' THEN 'failed'
                                  ELSE approval_state::text END,
           'error', last_error, 'reason', told_error,
           'request_id', last_request_id
       )),
       owner_epoch, %(now)s
FROM processed_versions;

-- name: version_callbacks
-- A partner is told of its request, and never of our job; of an old job's late end it hears nothing.
INSERT INTO dagapp.dag_callbacks (job_id, url, payload, next_attempt_at, created_at)
SELECT job.job_id, job.callback_url,
       jsonb_build_object(
           'request_id', request.request_id, 'platform_id', request.platform_id, 'status', processed_versions.state
       ),
       %(now)s, %(now)s
FROM processed_versions
JOIN dagapp.dag_jobs AS job ON job.job_id = processed_versions.job_id
JOIN dagapp.platform_requests AS request ON request.request_id = processed_versions.last_request_id
WHERE processed_versions.state IN ('completed', 'failed') AND job.callback_url IS NOT NULL
  AND job.job_id = ANY (%(job_ids)s);

-- name: callbacks
INSERT INTO dagapp.dag_callbacks (job_id, url, payload, next_attempt_at, created_at)
SELECT job.job_id, job.callback_url,
       jsonb_strip_nulls(jsonb_build_object(
           'job_id', job.job_id, 'status', ended.status, 'correlation_id', job.correlation_id,
           'idempotency_key', job.idempotency_key
       )),
       %(now)s, %(now)s
FROM json_to_recordset(%(callbacks)s) AS ended (job_id text, status text)
JOIN dagapp.dag_jobs AS job ON job.job_id = ended.job_id
WHERE ended.job_id = ANY (%(job_ids)s) AND job.job_id = ANY (%(job_ids)s) AND (SELECT intact FROM fence)
RETURNING 1;

-- name: notifications
SELECT pg_notify(channel, payload)
FROM json_to_recordset(%(notifications)s) AS told (channel text, payload text)
WHERE (SELECT intact FROM fence);
