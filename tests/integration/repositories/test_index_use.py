"""The questions that are asked all the time are answered by the index that was made for them, not by a scan."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb
from tests.conftest import new_database
from tests.integration.repositories.rows import HASH, LATER, NOW

from graticule.repositories.job_views import JobFilter
from graticule.repositories.queries import load_queries

# Enough rows that a scan would cost more: 100 jobs with history, of which few are active.
FILL: tuple[LiteralString, ...] = (
    """
    INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
    VALUES (%(hash)s, 'flow', '1', 'Flow', '{}')
    """,
    """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, ended_at, owner_id,
                                 created_at, idempotency_key, correlation_id, submitted_by)
    SELECT 'job-' || n, 'flow_' || n %% 7, '1', %(hash)s,
           (CASE WHEN n %% 100 = 0 THEN 'running' ELSE 'completed' END)::dagapp.job_status,
           CASE WHEN n %% 100 = 0 THEN NULL ELSE %(now)s::timestamptz END, 'owner-' || n %% 4,
           %(now)s::timestamptz + n * interval '1 second', 'key-' || n, 'batch-' || n / 20,
           CASE WHEN n <= 400 THEN 'old' WHEN n %% 100 = 0 THEN 'rare' ELSE 'common' END
    FROM generate_series(1, 4000) n
    """,
    """
    INSERT INTO dagapp.dag_nodes (job_id, node_id, node_type, status, ready_at, deadline_at)
    SELECT 'job-' || n %% 100 + 1, 'node-' || n, 'task',
           (CASE n %% 50 WHEN 0 THEN 'ready' WHEN 1 THEN 'running' ELSE 'pending' END)::dagapp.node_status, %(now)s,
           CASE WHEN n %% 50 = 1 THEN %(now)s::timestamptz + n * interval '1 second' END
    FROM generate_series(1, 4000) n
    """,
    """
    INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, processed_at)
    SELECT 't' || n, 'job-' || n %% 100, 'node', 'completed',
           CASE WHEN n %% 20 = 0 THEN NULL ELSE %(now)s::timestamptz END
    FROM generate_series(1, 4000) n
    """,
    """
    INSERT INTO dagapp.dag_tasks (task_id, job_id, node_id, queue, handler, status, priority, available_at)
    SELECT 't' || n, 'job-' || n %% 100 + 1, 'node', 'queue-' || n %% 3, 'echo',
           (CASE WHEN n %% 10 = 0 THEN 'queued' ELSE 'done' END)::dagapp.message_status, n %% 11, %(now)s
    FROM generate_series(1, 4000) n
    """,
    """
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type)
    SELECT lpad(to_hex(n), 32, '0'), 'ddh', jsonb_build_object('dataset_id', 'd' || n %% 400, 'resource_id', n),
           'raster'
    FROM generate_series(1, 4000) n
    """,
    """
    INSERT INTO dagapp.dag_job_events (event_type, job_id, asset_id)
    SELECT 'job_created', 'job-' || n %% 100, lpad(to_hex(n %% 100), 32, '0') FROM generate_series(1, 4000) n
    """,
)
ANALYZED: LiteralString = (
    "ANALYZE dagapp.dag_jobs, dagapp.dag_nodes, dagapp.dag_task_results, dagapp.dag_tasks, dagapp.geospatial_assets,"
    " dagapp.dag_job_events"
)


@pytest.fixture(scope="module")
def filled() -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a transaction of the administrator on a database with history, for all tests: to write it takes longest."""
    with new_database() as created, psycopg.connect(created.url()) as connection:
        for statement in FILL:
            connection.execute(statement, {"hash": HASH, "now": NOW})
        connection.execute(ANALYZED)
        yield connection
        connection.rollback()


@pytest.fixture
def full(filled: psycopg.Connection[TupleRow]) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give that transaction; what a test changes in it is rolled back."""
    with filled.transaction(force_rollback=True):
        yield filled


def _indexes(plan: Any) -> Iterator[str]:
    """Give what a plan reads: the names of indexes, and tables that it scans."""
    if "Index Name" in plan:
        yield plan["Index Name"]
    elif plan["Node Type"] == "Seq Scan":
        yield f"all of {plan['Relation Name']}"
    for part in plan.get("Plans", ()):
        yield from _indexes(part)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def _explained(
    connection: psycopg.Connection[TupleRow], query: str, parameters: dict[str, Any]
) -> tuple[set[str], str]:
    row = connection.execute(f"EXPLAIN (FORMAT JSON) {query}".encode(), parameters).fetchone()
    plan = row[0][0]["Plan"] if row else {}
    return set(_indexes(plan)), json.dumps(plan)


def _query(file: str, name: str) -> str:
    return load_queries(file)[name]


OF_DATASET = "SELECT * FROM dagapp.geospatial_assets WHERE platform_refs @> %(refs)s"
OF_OWNER = "SELECT * FROM dagapp.dag_jobs WHERE owner_id = %(owner)s AND status IN ('pending', 'running')"
EXPIRED = (
    "SELECT * FROM dagapp.dag_nodes WHERE status IN ('dispatched', 'running') AND deadline_at <= %(now)s"
    " ORDER BY deadline_at LIMIT 100"
)
RETRIES = "SELECT * FROM dagapp.dag_nodes WHERE status = 'ready' AND ready_at <= %(now)s"
NEXT_TASK = (
    "SELECT * FROM dagapp.dag_tasks WHERE queue = %(queue)s AND status = 'queued' AND available_at <= %(now)s"
    " ORDER BY priority DESC, turn, available_at, task_id LIMIT 5 FOR UPDATE SKIP LOCKED"
)
LIST_JOBS = _query("job_views.sql", "list_jobs_without_results")
LIST_BY_TEXT = _query("job_views.sql", "list_jobs_by_text")
FIRST_PAGE: dict[str, Any] = {
    **JobFilter().parameters(),
    "cursor_created_at": None,
    "cursor_job_id": None,
    "limit": 50,
    "large": 8192,
}
LATER_PAGE = {**FIRST_PAGE, "cursor_created_at": NOW + timedelta(seconds=100), "cursor_job_id": "job-100"}
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "unprocessed results of a job": (
        _query("results.sql", "unprocessed_results"),
        {"job_id": "job-20", "limit": 100},
        "dag_task_results_job_id_result_id_idx",
    ),
    "active jobs of an owner": (OF_OWNER, {"owner": "owner-0"}, "dag_jobs_owner_id_idx"),
    "assets by refs": (
        OF_DATASET,
        {"refs": Jsonb({"dataset_id": "d7"})},
        "geospatial_assets_platform_refs_idx",
    ),
    "deadlines": (EXPIRED, {"now": LATER}, "dag_nodes_deadline_at_idx"),
    "retries whose time has come": (RETRIES, {"now": LATER}, "dag_nodes_ready_at_idx"),
    "the next tasks of a queue": (
        NEXT_TASK,
        {"queue": "queue-1", "now": LATER},
        "dag_tasks_queue_priority_turn_available_at_task_id_idx",
    ),
    "a job by its idempotency key": (
        _query("jobs.sql", "find_job_by_idempotency_key"),
        {"idempotency_key": "key-7"},
        "dag_jobs_idempotency_key_idx",
    ),
    "the first page of jobs": (LIST_JOBS, FIRST_PAGE, "dag_jobs_created_at_job_id_idx"),
    "a later page of jobs": (LIST_JOBS, LATER_PAGE, "dag_jobs_created_at_job_id_idx"),
    "jobs of a status": (LIST_JOBS, {**FIRST_PAGE, "status": "running"}, "dag_jobs_status_created_at_job_id_idx"),
    "later jobs of a workflow": (
        LIST_JOBS,
        {**LATER_PAGE, "workflow_id": "flow_3"},
        "dag_jobs_workflow_id_created_at_job_id_idx",
    ),
    "jobs of one who submitted long ago": (
        LIST_JOBS,
        {**FIRST_PAGE, "submitted_by": "old"},
        "dag_jobs_submitted_by_created_at_job_id_idx",
    ),
}


def test_each_question_uses_its_index(full: psycopg.Connection[TupleRow], subtests: pytest.Subtests) -> None:
    for name, (query, parameters, index) in CASES.items():
        with subtests.test(name):
            assert _explained(full, query, parameters)[0] == {index}


def test_jobs_of_one_correlation_are_read_newest_first_without_a_sort(full: psycopg.Connection[TupleRow]) -> None:
    used, plan = _explained(full, LIST_JOBS, {**LATER_PAGE, "correlation_id": "batch-7"})
    assert used == {"dag_jobs_correlation_id_idx"}
    assert '"Sort"' not in plan


# What a word finds, by the index of its part.
WORDS = {
    "4e4e": "dag_jobs_beginning",
    "0123456789abcdef0123456789abcdef": "dag_jobs_asset_id_version_ordinal_idx",
    "batch-7": "dag_jobs_correlation_id_idx",
    "key-7": "dag_jobs_idempotency_key_idx",
    "old": "dag_jobs_submitted_by_created_at_job_id_idx",
    "flow_3": "dag_jobs_workflow_id_created_at_job_id_idx",
    "6f1f6b0e-5d5b-4d5c-9f66-0b8f0f5f2a11": "platform_requests_pkey",
}


@pytest.mark.parametrize("more", [{}, {"status": "running"}, {"workflow_id": "flow_1"}], ids=str)
@pytest.mark.parametrize("page", [FIRST_PAGE, LATER_PAGE], ids=["first", "later"])
def test_jobs_are_found_by_a_word_without_reading_all_of_them(
    full: psycopg.Connection[TupleRow], subtests: pytest.Subtests, page: dict[str, Any], more: dict[str, Any]
) -> None:
    for word, index in WORDS.items():
        with subtests.test(word):
            used, _ = _explained(full, LIST_BY_TEXT, {**page, **JobFilter(text=word).parameters(), **more})
            assert "all of dag_jobs" not in used
            assert more or index in used


def test_the_next_tasks_come_in_the_order_of_the_index_without_a_sort(full: psycopg.Connection[TupleRow]) -> None:
    assert '"Sort"' not in _explained(full, NEXT_TASK, {"queue": "queue-1", "now": LATER})[1]


def test_a_page_of_tasks_without_a_worker_reads_no_more_than_it_returns(full: psycopg.Connection[TupleRow]) -> None:
    full.execute("UPDATE dagapp.dag_tasks SET priority = 3")
    given = {"queue": "queue-1", "since": NOW - timedelta(days=1), "until": LATER, "limit": 10, "after_priority": 10}
    given |= {"after_turn": -1, "after_at": NOW, "after_id": ""}
    query = f"EXPLAIN (ANALYZE, FORMAT JSON) {_query('unserved_queues.sql', 'waiting_tasks')}"
    (found,) = full.execute(query.encode(), given).fetchone() or ({},)
    read = [node["Actual Rows"] * node["Actual Loops"] for node in _nodes(found[0]["Plan"]) if "Index Name" in node]
    assert 10 <= sum(read) <= 11


def test_pages_of_tasks_without_a_worker_have_each_task_once(full: psycopg.Connection[TupleRow]) -> None:
    full.execute("UPDATE dagapp.dag_tasks SET turn = abs(hashtext(task_id)) % 5")
    wanted = "SELECT task_id FROM dagapp.dag_tasks WHERE queue = 'queue-1' AND status = 'queued' ORDER BY task_id"
    query = _query("unserved_queues.sql", "waiting_tasks").encode()
    given: dict[str, Any] = {"queue": "queue-1", "since": NOW - timedelta(days=1), "until": LATER, "limit": 7}
    found, after = list[str](), (10, -1, NOW, "")
    while page := full.execute(
        query, given | dict(zip(("after_priority", "after_turn", "after_at", "after_id"), after, strict=True))
    ).fetchall():
        found += [task_id for _, _, _, task_id, *_ in page]
        after = page[-1][:4]
    assert sorted(found) == sorted(task_id for (task_id,) in full.execute(wanted).fetchall())
    given |= {"since": NOW, "after_priority": 10, "after_turn": -1, "after_at": NOW, "after_id": ""}
    assert not full.execute(query, given).fetchall(), "those that were seen before are left out"


def test_the_events_of_a_job_are_read_by_the_index_of_each_partition(full: psycopg.Connection[TupleRow]) -> None:
    full.execute("SET LOCAL enable_seqscan = off")  # the empty partitions would else be scanned
    for name, key in (("events_of_job", "job_id"), ("events_of_asset", "asset_id")):
        query = _query("events.sql", name)
        used, plan = _explained(full, query, {key: f"{'0' * 31}7", "after": 0, "limit": 10})
        assert used
        assert all(f"{key}_event_id_idx" in index for index in used)
        assert '"Sort"' not in plan


def test_the_state_is_read_without_what_has_ended(full: psycopg.Connection[TupleRow]) -> None:
    given = {"owner_id": "owner-0", "job_queue": "jobs", "threshold": 120}
    given |= {"bound": 100_000, "most_queues": 100, "most_damaged": 100}
    used, _ = _explained(full, _query("operations.sql", "state_now"), given)
    small = {
        "dag_workers",
        "dag_orchestrators",
        "dag_job_messages",
        "dag_callbacks",
        "output_checks",
    }  # no rows here: scanned or not
    assert not {each for each in used if each.startswith("all of")} - {f"all of {table}" for table in small}
    assert {
        "dag_jobs_status_created_at_job_id_idx",
        "dag_jobs_owner_id_idx",
        "dag_task_results_job_id_result_id_idx",
        "dag_tasks_lease_expires_at_idx",
        "dag_tasks_queue_created_at_idx",
        "dag_tasks_queue_priority_turn_available_at_task_id_idx",
    } <= used
