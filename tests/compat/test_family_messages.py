"""Messages and reports of the platform family's documents, with a worker that knows nothing else.

The worker is a process of its own and imports nothing of ours: it receives tasks from Service Bus, or reads them in
PostgreSQL, and reports by HTTP to the address that the documents name.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from pydantic import SecretStr
from tests.compat.family_documents import MESSAGES
from tests.conftest import TestDatabase
from tests.integration.api.running import KEY, TOKEN
from tests.integration.gateway.front import served
from tests.integration.messaging.bus import put
from tests.integration.repositories import rows
from tests.servicebus_emulator import Emulator, QueueOptions

from graticule.api.app import create_api, engine_running
from graticule.config import Settings, Transport
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository

WORKER = Path(__file__).with_name("earlier_worker.py")
JOBS, TASKS = "orchestrator-jobs", "functionapp-tasks"


@dataclass(frozen=True)
class Family:
    """An orchestrator at an address, a way to send it messages, and what its workers are told."""

    client: httpx.AsyncClient
    send: Callable[[dict[str, Any], str], Awaitable[None]]
    environment: dict[str, str]

    @asynccontextmanager
    async def worker(self, tasks: int) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run the worker until it has done so many tasks."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(WORKER), str(tasks), env=self.environment
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@asynccontextmanager
async def family(
    settings: Settings,
    database: TestDatabase,
    send: Callable[[dict[str, Any], str], Awaitable[None]],
    variables: dict[str, str],
) -> AsyncIterator[Family]:
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=[engine_running])
    async with (
        app.router.lifespan_context(app),
        served(app) as address,
        httpx.AsyncClient(base_url=address, headers={"X-API-Key": KEY}) as client,
    ):
        url = f"{address}/api/v1/callbacks/task-result"
        own = {"DAG_CALLBACK_URL": url, "WORKER_QUEUE": TASKS, "WORKER_TOKEN": TOKEN}
        yield Family(client, send, own | variables)


@pytest.fixture(params=["postgres", "servicebus"])
async def at_work(
    request: pytest.FixtureRequest, database: TestDatabase, connection: Connection, tmp_path: Path
) -> AsyncIterator[Family]:
    """Give the family on either transport; no callback is sent."""
    given: dict[str, Any] = {"admin_key": SecretStr(KEY), "worker_token": SecretStr(TOKEN), "callbacks_paused": True}
    given["orchestrator_poll_interval"] = 1  # nothing tells of rows that are inserted by others
    if request.param == "postgres":

        async def insert(body: dict[str, Any], message_id: str) -> None:
            await MessageRepository(connection).send(rows.message(message_id, body=body))

        worker = {"POSTGRES_URL": database.url(DatabaseRole.WORKER)}
        async with family(Settings(home=tmp_path, **given), database, insert, worker) as working:
            yield working
        return
    async with Emulator(dict.fromkeys((JOBS, TASKS), QueueOptions(lock_seconds=300))) as emulator:

        async def publish(body: dict[str, Any], message_id: str) -> None:
            put(emulator.queues[JOBS], json.dumps(body).encode(), message_id)

        broker = {"SERVICE_BUS_CONNECTION_STRING": emulator.connection_string}
        settings = Settings(home=tmp_path, service_bus_connection_string=SecretStr(emulator.connection_string), **given)
        assert settings.transport is Transport.SERVICEBUS
        async with family(settings, database, publish, broker) as working:
            yield working


async def test_messages_become_jobs_that_an_earlier_worker_completes(at_work: Family, connection: Connection) -> None:
    for number, body in enumerate(MESSAGES["jobs"]):
        await at_work.send(body, f"m-{number}")
    async with at_work.worker(len(MESSAGES["jobs"])) as process, asyncio.timeout(60):
        assert await process.wait() == 0
        jobs = await completed(at_work, len(MESSAGES["jobs"]))
    done = [await at_work.client.get(f"/api/v1/jobs/{job['job_id']}") for job in jobs]
    told = {str(job.json()["result"]["echoed_params"]["message"]): job.json() for job in done}
    assert set(told) == {"first", "second", "third", "fourth", "fifth"}
    assert told["second"]["priority"] == 1
    asked = {name: told["fourth"][name] for name in ("correlation_id", "submitted_by", "idempotency_key", "priority")}
    assert asked == {name: MESSAGES["jobs"][3][name] for name in asked}
    fifth = {name: told["fifth"][name] for name in ("correlation_id", "asset_id", "version_ordinal", "purpose")}
    assert fifth == {"correlation_id": "req-5", "asset_id": None, "version_ordinal": None, "purpose": None}
    cursor = await connection.execute(
        "SELECT payload FROM dagapp.dag_callbacks WHERE job_id = %s", [told["fourth"]["job_id"]]
    )
    (callback,) = await cursor.fetchall()
    assert (callback["payload"]["correlation_id"], callback["payload"]["idempotency_key"]) == ("order-7", "order-7-1")


def test_the_worker_is_small_and_knows_nothing_of_ours() -> None:
    lines = WORKER.read_text().splitlines()
    assert len(lines) <= 40
    assert [line for line in lines if "import " in line and "graticule" in line] == []


async def completed(at_work: Family, count: int) -> list[dict[str, Any]]:
    """Wait until so many jobs have completed."""
    while True:
        jobs = (await at_work.client.get("/api/v1/jobs", params={"status": "completed"})).json()["items"]
        if len(jobs) >= count:
            return list(jobs)
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("at_work", ["servicebus"], indirect=True)
async def test_a_task_message_has_all_that_earlier_workers_read(at_work: Family) -> None:
    await at_work.send(MESSAGES["jobs"][0], "m")
    connection_string = at_work.environment["SERVICE_BUS_CONNECTION_STRING"]
    message = await asyncio.to_thread(one_message, connection_string)
    assert set(MESSAGES["task"]) <= set(message)
    assert (message["handler"], message["params"]) == ("echo", {"message": "first"})
    report = {**MESSAGES["results"][0], "task_id": message["task_id"], "worker_id": "worker-xyz"}
    url, token = at_work.environment["DAG_CALLBACK_URL"], {"Authorization": f"Bearer {TOKEN}"}
    answers = [await at_work.client.post(url, json=report, headers=token) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    other = await at_work.client.post(url, json={**report, "worker_id": "worker-abc"}, headers=token)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


async def test_a_different_result_is_refused_and_neither_job_nor_messages_suffer(
    at_work: Family, connection: Connection
) -> None:
    await at_work.send(MESSAGES["jobs"][0], "m-0")
    report = {
        "task_id": await only_task(connection),
        "status": "completed",
        "output": {"echoed_params": {"message": "first"}},
        "worker_id": "worker-xyz",
    }
    different = [
        {**report, "output": {"echoed_params": {"message": "another"}}},
        {**report, "status": "failed", "error_message": "no CRS"},
        {**report, "worker_id": "worker-abc"},
    ]
    url, token = at_work.environment["DAG_CALLBACK_URL"], {"Authorization": f"Bearer {TOKEN}"}
    answers = [await at_work.client.post(url, json=body, headers=token) for body in (report, *different, report)]
    assert [answer.status_code for answer in answers] == [200, 409, 409, 409, 200]
    await at_work.send(MESSAGES["jobs"][1], "m-1")
    # A broker still has the message of the task that is done: who receives it reports the same again.
    has_broker = "SERVICE_BUS_CONNECTION_STRING" in at_work.environment
    async with at_work.worker(2 if has_broker else 1) as process, asyncio.timeout(60):
        assert await process.wait() == 0
        jobs = await completed(at_work, 2)
    results = [(await at_work.client.get(f"/api/v1/jobs/{job['job_id']}")).json()["result"] for job in jobs]
    assert {result["echoed_params"]["message"] for result in results} == {"first", "second"}
    assert (await at_work.client.get("/api/v1/dead-letters")).json()["items"] == []


async def only_task(connection: Connection) -> str:
    """Wait for the task of the only job."""
    async with asyncio.timeout(30):
        while True:
            for row in await (await connection.execute("SELECT task_id FROM dagapp.dag_tasks")).fetchall():
                return str(row["task_id"])
            await asyncio.sleep(0.02)


def one_message(connection_string: str) -> dict[str, Any]:
    from azure.servicebus import ServiceBusClient

    with (
        ServiceBusClient.from_connection_string(connection_string) as client,
        client.get_queue_receiver(TASKS, max_wait_time=30) as receiver,
    ):
        (received,) = receiver.receive_messages(max_message_count=1)
        receiver.complete_message(received)
        return dict(json.loads(b"".join(received.body)))


@pytest.mark.parametrize("result", MESSAGES["results"])
async def test_every_form_of_a_result_counts(at_work: Family, connection: Connection, result: dict[str, Any]) -> None:
    await at_work.send(MESSAGES["jobs"][0], "m")
    broker = at_work.environment.get("SERVICE_BUS_CONNECTION_STRING")
    received = await asyncio.to_thread(one_message, broker) if broker else None
    task_id = received["task_id"] if received else await only_task(connection)
    report = {**result, "task_id": task_id, "worker_id": "worker-xyz"}
    token = {"Authorization": f"Bearer {TOKEN}"}
    answer = await at_work.client.post(at_work.environment["DAG_CALLBACK_URL"], json=report, headers=token)
    assert answer.json() == {"accepted": True, "task": "done"}
    stored = await connection.execute(
        "SELECT status, output, error_message FROM dagapp.dag_task_results WHERE task_id = %s", [task_id]
    )
    (row,) = await stored.fetchall()
    if row["status"] == "completed":
        assert row["output"] == result.get("output", result.get("result"))
    else:
        assert row["error_message"] == (result.get("error_message") or "the handler gave no reason")


async def test_a_request_of_a_gateway_becomes_a_job_of_its_raster(at_work: Family, connection: Connection) -> None:
    body = MESSAGES["raster"]
    await at_work.send(body, "m")
    task_id = await only_task(connection)
    (task,) = await (
        await connection.execute("SELECT job_id, handler, params FROM dagapp.dag_tasks WHERE task_id = %s", [task_id])
    ).fetchall()
    job = (await at_work.client.get(f"/api/v1/jobs/{task['job_id']}")).json()
    told = ("workflow_id", "correlation_id", "submitted_by", "priority")
    assert {name: job[name] for name in told} == {name: body[name] for name in told}
    assert body["input_params"].items() <= job["input_params"].items()
    assert task["handler"] == "raster.validate"
    assert body["input_params"].items() <= task["params"].items()


async def test_a_message_of_the_staged_api_is_a_dead_letter_that_says_what_to_do(at_work: Family) -> None:
    for number, body in enumerate(MESSAGES["staged"]):
        await at_work.send(body, f"m-{number}")
    letters = await dead_letters(at_work, len(MESSAGES["staged"]))
    assert {letter["id"]: letter["body"] for letter in letters} == {
        f"m-{number}": body for number, body in enumerate(MESSAGES["staged"])
    }
    address = "/api/jobs/submit/process_large_raster"
    assert [
        letter["reason"] for letter in letters if f"POST {address}, with the `parameters`" not in letter["reason"]
    ] == []
    assert (await at_work.client.get("/api/v1/jobs")).json()["items"] == []
    followed = await at_work.client.post(address, json=letters[0]["body"]["parameters"])
    assert (followed.status_code, followed.json()["job_type"]) == (201, "process_large_raster")


async def dead_letters(at_work: Family, count: int) -> list[dict[str, Any]]:
    """Wait until there are so many dead letters."""
    async with asyncio.timeout(30):
        while True:
            letters = (await at_work.client.get("/api/v1/dead-letters")).json()["items"]
            if len(letters) >= count:
                return list(letters)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("at_work", ["postgres"], indirect=True)
async def test_a_row_that_a_worker_inserts_counts_and_leaves_its_task_in_the_queue(
    at_work: Family, connection: Connection, database: TestDatabase
) -> None:
    await at_work.send(MESSAGES["jobs"][0], "m")
    task_id = await only_task(connection)
    async with await psycopg.AsyncConnection.connect(database.url(DatabaseRole.WORKER), autocommit=True) as worker:
        await worker.execute(
            "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, status, output, worker_id)"
            " SELECT task_id, job_id, node_id, 'completed', params, 'worker-xyz' FROM dagapp.dag_tasks"
            " WHERE task_id = %s",
            [task_id],
        )
        async with asyncio.timeout(30):
            (job,) = await completed(at_work, 1)
        left = await (await worker.execute("SELECT status FROM dagapp.dag_tasks")).fetchall()
    assert (await at_work.client.get(f"/api/v1/jobs/{job['job_id']}")).json()["result"] == {"message": "first"}
    assert left == [("queued",)]
