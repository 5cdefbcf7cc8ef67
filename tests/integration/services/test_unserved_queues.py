"""Nodes that wait for a worker that is not there say so in the history of their job, once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.integration.services.engine import QUEUE, Bench, compiled, flow

from graticule.core.ids import OwnerId
from graticule.core.models import Event, Worker
from graticule.core.models.engine import EventType
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.repositories.job_views import JobFilter, JobViews
from graticule.repositories.processes import WorkerRepository
from graticule.repositories.tasks import TaskRepository
from graticule.repositories.unserved_queues import UnservedQueueRepository, WaitingTask
from graticule.services import unserved_queues
from graticule.services.unserved_queues import QueueWarnings, WaitingNodes, queues_of

ROLE = DatabaseRole.ORCHESTRATOR
OTHER_QUEUE = "gpu"
ONE = flow("""
  start: {type: start, next: a}
  a: {handler: echo, next: end}""")
FAN = flow(
    f"""
  start: {{type: start, next: split}}
  split: {{type: fan_out, source: [1, 2, 3], task: {{handler: echo, queue: "{OTHER_QUEUE}"}}, next: merge}}
  merge: {{type: fan_in, next: end}}""",
    workflow_id="fan",
)


@pytest.fixture
async def bench(emptied_database: TestDatabase, tmp_path: Path) -> AsyncIterator[Bench]:
    async with Database(emptied_database.url(ROLE), ROLE, pool_size=2) as pool:
        made = Bench(pool, tmp_path, ONE, FAN)
        yield made
        await made.check()


def waiting_nodes(bench: Bench, owner: str | None = None) -> WaitingNodes:
    return WaitingNodes(bench.pool, OwnerId(owner or bench.owner_id), threshold_seconds=120)


async def let_wait(bench: Bench, seconds: int = 61) -> None:
    async with bench.pool.connection() as connection:
        await connection.execute(
            "UPDATE dagapp.dag_tasks SET available_at = available_at - make_interval(secs => %s)", [seconds]
        )


async def noted(bench: Bench) -> list[Event]:
    async with bench.pool.connection() as connection:
        listed = await JobViews(connection).jobs(JobFilter(), limit=10)
    events = [event for job in listed for event in await bench.events(job.job_id)]
    return [event for event in events if event.event_type is EventType.NODE_WAITING_FOR_WORKER]


def let_a_minute_pass(nodes: WaitingNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_full_look_at", nodes._full_look_at - unserved_queues.FULL_LOOK_SECONDS)


async def give_jobs_to(bench: Bench, owner: str) -> None:
    async with bench.pool.connection() as connection:
        await connection.execute("UPDATE dagapp.dag_jobs SET owner_id = %s, owner_epoch = owner_epoch + 1", [owner])


async def serve(bench: Bench, *queues: str) -> None:
    now = datetime.now(UTC)
    process = {"hostname": "h", "process_id": 1, "program_version": "1", "concurrency": 1}
    worker = {"worker_id": "w", "queues": list(queues), "started_at": now, "heartbeat_at": now}
    async with bench.pool.connection() as connection:
        await WorkerRepository(connection).insert(Worker.model_validate({**process, **worker}))


async def test_a_node_that_waits_for_a_minute_is_noted_once_with_the_command(bench: Bench) -> None:
    job_id = await bench.submit()
    nodes = waiting_nodes(bench)
    assert await nodes.note() == 0  # it has not waited for a minute
    await let_wait(bench)
    assert [await nodes.note(), await nodes.note(), await waiting_nodes(bench).note()] == [1, 0, 0]
    (event,) = await noted(bench)
    assert (event.job_id, event.node_id, event.owner_epoch) == (job_id, "a", 1)
    assert event.data == {"queue": QUEUE, "tasks": 1, "command": f"graticule worker --queues {QUEUE}"}


async def test_children_are_one_event_of_their_fan_out(bench: Bench) -> None:
    await bench.submit("fan")
    await let_wait(bench)
    assert await waiting_nodes(bench).note() == 1
    (event,) = await noted(bench)
    assert (event.node_id, event.data["tasks"]) == ("split", 3)
    assert event.data["command"] == "graticule worker --queues gpu"


async def test_only_the_owner_notes_and_only_while_nobody_serves_the_queue(bench: Bench) -> None:
    await bench.submit()
    await let_wait(bench)
    assert await waiting_nodes(bench, "another").note() == 0
    await serve(bench, QUEUE)
    assert await waiting_nodes(bench).note() == 0
    async with bench.pool.connection() as connection:
        await connection.execute("UPDATE dagapp.dag_workers SET heartbeat_at = heartbeat_at - interval '1 hour'")
    assert await waiting_nodes(bench).note() == 1


async def test_a_later_job_is_noted_too(bench: Bench) -> None:
    nodes = waiting_nodes(bench)
    for count in (1, 2):
        await bench.submit()
        await let_wait(bench)
        await nodes.note()
        assert len(await noted(bench)) == count


async def test_tasks_that_a_dead_worker_gave_back_are_noted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = waiting_nodes(bench)
    await bench.submit()
    await let_wait(bench, 300)
    async with bench.pool.connection() as connection:
        await connection.execute(
            "UPDATE dagapp.dag_tasks SET status = 'leased', leased_by = 'w', delivery_count = 1,"
            " lease_expires_at = now() - interval '1 s'"
        )
    await bench.submit()
    await let_wait(bench)
    assert await nodes.note() == 1  # of the second job, whose task became available later
    async with bench.pool.connection() as connection:
        await TaskRepository(connection).reap_expired()
    assert await nodes.note() == 0
    let_a_minute_pass(nodes, monkeypatch)
    assert [await nodes.note(), await nodes.note()] == [1, 0]


async def test_tasks_of_a_job_that_changed_hands_are_noted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.submit()
    await let_wait(bench)
    survivor = waiting_nodes(bench, "survivor")
    assert await survivor.note() == 0
    await give_jobs_to(bench, "survivor")
    let_a_minute_pass(survivor, monkeypatch)
    assert [await survivor.note(), await survivor.note()] == [1, 0]
    await give_jobs_to(bench, bench.owner_id)


async def test_a_job_that_takes_a_step_is_noted_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = waiting_nodes(bench)
    await bench.submit()
    await let_wait(bench)
    async with bench.pool.connection() as connection, connection.transaction():
        await connection.execute("SELECT FROM dagapp.dag_jobs FOR UPDATE")
        assert await nodes.note() == 0
    let_a_minute_pass(nodes, monkeypatch)
    assert await nodes.note() == 1


async def test_tasks_that_wait_long_are_read_again_once_in_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, read = waiting_nodes(bench), []
    waiting = UnservedQueueRepository.waiting

    async def listen(*args: Any, **parameters: Any) -> list[WaitingTask]:
        read.extend(found := await waiting(*args, **parameters))
        return found

    monkeypatch.setattr(UnservedQueueRepository, "waiting", listen)
    await bench.submit("fan")
    await let_wait(bench)
    for _ in range(3):
        await nodes.note()
    assert len(read) == 3
    monkeypatch.setattr(unserved_queues, "FULL_LOOK_SHARE", 1e6)
    let_a_minute_pass(nodes, monkeypatch)
    await nodes.note()
    assert len(read) == 6
    let_a_minute_pass(nodes, monkeypatch)
    await nodes.note()
    assert len(read) == 6, "the last full look took a while"


async def test_submitters_are_warned_of_queues_without_a_worker(bench: Bench) -> None:
    queues = queues_of(compiled(ONE)) | queues_of(compiled(FAN))
    assert queues == {QUEUE, OTHER_QUEUE}
    await serve(bench, QUEUE)
    (warning,) = await QueueWarnings(bench.pool, threshold_seconds=120).about(queues)
    assert OTHER_QUEUE in warning
    assert "graticule worker --queues" in warning


async def test_a_submitter_of_a_job_of_a_newer_release_is_answered(
    bench: Bench, emptied_database: TestDatabase
) -> None:
    job_id = await bench.submit("fan")
    warnings = QueueWarnings(bench.pool, threshold_seconds=120)
    (warning,) = await warnings.about_job(job_id)
    assert OTHER_QUEUE in warning
    with psycopg.connect(emptied_database.url(), autocommit=True) as admin:
        admin.execute("UPDATE dagapp.dag_workflows SET definition = definition || '{\"of_the_next_release\": 1}'")
        assert await warnings.about_job(job_id) == []
        admin.execute("UPDATE dagapp.dag_workflows SET definition = definition - 'of_the_next_release'")


async def test_submitters_are_warned_once_the_worker_of_a_queue_is_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings = QueueWarnings(bench.pool, threshold_seconds=120)
    await serve(bench, QUEUE)
    assert await warnings.about(frozenset({QUEUE})) == []
    async with bench.pool.connection() as connection:
        await connection.execute("UPDATE dagapp.dag_workers SET stopped_at = now()")
    assert await warnings.about(frozenset({QUEUE})) == [], "it was read a moment ago"
    monkeypatch.setattr(unserved_queues, "SERVED_HOLDS_SECONDS", 0)
    (warning,) = await warnings.about(frozenset({QUEUE}))
    assert QUEUE in warning
