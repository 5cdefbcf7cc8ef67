"""A session that names its rows goes to them by an index, however small the tables were when the plan was made."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow
from tests.conftest import TestDatabase

from graticule.repositories.database import BY_KEY
from graticule.repositories.queries import load_queries
from graticule.repositories.step_parts import Part, write_statement

OF_WORKERS = ("claim_tasks", "renew_leases", "withdrawn_tasks", "finish_tasks", "report_running", "complete_tasks")
STEPS, TASKS = load_queries("steps.sql"), load_queries("tasks.sql")
STATEMENTS = {
    **{f"write {part}": write_statement((part,)).text for part in Part},
    "write all": write_statement(tuple(Part)).text,
    **{name: STEPS.numbered(name).text for name in STEPS},
    **{name: TASKS.numbered(name).text for name in (*OF_WORKERS, "abandon_tasks")},
}


FILL = [
    "dag_jobs (job_id, workflow_id, workflow_version, workflow_hash) SELECT 'j' || n, 'f', '1', repeat('0', 64)",
    "dag_nodes (job_id, node_id, node_type, status) SELECT 'j1', 'n' || n, 'task', 'running'",
    "dag_tasks (task_id, job_id, node_id, queue, handler, available_at) SELECT 't' || n, 'j1', 'n', 'q', 'h', now()",
    "dag_task_results (task_id, job_id, node_id, status) SELECT 't' || n, 'j1', 'n' || n, 'completed'",
    "dag_checkpoints (job_id, node_id, task_id, phase) SELECT 'j1', 'n' || n, 't', 'p'",
]


# PostgreSQL counts the rows of a table only after 50 of them were changed.
@pytest.fixture(params=[0, 20, 100, 400], ids=lambda size: f"{size} rows")
def session(own_database: TestDatabase, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a session by key on new tables of so many rows: what other tests left behind changes plans."""
    with psycopg.connect(own_database.url(), prepare_threshold=None) as connection:
        for setting in BY_KEY:
            connection.execute(f"SET {setting}".encode())
        connection.execute(
            "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)"
            " VALUES (repeat('0', 64), 'f', '1', 'F', '{}')"
        )
        for statement in FILL:
            connection.execute(f"INSERT INTO dagapp.{statement} FROM generate_series(1, {request.param}) n".encode())
        if request.param:
            connection.execute("ANALYZE dagapp.dag_jobs, dagapp.dag_nodes, dagapp.dag_tasks, dagapp.dag_task_results")
        yield connection
        connection.rollback()


def _scans(plan: dict[str, Any]) -> Iterator[str]:
    """Name what a plan reads as a whole."""
    is_index = plan["Node Type"] in {"Index Scan", "Index Only Scan", "Bitmap Index Scan"}
    if plan["Node Type"] == "Seq Scan" or (is_index and "Index Cond" not in plan):
        yield f"{plan['Node Type']} of {plan.get('Relation Name')} {plan.get('Index Name', '')}"
    for part in plan.get("Plans", ()):
        yield from _scans(part)


def test_no_statement_reads_a_whole_table_or_index(
    session: psycopg.Connection[TupleRow], subtests: pytest.Subtests
) -> None:
    for name, statement in STATEMENTS.items():
        with subtests.test(name):
            assert list(_scans(_plan(session, statement))) == []


def _plan(session: psycopg.Connection[TupleRow], statement: str) -> dict[str, Any]:
    """Give the plan that a session keeps for a statement."""
    session.execute(f"PREPARE planned AS {statement}".encode())
    count = session.execute("SELECT cardinality(parameter_types) FROM pg_prepared_statements").fetchone() or (0,)
    row = session.execute(f"EXPLAIN (FORMAT JSON) EXECUTE planned({', '.join(['NULL'] * count[0])})".encode())
    ((explained,),) = row.fetchall()
    session.execute("DEALLOCATE planned")
    plan: dict[str, Any] = explained[0]["Plan"]
    return plan


BY_NODE = ("write nodes", "write completed_children", "read_children", "sizes_of_child_outputs", "child_outputs")


@pytest.mark.parametrize("session", [400], indirect=True)
def test_nodes_are_looked_up_one_by_one_although_most_jobs_have_few(
    session: psycopg.Connection[TupleRow], subtests: pytest.Subtests
) -> None:
    """Of a fan-out of 10,000, all nodes of the job would be compared with all that are named."""
    session.execute("UPDATE dagapp.dag_nodes SET job_id = replace(node_id, 'n', 'j')")
    session.execute("ANALYZE dagapp.dag_nodes")
    for name in BY_NODE:
        with subtests.test(name):
            conditions = list(_conditions(_plan(session, STATEMENTS[name]), "dag_nodes_pkey"))
            assert conditions
            assert all("node_id" in condition for condition in conditions)


def _conditions(plan: dict[str, Any], index: str) -> Iterator[str]:
    if plan.get("Index Name") == index:
        yield plan.get("Index Cond", "")
    for part in plan.get("Plans", ()):
        yield from _conditions(part, index)
