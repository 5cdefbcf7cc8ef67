"""Statements of earlier monitoring tools run as they are, with the views of `dagapp_compat` in front."""

from collections.abc import AsyncIterator
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.conftest import TestDatabase
from tests.integration.api.running import RunningApi

from graticule.core.table import DatabaseRole


@pytest.fixture
async def monitoring(api: RunningApi, database: TestDatabase) -> AsyncIterator[psycopg.AsyncConnection[dict[str, Any]]]:
    """Connect as the gateway's role, with the views in front; a job has run, and another one waits for a worker."""
    await api.run_echo(message="hello")
    waiting = await api.submit("echo_test", message="later")
    await api.task(waiting, "echo_handler")
    options = "-c search_path=dagapp_compat -c default_transaction_read_only=off"
    url = database.url(DatabaseRole.GATEWAY)
    async with await psycopg.AsyncConnection.connect(
        url, autocommit=True, options=options, row_factory=dict_row
    ) as opened:
        yield opened


async def rows(monitoring: psycopg.AsyncConnection[dict[str, Any]], query: LiteralString) -> list[dict[str, Any]]:
    return await (await monitoring.execute(query)).fetchall()


async def test_the_jobs_of_an_owner_are_found_with_its_heartbeat(
    monitoring: psycopg.AsyncConnection[dict[str, Any]],
) -> None:
    (job,) = await rows(
        monitoring, "SELECT * FROM dag_jobs WHERE status IN ('PENDING', 'RUNNING') AND owner_heartbeat_at IS NOT NULL"
    )
    owned = await monitoring.execute(
        "SELECT * FROM dag_jobs WHERE owner_id = %(my_owner_id)s AND status IN ('PENDING', 'RUNNING')",
        {"my_owner_id": job["owner_id"]},
    )
    assert [each["job_id"] for each in await owned.fetchall()] == [job["job_id"]]
    assert (job["workflow_id"], job["status"], job["input_params"]) == ("echo_test", "RUNNING", {"message": "later"})
    orphans = await rows(
        monitoring,
        "SELECT job_id FROM dag_jobs"
        " WHERE status IN ('PENDING', 'RUNNING') AND owner_heartbeat_at < NOW() - INTERVAL '2 minutes'",
    )
    assert orphans == []
    (ended,) = await rows(monitoring, "SELECT completed_at, updated_at FROM dag_jobs WHERE status = 'COMPLETED'")
    assert ended["completed_at"] is not None


async def test_nodes_results_and_events_have_their_earlier_names(
    monitoring: psycopg.AsyncConnection[dict[str, Any]],
) -> None:
    nodes = await rows(
        monitoring, "SELECT node_id, status, task_id, output, retry_count FROM dag_node_states ORDER BY 1, 2"
    )
    assert [(node["node_id"], node["status"]) for node in nodes] == [
        ("echo_handler", "COMPLETED"),
        ("echo_handler", "DISPATCHED"),
        ("end", "COMPLETED"),
        ("end", "PENDING"),
        ("start", "COMPLETED"),
        ("start", "COMPLETED"),
    ]
    assert await rows(monitoring, "SELECT * FROM dag_task_results WHERE processed = false") == []
    (result,) = await rows(
        monitoring, "SELECT task_id, status, output, worker_id FROM dag_task_results WHERE processed"
    )
    assert (result["status"], result["worker_id"]) == ("COMPLETED", "worker-1")
    events = await rows(
        monitoring,
        "SELECT event_type, event_status, event_data, checkpoint_name FROM dag_job_events"
        " WHERE job_id = (SELECT job_id FROM dag_jobs WHERE status = 'COMPLETED') ORDER BY event_id",
    )
    assert [event["event_type"] for event in events] == [
        *("job_created", "node_ready", "node_dispatched", "job_started", "node_completed", "job_completed")
    ]
    assert {(event["event_status"], event["checkpoint_name"]) for event in events} == {("success", None)}


async def test_a_job_has_a_version_and_a_node_as_many_retries_as_its_workflow_allows(
    monitoring: psycopg.AsyncConnection[dict[str, Any]], database: TestDatabase
) -> None:
    columns = "SELECT job_id, workflow_id, status, correlation_id, version FROM dag_jobs WHERE status = 'RUNNING'"
    (before,) = await rows(monitoring, columns)
    nodes = await rows(monitoring, "SELECT node_id, max_retries FROM dag_node_states WHERE status = 'DISPATCHED'")
    assert nodes == [{"node_id": "echo_handler", "max_retries": 3}]
    assert await rows(monitoring, "SELECT max_retries FROM dag_node_states WHERE node_id = 'start' LIMIT 1") == [
        {"max_retries": None}
    ]
    async with await psycopg.AsyncConnection.connect(database.url(DatabaseRole.ORCHESTRATOR), autocommit=True) as owner:
        await owner.execute("UPDATE dagapp.dag_jobs SET updated_at = now() WHERE job_id = %s", [before["job_id"]])
    (after,) = await rows(monitoring, columns)
    assert after["version"] > before["version"]


async def test_a_child_has_the_retries_of_its_fan_out(
    api: RunningApi, monitoring: psycopg.AsyncConnection[dict[str, Any]]
) -> None:
    job_id = await api.submit("retry_fan_out_test", count=2)
    await api.task(job_id, "split__1")
    children = await rows(
        monitoring, "SELECT node_id, max_retries FROM dag_node_states WHERE parent_node_id = 'split' ORDER BY node_id"
    )
    assert children == [{"node_id": f"split__{index}", "max_retries": 20} for index in range(2)]


async def test_statuses_are_in_capitals_and_in_nothing_else(
    monitoring: psycopg.AsyncConnection[dict[str, Any]],
) -> None:
    assert await rows(monitoring, "SELECT job_id FROM dag_jobs WHERE status IN ('pending', 'running')") == []
    assert await rows(monitoring, "SELECT job_id FROM dag_jobs WHERE upper('running') = status") != []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dag_jobs SET owner_heartbeat_at = NOW() WHERE status = 'RUNNING'",
        "UPDATE dag_task_results SET task_id = task_id",
        "DELETE FROM dag_job_events",
        "INSERT INTO dag_task_results (task_id, job_id) VALUES ('a', 'b')",
    ],
)
async def test_nothing_is_written_through_the_views(
    monitoring: psycopg.AsyncConnection[dict[str, Any]], statement: LiteralString
) -> None:
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)):
        await monitoring.execute(statement)
