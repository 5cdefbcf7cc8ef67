"""A database that has been in use for a while: many jobs that ended, and many that wait for workers.

The rows are those that the engine itself would have left behind, written by plain SQL because running that many
jobs would take all day. A job that ended has its nodes, its task, its result and its six events; an idle one runs,
with one task in a queue that nobody serves.
"""

from collections.abc import Sequence
from typing import LiteralString

import psycopg

from graticule.core.ids import OwnerId

IDLE_QUEUE = "bench-nobody"

WORKFLOW: LiteralString = "SELECT workflow_hash, workflow_id, version FROM dagapp.dag_workflows LIMIT 1"
ENDED: Sequence[LiteralString] = (
    """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, owner_id, owner_epoch,
                                 created_at, started_at, ended_at, updated_at)
    SELECT 'ended-' || n, %(workflow_id)s, %(version)s, %(workflow_hash)s, 'completed', %(owner_id)s, 1,
           now(), now(), now(), now()
    FROM generate_series(1, %(jobs)s) AS n
    """,
    """
    INSERT INTO dagapp.dag_nodes (job_id, node_id, node_type, status, handler, queue, input_params, output, task_id,
                                  ready_at, dispatched_at, started_at, ended_at)
    SELECT 'ended-' || n, node_id, node_type::dagapp.node_type, 'completed', handler, queue, '{"index": 1}',
           '{"echoed_params": {"index": 1}}', 'ended-' || n || '_' || node_id || '_0', now(), now(), now(), now()
    FROM generate_series(1, %(jobs)s) AS n, (VALUES
        ('start', 'start', NULL, NULL), ('task_1', 'task', 'echo', 'functionapp-tasks'), ('end', 'end', NULL, NULL)
    ) AS node (node_id, node_type, handler, queue)
    """,
    """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params, status, delivery_count,
                                  available_at, created_at)
    SELECT 'ended-' || n || '_task_1_0', 'ended-' || n, 'task_1', 'functionapp-tasks', 'echo', '{"index": 1}', 'done',
           1, now(), now()
    FROM generate_series(1, %(jobs)s) AS n
    """,
    """
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, output, reported_at, processed_at)
    SELECT 'ended-' || n || '_task_1_0', 'ended-' || n, 'task_1', 'completed', '{"echoed_params": {"index": 1}}',
           now(), now()
    FROM generate_series(1, %(jobs)s) AS n
    """,
    """
    INSERT INTO dagapp.dag_job_events (event_type, job_id, node_id, data, created_at)
    SELECT event_type::dagapp.event_type, 'ended-' || n, node_id, '{}', now()
    FROM generate_series(1, %(jobs)s) AS n, (VALUES
        ('job_created', NULL), ('node_ready', 'task_1'), ('node_dispatched', 'task_1'), ('job_started', NULL),
        ('node_completed', 'task_1'), ('job_completed', NULL)
    ) AS event (event_type, node_id)
    """,
)
IDLE: Sequence[LiteralString] = (
    """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, owner_id, owner_epoch,
                                 created_at, started_at, updated_at)
    SELECT 'idle-' || n, %(workflow_id)s, %(version)s, %(workflow_hash)s, 'running', %(owner_id)s, 1,
           now(), now(), now()
    FROM generate_series(1, %(jobs)s) AS n
    """,
    """
    INSERT INTO dagapp.dag_nodes (job_id, node_id, node_type, status, handler, queue, task_id, ready_at, dispatched_at,
                                  ended_at, deadline_at)
    SELECT 'idle-' || n, node_id, node_type::dagapp.node_type, status::dagapp.node_status, handler, queue,
           CASE WHEN handler IS NOT NULL THEN 'idle-' || n || '_' || node_id || '_0' END, now(), now(),
           CASE WHEN status = 'completed' THEN now() END,
           CASE WHEN status = 'dispatched' THEN now() + interval '1 hour' END
    FROM generate_series(1, %(jobs)s) AS n, (VALUES
        ('start', 'start', 'completed', NULL, NULL), ('task_1', 'task', 'dispatched', 'echo', %(queue)s),
        ('end', 'end', 'pending', NULL, NULL)
    ) AS node (node_id, node_type, status, handler, queue)
    """,
    """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, params, available_at, created_at)
    SELECT 'idle-' || n || '_task_1_0', 'idle-' || n, 'task_1', %(queue)s, 'echo', '{"index": 1}', now(), now()
    FROM generate_series(1, %(jobs)s) AS n
    """,
    """
    INSERT INTO dagapp.dag_job_events (event_type, job_id, node_id, data, created_at)
    SELECT event_type::dagapp.event_type, 'idle-' || n, node_id, '{}', now()
    FROM generate_series(1, %(jobs)s) AS n, (VALUES
        ('job_created', NULL), ('node_ready', 'task_1'), ('node_dispatched', 'task_1'), ('job_started', NULL)
    ) AS event (event_type, node_id)
    """,
)


async def fill(url: str, owner_id: OwnerId, *, ended: int, idle: int) -> None:
    """Write the rows in the name of an orchestrator; some workflow must have been submitted before."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        workflow = await (await connection.execute(WORKFLOW)).fetchone()
        if workflow is None:
            raise RuntimeError("No workflow is known yet: submit a job first.")
        given = {**dict(zip(("workflow_hash", "workflow_id", "version"), workflow, strict=True)), "owner_id": owner_id}
        for statements, jobs in ((ENDED, ended), (IDLE, idle)):
            for statement in statements:
                await connection.execute(statement, {**given, "jobs": jobs, "queue": IDLE_QUEUE})
        await connection.execute("VACUUM (ANALYZE)")
