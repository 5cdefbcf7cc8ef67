"""What Prometheus reads of an installation at work: each number is that of what has happened."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, LiteralString

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.conftest import TestDatabase
from tests.integration.api.conftest import StartApi, running_client
from tests.integration.api.running import KEY, RunningApi
from tests.integration.orchestrator.instances import until
from tests.integration.repositories import rows
from tests.measured import every_sample

from graticule.api.app import create_api, engine_running
from graticule.config import Settings
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.repositories.messages import MessageRepository
from graticule.repositories.operations import MeasuredState
from graticule.services import state_metrics
from graticule.services.state_metrics import StateMetrics
from graticule.worker.app import create_worker

SERVED = "functionapp-tasks"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NODES = "nodes:\n  start: {{next: n}}\n  {0}\n  end: {{type: end}}\n"
WORKFLOWS = {
    "sleeps": "n: {handler: sleep, params: {seconds: 0.5}, next: end}",
    "fails": "n: {handler: fail, params: {message: m}, retry: {max_attempts: 1, initial_delay_seconds: 1}, next: end}",
    "unserved": "n: {handler: echo, queue: unserved, next: end}",
}


class Scraped:
    """The samples of a scrape."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._values = {(each.name, *sorted(each.labels.items())): each.value for each in samples}
        self.series = {(each.name, frozenset(each.labels)) for each in samples}

    def value(self, name: str, **labels: str) -> float | None:
        return self._values.get((f"graticule_{name}", *sorted(labels.items())))

    def numbers(self, name: str) -> dict[tuple[str, ...], float]:
        """Give all values of a metric, by those of its labels in the order of their names."""
        found = {key[1:]: value for key, value in self._values.items() if key[0] == f"graticule_{name}"}
        return {tuple(value for _, value in labels): number for labels, number in found.items()}


async def scraped(client: httpx.AsyncClient, accept: str = "") -> Scraped:
    answer = await client.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    parse = parse_openmetrics if accept else parse_text
    assert answer.headers["content-type"].startswith("application/openmetrics" if accept else "text/plain")
    return Scraped([sample for family in parse(answer.text) for sample in family.samples])


class Installation(RunningApi):
    """An orchestrator and a worker, each in its own application."""

    worker: httpx.AsyncClient

    async def execute(self, statement: LiteralString, **given: Any) -> None:
        async with self.app.state.database.connection() as connection:
            await connection.execute(statement, given)

    async def told(self, name: str, **labels: str) -> None:
        """Wait until a number is there that is not 0."""

        async def is_there() -> bool:
            return bool((await scraped(self.client)).value(name, **labels))

        await until(is_there)


@pytest.fixture
async def installation(
    database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Installation]:
    monkeypatch.setattr(state_metrics, "KEPT_SECONDS", 0.0)
    for name, nodes in WORKFLOWS.items():
        text = (
            f"workflow_id: {name}\nname: N\nversion: 1\nnodes:\n  start: {{next: n}}\n  {nodes}\n  end: {{type: end}}\n"
        )
        (tmp_path / f"{name}.yaml").write_text(text)
    settings = Settings(
        admin_key=SecretStr(KEY),
        home=tmp_path,
        workflows=str(tmp_path),
        worker_renew_seconds=0.2,
        callback_allow="127.0.0.1",
    )
    app = create_api(settings, database.url(DatabaseRole.ORCHESTRATOR), parts=[engine_running])
    worker = create_worker(settings, database.url(DatabaseRole.WORKER), queues=[SERVED], concurrency=4)
    async with running_client(app) as client, running_client(worker) as of_worker:
        client.headers["X-API-Key"] = KEY
        found = Installation(app, client, tmp_path)
        found.worker = of_worker
        yield found


# What has happened


async def finish_jobs(here: Installation) -> None:
    """Let a job complete whose lease is renewed, and one fail that was tried again."""
    jobs = [await here.submit(name) for name in ("sleeps", "fails", "echo_test")]
    await asyncio.gather(*map(here.ended, jobs))


async def lose_leases(here: Installation) -> None:
    """Let a worker be silent that holds two tasks, one of them too often."""
    lasting, dead = [await here.submit("unserved") for _ in range(2)]
    await here.execute(
        "UPDATE dagapp.dag_tasks SET status = 'leased', leased_by = 'silent', lease_expires_at = now(),"
        " delivery_count = CASE WHEN job_id = %(dead)s THEN max_deliveries ELSE 1 END WHERE job_id = ANY (%(jobs)s)",
        dead=dead,
        jobs=[lasting, dead],
    )
    await here.ended(dead)


async def take_over(here: Installation) -> JobId:
    """Let the orchestrator of a job be gone, without a word."""
    job_id = await here.submit("unserved")
    await here.execute(
        "INSERT INTO dagapp.dag_orchestrators (owner_id, hostname, process_id, program_version, lock_key, stopped_at)"
        " VALUES ('gone', 'h', 1, '1', 1, now())"
    )
    await here.execute("UPDATE dagapp.dag_jobs SET owner_id = 'gone' WHERE job_id = %(job_id)s", job_id=job_id)
    await here.execute("SELECT pg_notify('graticule_orphans', '')")
    await here.told("jobs_reclaimed_total", reason="owner_gone")
    return job_id


async def ask_for_nothing_known(here: Installation) -> None:
    """Send a message that can become no job."""
    async with here.app.state.database.connection() as connection:
        await MessageRepository(connection).send(rows.message("m", body={"workflow_id": "echo_test", "unheard_of": 1}))
    await here.told("dead_letters_total", kind="job", queue="orchestrator-jobs")


async def call_back_in_vain(here: Installation) -> None:
    """End a job whose callback cannot be signed."""
    asked = {"workflow_id": "echo_test", "callback_url": "http://127.0.0.1:1/"}
    answer = await here.client.post("/api/v1/jobs", json=asked)
    assert answer.status_code == 201, answer.text
    await here.told("callback_attempts_total", outcome="failed")


async def test_what_has_happened_is_counted_and_what_is_there_is_shown(installation: Installation) -> None:
    here = installation
    await asyncio.gather(finish_jobs(here), lose_leases(here), ask_for_nothing_known(here), call_back_in_vain(here))
    await here.client.post(f"/api/v1/jobs/{await take_over(here)}/cancel")
    found, worker = await scraped(here.client), await scraped(here.worker)

    assert found.numbers("jobs_submitted_total") == {("sleeps",): 1, ("fails",): 1, ("echo_test",): 2, ("unserved",): 3}
    assert {labels: number for labels, number in found.numbers("jobs_ended_total").items() if number} == {
        ("completed", "sleeps"): 1,
        ("completed", "echo_test"): 2,
        ("failed", "fails"): 1,
        ("failed", "unserved"): 1,
        ("cancelled", "unserved"): 1,
    }
    assert found.numbers("nodes_ended_total") == {
        ("echo", "completed"): 2,
        ("sleep", "completed"): 1,
        ("fail", "failed"): 1,
        ("echo", "failed"): 1,
        ("echo", "cancelled"): 1,
    }
    assert found.numbers("job_duration_seconds_count") == {("sleeps",): 1, ("echo_test",): 2}
    assert (found.value("job_duration_seconds_sum", workflow="sleeps") or 0) > 0.5
    assert found.numbers("node_retries_total") == {("fail",): 1}
    assert found.value("node_dispatch_delay_seconds_count") == 1
    assert found.numbers("tasks_dispatched_total") == {(SERVED,): 5, ("unserved",): 3}
    assert found.numbers("tasks_reclaimed_total") == {("unserved",): 2}
    assert found.numbers("dead_letters_total") == {("job", "orchestrator-jobs"): 1, ("task", "unserved"): 1}
    assert found.numbers("jobs_reclaimed_total") == {("owner_gone",): 1, ("handed_over",): 0}
    assert found.value("callback_attempts_total", outcome="failed") == 1
    assert found.value("result_delay_seconds_count") == 6  # of five tasks, and of the one that died
    assert (found.value("step_results_sum") or 0) >= 6
    assert (found.value("orchestrator_wakes_total", reason="notification") or 0) > 0

    assert found.value("database_up") == 1
    assert found.numbers("jobs_active") == {("pending",): 0, ("running",): 1}
    assert found.value("orchestrator_jobs_owned") == found.value("orchestrators_alive") == 1
    assert found.value("queue_depth", kind="task", queue="unserved", state="waiting") == 1
    assert found.value("queue_depth", kind="task", queue=SERVED, state="waiting") == 0
    assert (found.value("queue_oldest_seconds", kind="task", queue="unserved") or 0) > 0
    assert found.numbers("queue_workers") == {(SERVED,): 1, ("unserved",): 0}
    assert found.numbers("dead_letters_waiting") == {("job", "orchestrator-jobs"): 1, ("task", "unserved"): 1}
    assert (found.value("results_waiting"), found.value("callbacks_waiting")) == (0, 1)

    assert worker.value("worker_tasks_total", handler="fail", outcome="failed") == 2
    assert worker.value("task_wait_seconds_count", queue=SERVED) == 5
    assert (worker.value("worker_lease_renewals_total", outcome="renewed") or 0) >= 1
    assert worker.value("worker_leases_lost_total", state="lost") == 0
    assert (worker.value("worker_slots"), worker.value("worker_leases_held")) == (4, 0)
    assert not worker.numbers("jobs_active")  # what all share, orchestrators tell

    declared = {*every_sample().items()}
    for each in (found, worker, await scraped(here.client, OPENMETRICS), await scraped(here.worker, OPENMETRICS)):
        ours = {(name, labels) for name, labels in each.series if name.startswith("graticule_")}
        assert {(name, labels) for name, labels in ours if not name.endswith("_created")} <= declared


# The state is read for whoever asks, and never too often


class Source:
    """Reads nothing, when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self.ended = asyncio.Event()

    async def read(self) -> list[Any]:
        self.asked += 1
        try:
            await self.answers.wait()
        finally:
            self.ended.set()
        return []


def is_up(metrics: StateMetrics) -> float:
    (up,) = next(iter(metrics.collect())).samples
    return up.value


async def test_however_many_ask_the_state_is_read_once_and_kept_for_a_while() -> None:
    source = Source()
    metrics = StateMetrics(source.read)
    asking = [asyncio.create_task(metrics.refresh()) for _ in range(20)]
    await asyncio.sleep(0)
    source.answers.set()
    await asyncio.gather(*asking)
    for _ in range(20):
        await metrics.refresh()
    assert (source.asked, is_up(metrics)) == (1, 1)


async def test_nobody_waits_long_for_the_state_and_it_is_not_asked_for_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_metrics, "PATIENCE_SECONDS", 0.01)
    source = Source()
    metrics = StateMetrics(source.read)
    await metrics.refresh()
    assert (is_up(metrics), len([*metrics.collect()])) == (0, 1)
    async with asyncio.timeout(10):
        await source.ended.wait()
    await metrics.refresh()
    assert source.asked == 1


async def test_numbers_that_were_read_before_are_not_shown_for_those_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_metrics, "KEPT_SECONDS", 0.0)
    answers = [[MeasuredState(name="workers_alive", labels=[], value=1)]]

    async def read() -> list[MeasuredState]:
        return answers.pop()

    metrics = StateMetrics(read)
    await metrics.refresh()
    assert is_up(metrics) == 1
    with capture_logs() as lines:
        await metrics.refresh()
    assert (is_up(metrics), [line["event"] for line in lines]) == (0, ["the state cannot be read for metrics"])


async def test_without_a_database_all_else_is_told(start_api: StartApi) -> None:
    async with start_api(None) as client:
        found = await scraped(client)
    assert found.value("database_up") == 0
    assert found.numbers("jobs_active") == {}
    assert found.value("build_info", process="orchestrator", version="0.1.0") == 1
    assert found.numbers("database_pool_size")
