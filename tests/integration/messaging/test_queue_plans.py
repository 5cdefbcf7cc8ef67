"""The statements of the queue read by their indexes, however many ended tasks there are, also with a generic plan."""

import json
import re
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories.rows import HASH

from graticule.repositories.tasks import TaskRepository

FILL = (
    (
        "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)"
        " VALUES (%(hash)s, 'flow', '1', 'Flow', '{}')"
    ),
    (
        "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, owner_id)"
        " VALUES ('job', 'flow', '1', %(hash)s, 'owner')"
    ),
    (
        "INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, status, leased_by, lease_expires_at,"
        " dead_reason)"
        " SELECT 't' || n, 'job', 'n', 'queue-' || n %% 2, 'echo', status::dagapp.message_status,"
        " CASE status WHEN 'leased' THEN 'me' END, CASE status WHEN 'leased' THEN now() END, 'r'"
        " FROM generate_series(1, 20000) n,"
        " LATERAL (SELECT CASE n %% 200 WHEN 0 THEN 'queued' WHEN 1 THEN 'leased' WHEN 2 THEN 'dead' ELSE 'done' END)"
        " AS of (status)"
    ),
    "ANALYZE dagapp.dag_tasks, dagapp.dag_jobs",
)
NAMED = {"worker_id": "'me'", "task_ids": "ARRAY['t1', 't201']"}
HELD = {**NAMED, "deliveries": """'{"t1": 1, "t201": 1}'"""}
GIVEN: dict[str, dict[str, str]] = {
    "claim_tasks": {
        "worker_id": "'me'",
        "queue": "'queue-0'",
        "limit": "100",
        "lease_seconds": "60",
        "without": "ARRAY[]::text[]",
        "passed_over": "ARRAY[]::text[]",
    },
    "take_tasks": {**NAMED, "lease_seconds": "60"},
    "renew_leases": {**HELD, "lease_seconds": "60"},
    "finish_tasks": {**NAMED, "reports": """'{"t1": {"delivery_count": 1, "status": "completed"}}'"""},
    "abandon_tasks": {**HELD, "delay_seconds": "0", "counts": "true"},
    "reap_expired_leases": {"now": "now()", "limit": "100"},
    "next_available": {"queues": "ARRAY['queue-0']"},
    "unsent_tasks": {
        "owner_id": "'owner'",
        "without": "ARRAY[]::text[]",
        "task_ids": "ARRAY['t1', 't201']",
        "versions": "ARRAY['7', '8']",
        "limit": "1000",
    },
    "note_sent_tasks": {"task_ids": "ARRAY['t1', 't201']", "versions": "ARRAY['7', '8']"},
}


def plan_of(connection: psycopg.Connection[Any], name: str) -> str:
    """Give the generic plan of a statement: the one that a worker runs with after a few executions."""
    given = GIVEN[name]
    query = TaskRepository.queries[name]
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${list(given).index(found[1]) + 1}", query)
    connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    connection.execute(f"PREPARE {name} AS {numbered}".encode())
    arguments = f"({', '.join(given.values())})" if given else ""
    row = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE {name}{arguments}".encode()).fetchone()
    return json.dumps(row[0] if row else None)


@pytest.fixture
def database(own_database: TestDatabase) -> TestDatabase:
    """Statistics stay when rows are deleted, so the plans are made in a database of its own."""
    return own_database


def test_no_statement_reads_the_ended_tasks(database: TestDatabase, subtests: pytest.Subtests) -> None:
    with psycopg.connect(database.url()) as connection:
        for statement in FILL:
            connection.execute(statement.encode(), {"hash": HASH})
        for name in GIVEN:
            with subtests.test(name):
                plan = plan_of(connection, name)
                scanned = re.findall(r'"Seq Scan"[^{}]*"Relation Name": "(\w+)"', plan)
                assert "dag_tasks" not in scanned
        claim = plan_of_claim(connection)
        assert '"Sort"' not in claim
        assert claim.count("dag_tasks_queue_priority_turn_available_at_task_id_idx") == 2
        connection.rollback()


def plan_of_claim(connection: psycopg.Connection[Any]) -> str:
    connection.execute("DEALLOCATE claim_tasks")
    return plan_of(connection, "claim_tasks")
