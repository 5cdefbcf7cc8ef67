"""Messages, reports and environments of the platform family's documents, with a worker that knows nothing else.

The worker is a process of its own and imports nothing of ours: it receives tasks from Service Bus, or reads them in
PostgreSQL, and reports by HTTP to the address that the documents name.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase, plain_logs
from tests.integration.api.running import KEY, TOKEN
from tests.integration.gateway.front import served
from tests.integration.messaging.bus import put
from tests.integration.repositories import rows
from tests.servicebus_emulator import Emulator, QueueOptions
from tests.unit.cli.conftest import run

from graticule.api.app import create_api, engine_running
from graticule.cli.config_notes import explain_settings
from graticule.cli.processes import begin
from graticule.config import RunMode, Settings, Transport
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.core.token_login import TOKEN_FOR_PASSWORD
from graticule.repositories.database import Connection
from graticule.repositories.messages import MessageRepository
from graticule.worker.ways import needs_no_database

DOCUMENTS = Path(__file__).with_name("documents")
REPOSITORY = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("earlier_worker.py")
MESSAGES = json.loads((DOCUMENTS / "messages.json").read_text())
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


@pytest.mark.parametrize("at_work", ["postgres"], indirect=True)
@pytest.mark.parametrize("result", MESSAGES["results"])
async def test_every_form_of_a_result_counts(at_work: Family, connection: Connection, result: dict[str, Any]) -> None:
    body = {"workflow_id": "echo_test", "inputs": {"message": "hello"}}
    job_id = (await at_work.client.post("/api/v1/jobs", json=body)).json()["job_id"]
    (task,) = await (
        await connection.execute("SELECT task_id FROM dagapp.dag_tasks WHERE job_id = %s", [job_id])
    ).fetchall()
    report = {**result, "task_id": task["task_id"], "worker_id": "worker-xyz"}
    token = {"Authorization": f"Bearer {TOKEN}"}
    answer = await at_work.client.post(at_work.environment["DAG_CALLBACK_URL"], json=report, headers=token)
    assert answer.json() == {"accepted": True, "task": "done"}
    stored = await connection.execute(
        "SELECT status, output, error_message FROM dagapp.dag_task_results WHERE task_id = %s", [task["task_id"]]
    )
    (row,) = await stored.fetchall()
    if row["status"] == "completed":
        assert row["output"] == result.get("output", result.get("result"))
    else:
        assert row["error_message"] == (result.get("error_message") or "the handler gave no reason")


def environment(name: str) -> dict[str, str]:
    lines = (DOCUMENTS / f"{name}.env").read_text().split()
    return {line.partition("=")[0]: line.partition("=")[2] for line in lines}


@pytest.mark.parametrize(
    ("name", "expected", "notes"),
    [
        (
            "orchestrator",
            {
                "run_mode": "orchestrator",
                "log_format": "json",
                "use_managed_identity": True,
                "db_admin_managed_identity_client_id": "a533cb80-0000-4000-8000-000000000000",
                "postgres_host": "family.postgres.database.azure.com",
                "postgres_db": "geopgflex",
                "service_bus_fqdn": "family.servicebus.windows.net",
                "transport": "servicebus",
                "orchestrator_poll_interval": 5.0,
            },
            ["SERVICE_BUS_FQDN names a namespace"],
        ),
        (
            "worker",
            {
                "run_mode": "worker",
                "worker_type": "docker",
                "worker_queue": "container-tasks",
                "dag_callback_url": "https://family-master.azurewebsites.net/",
                "azure_storage_account_name": "familygeo",
                "storage": "azure",
                "transport": "postgres",
            },
            ["AZURE_STORAGE_ACCOUNT_NAME names an account", "the orchestrator too"],
        ),
        (
            "queues",
            {
                "service_bus_namespace": "family.servicebus.windows.net",
                "managed_identity_client_id": "b644dc91-0000-4000-8000-000000000000",
                "job_queue_name": "dag-jobs",
                "heartbeat_interval_seconds": 30.0,
                "orphan_threshold_seconds": 120.0,
                "orphan_scan_interval_seconds": 60.0,
                "transport": "servicebus",
            },
            ["SERVICE_BUS_NAMESPACE names a namespace"],
        ),
    ],
)
def test_an_environment_is_understood_as_it_stands(name: str, expected: dict[str, Any], notes: list[str]) -> None:
    result = run("config", variables=environment(name))
    assert result.code == 0, result.err
    shown = json.loads(result.out)
    assert {setting: shown[setting] for setting in expected} == expected
    told = " ".join(result.err.split())
    assert [note for note in notes if note not in told] == []


def settings_of(**variables: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return Settings()


def test_the_table_of_the_orchestrator_leads_to_its_database() -> None:
    """The login is the one that the deployment to Azure makes for the identity of this process."""
    address = settings_of(**environment("orchestrator")).external_database
    assert address is not None
    parts = address.parts()
    assert (parts["host"], parts["dbname"], parts["sslmode"]) == (
        *("family.postgres.database.azure.com", "geopgflex", "require"),
    )
    assert (parts["user"], parts["password"]) == ("graticule-orchestrator", TOKEN_FOR_PASSWORD)


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({"POSTGRES_USER": "family-admin"}, "family-admin"),
        ({"RUN_MODE": "gateway"}, "graticule-gateway"),
        ({"RUN_MODE": "worker"}, "graticule-worker"),
        ({"RUN_MODE": "serve"}, "graticule-serve-internal"),
        ({"RUN_MODE": "serve", "GRATICULE_SERVE_AUDIENCE": "external"}, "graticule-serve-external"),
    ],
)
def test_the_login_of_an_identity_is_named_or_that_of_the_process(changes: dict[str, str], user: str) -> None:
    settings = settings_of(**environment("orchestrator") | changes)
    address = settings.external_database
    assert address is not None
    assert address.parts()["user"] == user
    assert any(user in note for note in explain_settings(settings)) is ("POSTGRES_USER" not in changes)
    assert (
        user
        in (REPOSITORY / "deploy/kubernetes/components/azure/processes.yaml").read_text()
        + (REPOSITORY / "deploy/kubernetes/components/azure/serve-external.yaml").read_text()
        or "POSTGRES_USER" in changes
    )


@pytest.mark.parametrize("mode", ["", "up"])
def test_a_process_without_a_login_says_what_is_missing(mode: str) -> None:
    settings = settings_of(**environment("orchestrator") | {"RUN_MODE": mode})
    with pytest.raises(ConfigurationError, match="as whom to log in"):
        _ = settings.external_database
    assert any("POSTGRES_USER" in note for note in explain_settings(settings))


@pytest.fixture
def process_state() -> Iterator[None]:
    """Undo what the start of a process of ours changes in this one: how files are made, and how it logs."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)
    plain_logs()


@pytest.mark.usefixtures("process_state")
def test_an_identity_without_a_mode_logs_in_as_the_process_that_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (environment("orchestrator") | {"RUN_MODE": ""}).items():
        monkeypatch.setenv(name, value)
    address = begin(RunMode.GATEWAY).external_database
    assert address is not None
    assert address.parts()["user"] == "graticule-gateway"


ADDED_FOR_WORKERS = {"SERVICE_BUS_FQDN": "family.servicebus.windows.net", "GRATICULE_WORKER_TOKEN": TOKEN}


def test_the_table_of_a_worker_needs_two_more_variables_and_says_so(tmp_path: Path) -> None:
    given = environment("worker") | {"GRATICULE_STORAGE": "azure", "GRATICULE_HOME": str(tmp_path)}
    without = run("worker", variables=given)
    assert without.code == 1
    assert [name for name in ADDED_FOR_WORKERS if name not in without.err] == []
    notes = explain_settings(settings_of(**given))
    assert "SERVICE_BUS_FQDN" in " ".join(notes)
    (broker, token) = ADDED_FOR_WORKERS.items()
    half = settings_of(**given, **dict([broker]))
    assert needs_no_database(half)
    assert "GRATICULE_WORKER_TOKEN" in " ".join(explain_settings(half))
    complete = settings_of(**given, **dict([broker, token]))
    assert needs_no_database(complete)
    assert [note for note in explain_settings(complete) if "SERVICE_BUS_FQDN names" not in note] == []


EMPTY = ("MANAGED_IDENTITY_CLIENT_ID", "SERVICE_BUS_CONNECTION_STRING")
FAMILY = {name for document in ("orchestrator", "worker", "queues") for name in environment(document)} | {*EMPTY}


@pytest.mark.parametrize("names", [[name] for name in sorted(FAMILY)] + [sorted(FAMILY)], ids=",".join)
def test_an_empty_variable_means_that_it_is_unset(names: list[str]) -> None:
    """Templates of deployments leave them so."""
    shown, unset = [run("config", variables=variables) for variables in (dict.fromkeys(names, ""), {})]
    assert shown == unset
    assert json.loads(shown.out)["transport"] == "postgres"


def test_an_identity_beside_an_empty_one_is_used_for_all() -> None:
    identity = "a533cb80-0000-4000-8000-000000000000"
    variables = {
        "USE_MANAGED_IDENTITY": "true",
        "DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID": identity,
        "SERVICE_BUS_NAMESPACE": "family",
        **dict.fromkeys(EMPTY, ""),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        settings = Settings()
    assert (settings.identity_client_id, settings.database_client_id) == (identity, identity)
    assert settings.service_bus_connection_string is None, "the namespace is reached with the identity"
    assert settings.transport is Transport.SERVICEBUS
