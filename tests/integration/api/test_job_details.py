"""One job in full: progress, nodes, attempts, times, graph."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import psycopg
import pytest
from tests.integration.api.stored import ORDER, add_job, add_job_under_way, graph
from tests.integration.repositories import rows

from graticule.core.models import Checkpoint, Orchestrator
from graticule.core.states import JobStatus, MessageStatus
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection
from graticule.repositories.job_views import JobViews
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.processes import OrchestratorRepository
from graticule.repositories.tasks import TaskRepository

JOBS = "/api/v1/jobs"


async def got(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(f"{JOBS}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_job_shows_its_progress_and_its_owner(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    await add_job_under_way(connection)
    process: dict[str, Any] = {"hostname": "h", "process_id": 1, "program_version": "1", "started_at": rows.NOW}
    owner = Orchestrator(owner_id=rows.OWNER, lock_key=1, heartbeat_at=rows.LATER, **process)
    await OrchestratorRepository(connection).insert(owner)
    await connection.execute("UPDATE dagapp.dag_jobs SET owner_id = %s", [rows.OWNER])
    job = await got(admin_client, "job")
    assert job["status"] == "running"
    assert job["owner_heartbeat_at"] == rows.LATER.isoformat().replace("+00:00", "Z")
    assert job["progress"] == {
        "total": 7,
        "pending": 4,
        "ready": 0,
        "dispatched": 0,
        "running": 1,
        "completed": 2,
        "failed": 0,
        "skipped": 0,
        "children_total": 5,
        "children_started": 3,
        "children_done": 1,
        "children_failed": 1,
        "percent": 33.3,
        "current": ["y_split"],
    }


async def test_a_job_without_an_owner_or_nodes_is_shown_too(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job(connection, "job")
    job = await got(admin_client, "job")
    assert (job["owner_heartbeat_at"], job["progress"]["total"], job["progress"]["percent"]) == (None, 0, 0.0)


@pytest.mark.parametrize("query", ["progress_of_static_nodes", "static_nodes_of_job"])
async def test_progress_does_not_walk_through_the_children(
    connection: Connection, admin: psycopg.AsyncConnection, query: str
) -> None:
    await add_job_under_way(connection, children=5000)
    await admin.execute("ANALYZE dagapp.dag_nodes, dagapp.dag_jobs, dagapp.dag_workflows")
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {JobViews.queries[query]}"
    parameters = {"job_id": "job", "status": None, "large": 1}
    row = await (await admin.execute(statement.encode(), parameters)).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    assert plan["Actual Rows"] == len(ORDER)
    assert plan.get("Rows Removed by Filter", 0) == 0
    assert "dag_nodes_pkey" in str(plan)
    assert all(part.get("Actual Rows", 0) <= len(ORDER) for part in plan.get("Plans", []))


async def test_a_result_in_the_storage_is_read_as_if_it_stood_in_the_row(
    admin_client: httpx.AsyncClient, connection: Connection, tmp_path: Path
) -> None:
    value = {"list": list(range(1000))}
    stored = tmp_path / "storage" / "outputs" / "job"
    stored.mkdir(parents=True)
    (stored / "result.json").write_bytes(orjson.dumps(value))
    await add_job(connection, "job", status=JobStatus.COMPLETED, result_ref="outputs/job/result.json")
    await add_job(connection, "lost", status=JobStatus.COMPLETED, result_ref="outputs/lost.json")
    job = await got(admin_client, "job")
    assert (job["result"], job["omitted"]) == (value, [])
    assert (await admin_client.get("/api/jobs/status/job")).json()["result"] == value
    lost = await got(admin_client, "lost")
    assert (lost["result"], lost["omitted"]) == (None, ["result"])


async def test_a_node_shows_its_output_attempts_and_checkpoint(
    admin_client: httpx.AsyncClient, connection: Connection, tmp_path: Path
) -> None:
    await add_job_under_way(connection)
    (tmp_path / "storage" / "outputs").mkdir(parents=True, exist_ok=True)
    (tmp_path / "storage" / "outputs" / "out.json").write_bytes(b'"from the storage"')
    await connection.execute("UPDATE dagapp.dag_nodes SET output_ref = 'outputs/out.json' WHERE node_id = 'y_split__0'")
    for retry in (0, 1):
        status = MessageStatus.DONE if retry == 0 else MessageStatus.QUEUED
        created = rows.NOW + timedelta(seconds=retry)
        await TaskRepository(connection).insert(
            rows.task(
                f"job_y_split__0_{retry}", node_id="y_split__0", status=status, retry_count=retry, created_at=created
            )
        )
    key = {"job_id": "job", "node_id": "y_split__0", "task_id": "job_y_split__0_0"}
    await CheckpointRepository(connection).insert(Checkpoint(**key, phase="half", data={"at": 5}, saved_at=rows.NOW))
    node = await got(admin_client, "job/nodes/y_split__0")
    assert node["output"] == "from the storage"
    assert [(attempt["task_id"], attempt["status"]) for attempt in node["attempts"]] == [
        ("job_y_split__0_0", "done"),
        ("job_y_split__0_1", "queued"),
    ]
    assert (node["checkpoint"]["phase"], node["checkpoint"]["data"]) == ("half", {"at": 5})
    plain = await got(admin_client, "job/nodes/bbbb")
    assert (plain["output"], plain["attempts"], plain["checkpoint"]) == ({"small": True}, [], None)


async def test_the_timeline_folds_the_children_into_their_fan_out(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job_under_way(connection)
    found = await got(admin_client, "job/timeline")
    assert [item["node_id"] for item in found["items"]] == ORDER
    by_id = {item["node_id"]: item for item in found["items"]}
    now, later = (moment.isoformat().replace("+00:00", "Z") for moment in (rows.NOW, rows.LATER))
    assert by_id["bbbb"]["children"] is None
    assert (by_id["bbbb"]["started_at"], by_id["bbbb"]["ended_at"]) == (now, later)
    assert by_id["y_split"]["children"] == {
        "count": 5,
        "first_dispatched_at": now,
        "last_dispatched_at": now,
        "first_started_at": now,
        "last_started_at": (rows.NOW + timedelta(seconds=30)).isoformat().replace("+00:00", "Z"),
        "first_ended_at": later,
        "last_ended_at": later,
    }


async def test_the_graph_is_the_one_that_the_job_pinned(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job(connection, "job")
    assert await got(admin_client, "job/graph") == graph().model_dump(mode="json")
    answer = await admin_client.get(f"{JOBS}/job/graph", params={"format": "mermaid"})
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith(("graph", "flowchart"))
    assert "y_split" in answer.text


async def test_the_short_forms_of_a_status(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    await add_job(connection, "job", status=JobStatus.FAILED, error_message="it broke")
    for path, word in (("/api/jobs/status/job", "FAILED"), ("/api/v1/status/job", "failed")):
        status = (await admin_client.get(path)).json()
        assert (status["job_id"], status["status"], status["error"]) == ("job", word, "it broke")
        assert status["progress"]["total"] == 0
    assert (await NodeRepository(connection).of_job("job")) == []  # type: ignore[arg-type]
