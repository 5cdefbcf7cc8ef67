"""Queues, processes, numbers and dead letters over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.integration.api.stored import add_job
from tests.integration.api.test_bootstrap_access import problem_of
from tests.integration.api.test_job_lists import all_pages
from tests.integration.repositories import rows

from graticule.core.ids import OwnerId, WorkerId
from graticule.core.models import Orchestrator, Worker
from graticule.core.models.engine import NodeType
from graticule.core.states import JobStatus, MessageStatus, NodeStatus
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.processes import OrchestratorRepository, WorkerRepository
from graticule.repositories.tasks import TaskRepository

LEASED: dict[str, Any] = {"status": MessageStatus.LEASED, "leased_by": "w-alive", "lease_expires_at": rows.LATER}
DEAD: dict[str, Any] = {"status": MessageStatus.DEAD, "dead_reason": "poison"}
LOCK_KEY = 1


async def items(client: httpx.AsyncClient, path: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["next"] is None
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def process(seconds_ago: float, *, stopped: bool = False) -> dict[str, Any]:
    seen = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    times = {"started_at": rows.NOW, "heartbeat_at": seen, "stopped_at": seen if stopped else None}
    return {"hostname": "h", "process_id": 1, "program_version": "1", **times}


async def add_processes(connection: Connection) -> None:
    """Add a process of each state; the connection is the session of the orchestrator that is alive."""
    await connection.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
    for name, seconds, stopped in (("alive", 1.0, False), ("stale", 500.0, False), ("stopped", 1.0, True)):
        values = process(seconds, stopped=stopped)
        worker = Worker(worker_id=WorkerId(f"w-{name}"), queues=["q", "r"], concurrency=4, **values)
        await WorkerRepository(connection).insert(worker)
        await OrchestratorRepository(connection).insert(
            Orchestrator(owner_id=OwnerId(f"o-{name}"), lock_key=LOCK_KEY, **values)
        )


async def test_queues_show_their_depths_and_who_serves_them(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_job(connection, "job")
    await add_processes(connection)
    waiting = datetime.now(UTC) - timedelta(seconds=100)
    later = datetime.now(UTC) + timedelta(hours=1)
    changes: list[dict[str, Any]] = [
        {"available_at": waiting},
        {"available_at": datetime.now(UTC)},
        {"available_at": later},
        LEASED,
        DEAD,
        {"status": MessageStatus.DONE},
        {"status": MessageStatus.WITHDRAWN},
    ]
    for number, change in enumerate(changes):
        await TaskRepository(connection).insert(rows.task(f"t{number}", **change))
    await MessageRepository(connection).insert(rows.message(**DEAD))
    found = {queue["queue"]: queue for queue in await items(admin_client, "queues")}
    assert set(found) == {"q", "r", "orchestrator-jobs"}
    numbers = {name: found["q"][name] for name in ("queued", "delayed", "leased", "dead", "workers")}
    assert numbers == {"queued": 2, "delayed": 1, "leased": 1, "dead": 1, "workers": 1}
    assert 99 < found["q"]["oldest_seconds"] < 300
    assert (found["r"]["queued"], found["r"]["workers"], found["r"]["oldest_seconds"]) == (0, 1, None)
    assert (found["orchestrator-jobs"]["dead"], found["orchestrator-jobs"]["workers"]) == (1, 0)


@pytest.mark.parametrize(
    ("path", "key", "count"), [("workers", "w", "active_tasks"), ("orchestrators", "o", "active_jobs")]
)
async def test_processes_show_whether_they_are_there_and_what_they_hold(
    admin_client: httpx.AsyncClient, connection: Connection, path: str, key: str, count: str
) -> None:
    await add_processes(connection)
    for number, status in enumerate([JobStatus.RUNNING, JobStatus.PENDING, JobStatus.COMPLETED]):
        await add_job(connection, f"job-{number}", status=status, owner_id="o-alive")
    for number in range(2):
        await TaskRepository(connection).insert(rows.task(f"t{number}", job_id="job-0", **LEASED))
    name = "worker_id" if path == "workers" else "owner_id"
    states = {each[name]: (each["state"], each[count]) for each in await items(admin_client, path)}
    assert states == {f"{key}-alive": ("alive", 2), f"{key}-stale": ("stale", 0)}
    every = {each[name]: each["state"] for each in await items(admin_client, f"{path}?stopped=true")}
    assert every == {f"{key}-alive": "alive", f"{key}-stale": "stale", f"{key}-stopped": "stopped"}


async def test_an_orchestrator_whose_session_has_ended_is_gone_at_once(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_processes(connection)
    await connection.execute("SELECT pg_advisory_unlock(%s)", [LOCK_KEY])
    states = {each["owner_id"]: each["state"] for each in await items(admin_client, "orchestrators")}
    assert states == {"o-alive": "gone", "o-stale": "stale"}


async def test_numbers_of_now_and_of_the_last_days(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    now = datetime.now(UTC)

    async def ended(name: str, status: JobStatus, ago: timedelta, seconds: int) -> None:
        times: dict[str, Any] = {"started_at": now - ago - timedelta(seconds=seconds), "ended_at": now - ago}
        await add_job(connection, name, status=status, **times)

    for number in range(1, 11):
        await ended(f"c{number}", JobStatus.COMPLETED, timedelta(hours=1), number)
    await ended("old", JobStatus.COMPLETED, timedelta(days=3), 1000)
    await ended("ancient", JobStatus.COMPLETED, timedelta(days=30), 100_000)
    await ended("f", JobStatus.FAILED, timedelta(minutes=1), 50)
    await add_job(connection, "r", status=JobStatus.RUNNING)
    answer = await admin_client.get("/api/v1/stats")
    assert answer.status_code == 200, answer.text
    stats = answer.json()
    assert stats["jobs"] == {"pending": 0, "running": 1, "completed": 12, "failed": 1, "cancelled": 0}
    assert (stats["completed_24h"], stats["failed_24h"], stats["cancelled_24h"]) == (10, 1, 0)
    assert stats["jobs_per_hour"] == round(11 / 24, 2)
    (flow,) = stats["durations_7d"]
    assert (flow["workflow_id"], flow["jobs"], flow["p50_seconds"]) == ("flow", 11, 6.0)
    assert flow["p95_seconds"] == pytest.approx(505)


async def test_numbers_of_an_empty_database(admin_client: httpx.AsyncClient) -> None:
    stats = (await admin_client.get("/api/v1/stats")).json()
    assert (stats["hours"], stats["durations_7d"], stats["jobs_per_hour"]) == ([], [], 0.0)
    for path in ("queues", "workers", "orchestrators", "dead-letters"):
        assert await items(admin_client, path) == []


async def add_dead_letters(connection: Connection) -> None:
    await add_job(connection, "job", status=JobStatus.RUNNING)
    for number in range(4):
        created = rows.NOW + timedelta(seconds=number)
        node_id = f"node{number}"
        awaited = {"task_id": f"task-{number}"} if number else {}
        await NodeRepository(connection).insert(
            rows.node(node_id, node_type=NodeType.TASK, status=NodeStatus.DISPATCHED, **awaited)
        )
        task = rows.task(f"task-{number}", node_id=node_id, created_at=created, **DEAD)
        await TaskRepository(connection).insert(task)
        message = rows.message(f"message-{number}", created_at=created, body={"workflow_id": "x"}, **DEAD)
        await MessageRepository(connection).insert(message)


@pytest.mark.parametrize("limit", [1, 3, 8, 100])
async def test_dead_letters_of_both_kinds_are_one_list_in_pages(
    admin_client: httpx.AsyncClient, connection: Connection, limit: int
) -> None:
    await add_dead_letters(connection)
    found = await all_pages(admin_client, "/api/v1/dead-letters", limit=limit)
    expected = [f"{kind}-{number}" for number in (3, 2, 1, 0) for kind in ("task", "message")]
    assert [letter["id"] for letter in found] == expected
    tasks = await all_pages(admin_client, "/api/v1/dead-letters", limit=limit, kind="task", queue="q")
    assert [letter["id"] for letter in tasks] == expected[::2]
    assert (tasks[0]["reason"], tasks[0]["node_id"], tasks[0]["handler"]) == ("poison", "node3", "echo")
    jobs = await all_pages(admin_client, "/api/v1/dead-letters", limit=limit, kind="job")
    assert [letter["body"] for letter in jobs] == [{"workflow_id": "x"}] * 4


async def test_a_dead_letter_is_tried_again_or_taken_off_the_list(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    await add_dead_letters(connection)
    letters = "/api/v1/dead-letters"
    problem = problem_of(await admin_client.post(f"{letters}/task-0/requeue"), 409, "conflict")
    assert "retry" in problem["hint"]
    for method, path in (
        ("POST", "task-1/requeue"),
        ("POST", "message-1/requeue"),
        ("POST", "task-2/discard"),
        ("DELETE", "message-2"),
        ("DELETE", "task-3"),
        ("POST", "message-3/discard"),
    ):
        answer = await admin_client.request(method, f"{letters}/{path}")
        assert answer.status_code == 200, answer.text
        again = await admin_client.request(method, f"{letters}/{path}")
        problem_of(again, 404, "not_found")
    assert [letter["id"] for letter in await items(admin_client, "dead-letters")] == ["task-0", "message-0"]
    task = await TaskRepository(connection).get(task_id="task-1")
    assert (task.status, task.delivery_count, task.dead_reason) == (MessageStatus.QUEUED, 0, None)
    message = await MessageRepository(connection).get(message_id="message-1")
    assert message.status is MessageStatus.QUEUED
