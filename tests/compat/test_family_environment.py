"""An orchestrator and a worker run with the tables of the platform family's documents as they stand.

Only addresses are replaced, because Azure is not here, and the variables added that the page names.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from tests.chaos.member import Member, Orders
from tests.compat.azure_site import AzureSite, azure_site
from tests.compat.family_documents import ADDED_FOR_WORKERS, DOCUMENTS, environment
from tests.e2e.processes import free_ports
from tests.integration.api.running import TOKEN
from tests.integration.messaging.bus import put

ORCHESTRATOR, WORKER = environment("orchestrator"), environment("worker")
LOGIN = "graticule-orchestrator"  # of the deployment to Azure: the table names none
MESSAGE = {"workflow_id": "family_echo", "inputs": {"message": "hello"}, "correlation_id": "ddh-req-20417"}
LISTEN = "LISTEN graticule_events"
ENDED = """
    SELECT job.status, job.result, job.correlation_id
    FROM dagapp.dag_jobs AS job WHERE job.ended_at IS NOT NULL
"""
OTHERS = """
    SELECT DISTINCT usename::text FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user
"""


async def test_an_echo_job_runs_with_the_tables_as_they_stand(tmp_path: Path) -> None:
    port = free_ports()
    async with azure_site(tmp_path, database=ORCHESTRATOR["POSTGRES_DB"], login=LOGIN, orchestrator_port=port) as site:
        put(site.emulator.queues["orchestrator-jobs"], json.dumps(MESSAGE).encode(), "m")
        with members(site, port, tmp_path) as (orchestrator, worker):
            try:
                job = await ended_job(site)
            except TimeoutError:
                raise AssertionError(orchestrator.output + worker.output) from None
            users = await logged_in(site)
    assert job["status"] == "completed"
    assert job["result"] == {"echoed_params": {"message": "hello"}}
    assert job["correlation_id"] == "ddh-req-20417"
    assert users == {LOGIN}, "the worker has no database"
    assert set(site.identity.asked) == {"https://ossrdbms-aad.database.windows.net", "https://servicebus.azure.net/"}
    assert set(site.identity.client_ids) == {ORCHESTRATOR["DB_ADMIN_MANAGED_IDENTITY_CLIENT_ID"], None}
    assert {json.loads(line)["process"] for line in orchestrator.output.splitlines()} == {"orchestrator"}


@contextmanager
def members(site: AzureSite, port: int, folder: Path) -> Iterator[tuple[Member, Member]]:
    """Start both processes, each with its table."""
    workflows = folder / "workflows"
    workflows.mkdir()
    echo = (DOCUMENTS / "echo_test.yaml").read_text()
    # The table gives the worker one queue, which is not the one of light tasks.
    queue = f"handler: echo, queue: {WORKER['WORKER_QUEUE']},"
    (workflows / "echo_test.yaml").write_text(echo.replace("handler: echo,", queue))
    host, front = site.orchestrator
    at_azure = {**site.identity.environment, "SSL_CERT_FILE": str(site.authorities)}
    as_orchestrator = {"POSTGRES_HOST": host, "SERVICE_BUS_FQDN": host, "GRATICULE_WORKER_TOKEN": TOKEN}
    url = WORKER["DAG_CALLBACK_URL"].replace("family-master.azurewebsites.net", f"{host}:{front}")
    as_worker = {**ADDED_FOR_WORKERS, "SERVICE_BUS_FQDN": host, "DAG_CALLBACK_URL": url}
    tables = {
        ("orchestrator", port): {**ORCHESTRATOR, **as_orchestrator, "GRATICULE_WORKFLOWS": str(workflows)},
        ("worker", free_ports()): {**WORKER, **as_worker},
    }
    started = tuple(start(*process, folder, {**variables, **at_azure}) for process, variables in tables.items())
    try:
        yield started[0], started[1]
    finally:
        for member in started:
            member.kill()


def start(command: str, port: int, folder: Path, variables: Mapping[str, str]) -> Member:
    home = {"GRATICULE_HOME": str(folder / command)}
    return Member(Orders((command, "--port", str(port)), folder / f"{command}.log", {**variables, **home}))


async def ended_job(site: AzureSite) -> dict[str, Any]:
    """Wait until the job has ended, of which the database tells."""
    url = site.database.url()
    async with (
        asyncio.timeout(60),
        await psycopg.AsyncConnection.connect(url, autocommit=True) as listener,
        await psycopg.AsyncConnection.connect(url, autocommit=True, row_factory=dict_row) as connection,
    ):
        await listener.execute(LISTEN)
        while (job := await (await connection.execute(ENDED)).fetchone()) is None:
            await anext(listener.notifies(stop_after=1))
        return job


async def logged_in(site: AzureSite) -> set[str]:
    """Return who else has sessions in the database."""
    async with await psycopg.AsyncConnection.connect(site.database.url()) as connection:
        rows = await (await connection.execute(OTHERS)).fetchall()
    return {str(user) for (user,) in rows}
