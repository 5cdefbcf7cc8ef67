"""What the engine itself writes passes the checker."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import JsonValue
from tests.chaos.history import SubmittedJob, read_history
from tests.chaos.ledger import Entry, Ledger
from tests.chaos.rules import report, violations
from tests.conftest import TestDatabase
from tests.integration.orchestrator.instances import ROLE, Instance, until, working
from tests.integration.services.engine import QUEUE, flow

from graticule.core.ids import JobId, WorkerId
from graticule.core.models import JobMessage
from graticule.core.models.engine import EventType as E
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository
from graticule.repositories.tasks import ClaimedTask, TaskRepository
from graticule.services.jobs import Submission

LEFT = """
    SELECT job_id FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')
    UNION ALL SELECT job_id FROM dagapp.dag_task_results WHERE processed_at IS NULL
    UNION ALL SELECT message_id FROM dagapp.dag_job_messages WHERE status IN ('queued', 'leased')
"""
REAL = flow(
    """
  start: {type: start, next: a}
  a: {handler: echo, next: choose}
  choose:
    type: conditional
    condition_field: "{{ nodes.a.output.n }}"
    branches:
      - {condition: "< 5", next: split}
      - {default: true, next: other}
  other: {handler: echo, next: end}
  split:
    type: fan_out
    source: [1, 2, 3, 4]
    max_parallel: 3
    task:
      handler: echo
      params: {i: "{{ item }}"}
      retry: {max_attempts: 2, initial_delay_seconds: 0.02, backoff: fixed, jitter: false}
    next: merge
  merge: {type: fan_in, aggregation: collect, next: last}
  last: {handler: echo, retry: {max_attempts: 0}, next: end}""",
    workflow_id="real",
)


class Handlers:
    """What the workers of the test run: every effect is in the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.doomed: set[str] = set()  # jobs whose last task fails

    def __call__(self, task: ClaimedTask) -> JsonValue:
        run = self.begin(task)
        fails = task.job_id in self.doomed if task.node_id == "last" else task.node_id == "split__1"
        if fails and task.retry_count == 0:
            self.ledger.write(replace(run, moment="failed"))
            raise LookupError("by chance")
        self.ledger.write(replace(run, moment="ended"))
        return {"run": run.run, "n": 1}

    def begin(self, task: ClaimedTask) -> Entry:
        named = (task.task_id, task.job_id, task.node_id, task.retry_count, task.delivery_count)
        entry = Entry(uuid4().hex, "began", *named)
        self.ledger.write(entry)
        return entry


@pytest.fixture
async def instances(emptied_database: TestDatabase, tmp_path: Path) -> AsyncIterator[list[Instance]]:
    url = emptied_database.url(ROLE)
    async with Database(url, ROLE, pool_size=4) as one, Database(url, ROLE, pool_size=4) as two:
        # The first leaves a message for an unknown workflow to others; the second, which stays, waits for no other.
        yield [
            Instance(one, url, tmp_path, REAL, owner="owner-a"),
            Instance(two, url, tmp_path, REAL, owner="owner-b", unknown_workflow_seconds=0),
        ]


async def test_what_the_engine_writes_breaks_no_rule(
    instances: list[Instance], emptied_database: TestDatabase, tmp_path: Path
) -> None:
    """A worker dies, an owner stops, jobs fail, are resumed and cancelled, and messages come, one of them bad."""
    handlers = Handlers(Ledger(tmp_path / "ledger"))
    first, second = instances
    keys = ("plain", "resumed", "restarted", "failed", "cancelled")
    async with second.running():
        async with first.running():
            jobs = {key: await _submit(first, key) for key in keys}
            await _let_a_worker_die(first, handlers)
            await _send(first, "message", "real")
            await _send(first, "bad", "nowhere")
            await first.jobs.cancel(jobs["cancelled"])
        handlers.doomed = {jobs[key] for key in ("resumed", "restarted", "failed")}
        async with working(emptied_database, handlers):
            await second.ended(*jobs.values())
            await second.jobs.resume(jobs["resumed"])
            await second.jobs.resume(jobs["restarted"], "split")
            await second.ended(*jobs.values())
            await _nothing_is_left(second)
    submitted = [SubmittedJob(key, "real", job_id, may_fail=key == "failed") for key, job_id in jobs.items()]
    submitted += [SubmittedJob("message", "real"), SubmittedJob("bad", "nowhere", is_bad=True)]
    history = await read_history(emptied_database.url(), handlers.ledger, submitted)
    found = violations(history)
    assert found == [], report(history, found)
    assert Counter(job.status.value for job in history.jobs) == {"completed": 4, "failed": 1, "cancelled": 1}
    assert sum(each.event_type is E.JOB_RECLAIMED for each in history.events) >= 4
    assert max(task.delivery_count for task in history.tasks) == 2
    assert len(history.orchestrators) == 2


async def _submit(instance: Instance, key: str) -> JobId:
    return (await instance.jobs.submit(Submission(workflow_id="real", idempotency_key=key))).job.job_id


async def _send(instance: Instance, key: str, workflow_id: str) -> None:
    now = datetime.now(UTC)
    body: dict[str, JsonValue] = {"workflow_id": workflow_id, "idempotency_key": key}
    message = JobMessage(
        message_id=f"m-{key}", queue=instance.settings.job_queue_name, body=body, available_at=now, created_at=now
    )
    async with instance.pool.connection() as connection:
        await MessageRepository(connection).send(message)


async def _let_a_worker_die(instance: Instance, handlers: Handlers) -> None:
    """Let handlers begin whose worker is never heard of again, until its leases have run out."""
    async with instance.pool.connection() as connection:
        tasks = TaskRepository(connection)
        for task in await tasks.claim(WorkerId("dead"), QUEUE, 2, 60):
            handlers.begin(task)
        assert len(await tasks.reap_expired(datetime.now(UTC) + timedelta(seconds=90))) == 2


async def _nothing_is_left(instance: Instance) -> None:
    async def is_quiet() -> bool:
        async with instance.pool.connection() as connection:
            return (await (await connection.execute(LEFT)).fetchall()) == []

    await until(is_quiet)
