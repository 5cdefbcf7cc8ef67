"""A queue that no live worker serves: what the API counts, and what `graticule doctor` and `stats stuck` say of it."""

import asyncio
import os
from typing import LiteralString

import pytest
from tests.integration.api.conftest import KEY
from tests.integration.api.running import RunningApi
from tests.integration.api.test_event_stream_server import served
from tests.integration.repositories import rows
from tests.unit.cli.conftest import Result, run

from graticule.cli.running import RunningInstallation, noted
from graticule.core.worker_command import missing_worker
from graticule.repositories.messages import MessageRepository

QUEUE = "dag-worker-tasks"
WORKFLOW = f"""workflow_id: elsewhere
nodes:
  start: {{type: start, next: wait}}
  wait: {{handler: echo, queue: {QUEUE}, next: end}}
  end: {{type: end}}
"""
ADD_WORKER: LiteralString = """
    INSERT INTO dagapp.dag_workers
        (worker_id, hostname, process_id, program_version, queues, concurrency, started_at, heartbeat_at)
    VALUES ('w', 'h', 1, '1', ARRAY['dag-worker-tasks'], 1, now(), now())
"""


@pytest.fixture
async def waiting(api: RunningApi) -> RunningApi:
    """Return the application with two tasks in a queue without a worker, one of which is to wait for an hour."""
    (api.home / "workflows" / "elsewhere.yaml").write_text(WORKFLOW)
    await api.client.post("/api/v1/workflows/reload")
    for _ in range(2):
        await api.task(await api.submit("elsewhere"), "wait")
    await change(
        api,
        "UPDATE dagapp.dag_tasks SET available_at = now() + interval '1 hour'"
        " WHERE task_id = (SELECT max(task_id) FROM dagapp.dag_tasks)",
    )
    return api


async def change(api: RunningApi, statement: LiteralString) -> None:
    async with api.app.state.database.connection() as connection:
        await connection.execute(statement)


async def unserved(api: RunningApi) -> dict[str, int]:
    queues = (await api.get("/api/v1/queues"))["items"]
    return {queue["queue"]: queue["unserved"] for queue in queues}


async def test_tasks_that_wait_for_no_live_worker_are_counted(waiting: RunningApi) -> None:
    async with waiting.app.state.database.connection() as connection:
        await MessageRepository(connection).send(rows.message("m", queue="jobs-of-others"))
    assert await unserved(waiting) == {QUEUE: 1, "jobs-of-others": 0}, "messages for jobs wait for no worker"
    await change(waiting, ADD_WORKER)
    assert (await unserved(waiting))[QUEUE] == 0
    await change(waiting, "UPDATE dagapp.dag_workers SET heartbeat_at = now() - interval '1 hour'")
    assert (await unserved(waiting))[QUEUE] == 1
    await change(waiting, "UPDATE dagapp.dag_workers SET heartbeat_at = now(), stopped_at = now()")
    assert (await unserved(waiting))[QUEUE] == 1


async def test_doctor_and_stats_name_the_queue_and_the_command(waiting: RunningApi) -> None:
    async with served(waiting) as (address, _):
        doctor, stuck = await ask(waiting, address, "doctor"), await ask(waiting, address, "stats", "stuck")
        await change(waiting, ADD_WORKER)
        healthy, free = await ask(waiting, address, "doctor"), await ask(waiting, address, "stats", "stuck")
    (line,) = [line for line in doctor.out.splitlines() if QUEUE in line]
    assert line.startswith(f"! queue {QUEUE}")
    assert "1 task waits" in line
    assert missing_worker(QUEUE) in line
    assert doctor.code == healthy.code, "tasks that wait are no fault of this machine"
    assert missing_worker(QUEUE) in stuck.err
    assert QUEUE not in healthy.out + free.out + free.err


async def ask(api: RunningApi, address: str, *command: str) -> Result:
    """Run a command on this machine, on which the server is noted as running."""
    variables = {"GRATICULE_HOME": str(api.home), "GRATICULE_API_KEY": KEY}
    with noted(api.home, RunningInstallation(os.getpid(), "http://127.0.0.1:1", address, [])):
        return await asyncio.to_thread(run, *command, variables=variables)
